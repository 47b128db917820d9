"""Keeping one server well: diagnostics, backup, restore, recovery, rotation of tokens."""

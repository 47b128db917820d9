"""Bytes on the wire, ours and two other protocols'."""

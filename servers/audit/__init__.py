"""Audits: what each server hands to an auditor of one of them, and how the auditor compares."""

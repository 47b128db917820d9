"""Slow, obvious, scalar code to compare the real code with. Written from the papers, not from the real code."""

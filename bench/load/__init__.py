"""Two servers under mixed load."""

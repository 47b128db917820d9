"""A party's page in a real browser."""

"""Evaluation of keys, here or elsewhere."""

"""Forty simulated hospitals."""

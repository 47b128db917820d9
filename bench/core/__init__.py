"""Keys, noise and smoothing against other libraries."""

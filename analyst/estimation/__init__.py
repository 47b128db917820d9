"""From noisy counts to estimates and their errors."""

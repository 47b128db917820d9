"""One file a statistic, and what it is computed from."""

"""From an open campaign to a sealed set."""

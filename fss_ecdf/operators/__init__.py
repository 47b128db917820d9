"""What an operator runs: set-up, and campaigns at both servers."""

"""What callers see of a server: routes by who calls, and what every request must pass. No logic."""

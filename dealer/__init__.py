"""What a data owner runs."""

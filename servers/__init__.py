"""What the operator of one of the two servers runs."""

"""What dealer, servers and analyst must agree on."""

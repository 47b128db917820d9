"""Finding out a server that lies: what it hands to an auditor, what the other one kept, and the comparison."""

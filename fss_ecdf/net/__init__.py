"""What every program that talks to a server shares."""

"""Programs that have commands of more than one role."""

"""Past one machine, measured."""

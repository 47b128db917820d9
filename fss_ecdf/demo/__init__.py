"""The demonstration: two servers and many simulated hospitals, all of them the installed programs."""

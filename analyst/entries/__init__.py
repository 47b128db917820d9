"""One module for each statistic, or for a few that belong together: the entries of the registry."""

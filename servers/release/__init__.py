"""Where shares meet noise, and all that leaves a server."""

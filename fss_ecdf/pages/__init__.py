"""Pages for a browser: their JavaScript, how it becomes one file, and the local server of the consoles."""

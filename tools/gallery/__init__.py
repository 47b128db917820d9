"""A page of pictures, each made by the system with the command that stands below it."""

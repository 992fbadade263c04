"""Jobs that a command runs from start to end."""

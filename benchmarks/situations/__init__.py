"""Studies of graphs that depend on the situation, with the truth known."""

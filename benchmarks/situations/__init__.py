"""Graphs that depend on the situation and graphs with regimes, on systems whose truth is known."""

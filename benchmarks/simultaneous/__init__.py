"""Effects within a step: generated systems, other methods, and tacit beside them."""

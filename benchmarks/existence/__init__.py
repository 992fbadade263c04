"""Whether an edge exists: systems with a known graph, other methods, scores, and the studies that compare them."""

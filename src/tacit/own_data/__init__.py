"""A person's own data: from a file to a learned graph, and from a finished run to predictions and scores."""

"""Assessment of an answer: evidence for edges, uncertainty, identifiability and goodness of fit."""

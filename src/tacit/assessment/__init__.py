"""Assessment of a fit: evidence for edges, uncertainty, identifiability and goodness of fit."""

"""How far an answer can be trusted: does an edge exist, how uncertain is it, is it identifiable, does the model fit."""

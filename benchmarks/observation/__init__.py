"""Counts, yes or no, heavy tails: generated systems, studies of the observation models, and other methods."""

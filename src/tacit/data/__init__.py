"""Pairs of inputs and targets, however they came to be."""

from tacit.data.pairs import Pairs, Split

__all__ = ["Pairs", "Split"]

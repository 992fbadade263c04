"""Worlds with a known answer: a graph distribution and a predictor that together make data."""

from tacit.systems.community import PAPER_HOP_WEIGHTS, CommunitySystem, community_edge_probs
from tacit.systems.gpvar import GPVARSystem, gpvar_graph
from tacit.systems.large import LargeSystem

__all__ = [
    "PAPER_HOP_WEIGHTS",
    "CommunitySystem",
    "GPVARSystem",
    "LargeSystem",
    "community_edge_probs",
    "gpvar_graph",
]

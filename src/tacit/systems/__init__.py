"""Worlds with a known answer: a graph distribution and a predictor that together make data."""

from tacit.systems.community import PAPER_HOP_WEIGHTS, CommunitySystem, community_edge_probs
from tacit.systems.gpvar import GPVARSystem, gpvar_graph

__all__ = ["PAPER_HOP_WEIGHTS", "CommunitySystem", "GPVARSystem", "community_edge_probs", "gpvar_graph"]

"""The paper's synthetic system: a graph distribution and a predictor that together make data."""

from tacit.systems.community import PAPER_HOP_WEIGHTS, CommunitySystem, community_edge_probs

__all__ = ["PAPER_HOP_WEIGHTS", "CommunitySystem", "community_edge_probs"]

"""The paper's synthetic system: a graph distribution and a predictor that generate data."""

from tacit.systems.community import (
    COMMUNITY_EDGES,
    NODES_PER_COMMUNITY,
    PAPER_HOP_WEIGHTS,
    CommunitySystem,
    community_edge_probs,
)

__all__ = ["COMMUNITY_EDGES", "NODES_PER_COMMUNITY", "PAPER_HOP_WEIGHTS", "CommunitySystem", "community_edge_probs"]

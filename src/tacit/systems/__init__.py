"""Worlds with a known answer: a graph distribution and a predictor that together make data."""

from tacit.systems.community import PAPER_HOP_WEIGHTS, CommunitySystem, community_edge_probs
from tacit.systems.correlated import (
    CorrelatedGraph,
    CorrelatedSystem,
    columns_together,
    each_alone,
    exclusive_pairs,
    rows_together,
)
from tacit.systems.gpvar import GPVARSystem, gpvar_graph
from tacit.systems.large import LargeSystem

__all__ = [
    "PAPER_HOP_WEIGHTS",
    "CommunitySystem",
    "CorrelatedGraph",
    "CorrelatedSystem",
    "GPVARSystem",
    "LargeSystem",
    "columns_together",
    "community_edge_probs",
    "each_alone",
    "exclusive_pairs",
    "gpvar_graph",
    "rows_together",
]

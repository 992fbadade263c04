"""Distributions over graphs, and what can be said of a graph by itself."""

from tacit.graph.bernoulli import BernoulliGraph
from tacit.graph.candidates import correlated_candidates, nearest_candidates
from tacit.graph.density import density_prior
from tacit.graph.edges import EdgeRules
from tacit.graph.export import edge_table, to_networkx, to_pyg
from tacit.graph.links import Link, Sigmoid, SineSquared
from tacit.graph.priors import EdgePrior
from tacit.graph.reachability import boolean_powers, reachability, soft_powers, walks_within
from tacit.graph.reading import AnyGraphs, CandidateGraphs, read
from tacit.graph.rules_file import read_edge_rules
from tacit.graph.slots import Slots
from tacit.graph.walks import candidate_powers

__all__ = [
    "AnyGraphs",
    "BernoulliGraph",
    "CandidateGraphs",
    "EdgePrior",
    "EdgeRules",
    "Link",
    "Sigmoid",
    "SineSquared",
    "Slots",
    "boolean_powers",
    "candidate_powers",
    "correlated_candidates",
    "density_prior",
    "edge_table",
    "nearest_candidates",
    "reachability",
    "read",
    "read_edge_rules",
    "soft_powers",
    "to_networkx",
    "to_pyg",
    "walks_within",
]

"""Distributions over graphs, and what can be said of a graph by itself."""

from tacit.graph.bernoulli import BernoulliGraph
from tacit.graph.links import Link, Sigmoid, SineSquared
from tacit.graph.priors import EdgePrior
from tacit.graph.reachability import boolean_powers, reachability, soft_powers, walks_within

__all__ = [
    "BernoulliGraph",
    "EdgePrior",
    "Link",
    "Sigmoid",
    "SineSquared",
    "boolean_powers",
    "reachability",
    "soft_powers",
    "walks_within",
]

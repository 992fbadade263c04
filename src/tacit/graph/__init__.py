"""Distributions over graphs, and what can be said of a graph by itself."""

from tacit.graph.bernoulli import BernoulliGraph
from tacit.graph.reachability import boolean_powers, reachability, walks_within

__all__ = ["BernoulliGraph", "boolean_powers", "reachability", "walks_within"]

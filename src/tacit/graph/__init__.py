"""Distributions over graphs, candidate edges, rules and priors for edges."""

from tacit.graph.aggregation import AnyGraphs, CandidateGraphs, aggregate
from tacit.graph.bernoulli import BernoulliGraph
from tacit.graph.candidate_edges import CandidateEdges
from tacit.graph.conditional import PRIOR_DEVIATION, ConditionalBernoulliGraph, Features, shrinkage_of
from tacit.graph.context_variables import (
    Category,
    ContextVariable,
    CovariateColumn,
    CovariateLevel,
    CovariatePhase,
    OwnInput,
    PairTime,
    Periodic,
    SeriesNumber,
    Smooth,
)
from tacit.graph.correlated import correlated_pairs
from tacit.graph.density import density_prior
from tacit.graph.distribution import Context, GraphDistribution
from tacit.graph.edge_rules import EdgeRules
from tacit.graph.footprint import free_bytes, require_memory, step_bytes
from tacit.graph.lag_ranges import ANY_LAG, LagRange, LagRanges
from tacit.graph.links import Link, Sigmoid, SineSquared, Unlinked
from tacit.graph.mixture import Blocks, MixtureGraph
from tacit.graph.nearest import nearest_candidates
from tacit.graph.nodes import NamedNodes
from tacit.graph.per_pair import EdgeProbsPerPair
from tacit.graph.priors import EdgePrior
from tacit.graph.reachability import boolean_powers, reachability, soft_powers, walks_within
from tacit.graph.rules_file import read_edge_rules
from tacit.graph.walks import candidate_powers

__all__ = [
    "ANY_LAG",
    "PRIOR_DEVIATION",
    "AnyGraphs",
    "BernoulliGraph",
    "Blocks",
    "CandidateEdges",
    "CandidateGraphs",
    "Category",
    "ConditionalBernoulliGraph",
    "Context",
    "ContextVariable",
    "CovariateColumn",
    "CovariateLevel",
    "CovariatePhase",
    "EdgePrior",
    "EdgeProbsPerPair",
    "EdgeRules",
    "Features",
    "GraphDistribution",
    "LagRange",
    "LagRanges",
    "Link",
    "MixtureGraph",
    "NamedNodes",
    "OwnInput",
    "PairTime",
    "Periodic",
    "SeriesNumber",
    "Sigmoid",
    "SineSquared",
    "Smooth",
    "Unlinked",
    "aggregate",
    "boolean_powers",
    "candidate_powers",
    "correlated_pairs",
    "density_prior",
    "free_bytes",
    "nearest_candidates",
    "reachability",
    "read_edge_rules",
    "require_memory",
    "shrinkage_of",
    "soft_powers",
    "step_bytes",
    "walks_within",
]

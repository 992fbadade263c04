"""Distributions over graphs, candidate edges, rules and priors for edges."""

from tacit.graph.bernoulli import BernoulliGraph
from tacit.graph.conditional import PRIOR_DEVIATION, ConditionalBernoulliGraph, EdgeProbsPerPair, Features, shrinkage_of
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
from tacit.graph.distribution import Context, GraphDistribution
from tacit.graph.edge_rules import ANY_LAG, EdgeRules, LagRange, LagRanges, NamedNodes
from tacit.graph.layouts import AllPairs, CandidateEdges, Layout, layout_of
from tacit.graph.links import Link, Sigmoid, SineSquared, Unlinked
from tacit.graph.memory import free_bytes, require_memory, step_bytes
from tacit.graph.mixture import Blocks, MixtureGraph
from tacit.graph.nearest import correlated_pairs, nearest_candidates
from tacit.graph.operators import (
    AnyGraphs,
    CandidateGraphs,
    aggregate,
    boolean_powers,
    candidate_powers,
    disjoint_edges,
    nodes_reaching,
    powers,
    reachability,
    relaxed_powers,
    soft_powers,
    walks_within,
    weigh_edges,
    weight_within_reach,
    with_self_loops,
)
from tacit.graph.priors import EdgePrior, density_prior
from tacit.graph.rules_file import read_edge_rules

__all__ = [
    "ANY_LAG",
    "PRIOR_DEVIATION",
    "AllPairs",
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
    "Layout",
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
    "disjoint_edges",
    "free_bytes",
    "layout_of",
    "nearest_candidates",
    "nodes_reaching",
    "powers",
    "reachability",
    "read_edge_rules",
    "relaxed_powers",
    "require_memory",
    "shrinkage_of",
    "soft_powers",
    "step_bytes",
    "walks_within",
    "weigh_edges",
    "weight_within_reach",
    "with_self_loops",
]

"""Distributions over graphs, candidate edges, rules and priors for edges."""

from tacit.graph.bernoulli import BernoulliGraph
from tacit.graph.candidate_edges import (
    AnyGraphs,
    CandidateEdges,
    CandidateGraphs,
    aggregate,
    boolean_powers,
    candidate_powers,
    free_bytes,
    reachability,
    require_memory,
    soft_powers,
    step_bytes,
    walks_within,
)
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
from tacit.graph.links import Link, Sigmoid, SineSquared, Unlinked
from tacit.graph.mixture import Blocks, MixtureGraph
from tacit.graph.nearest import correlated_pairs, nearest_candidates
from tacit.graph.priors import EdgePrior, density_prior
from tacit.graph.rules_file import read_edge_rules

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

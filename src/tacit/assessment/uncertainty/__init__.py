"""Uncertainty of edge probabilities: standard errors, intervals, decisions and reliability."""

from tacit.assessment.uncertainty.acting import Acting, acting
from tacit.assessment.uncertainty.acting_likelihood import acting_by_likelihood
from tacit.assessment.uncertainty.bootstrap import (
    FEWEST_REPLICAS,
    QUICK_SANDWICH,
    STARTS,
    EdgeUncertainty,
    bootstrap,
    short,
)
from tacit.assessment.uncertainty.boundary import rounded_at_boundary
from tacit.assessment.uncertainty.comparison import adopt, loss_difference, mean_loss
from tacit.assessment.uncertainty.decisions import (
    ACTS,
    ALWAYS_ABOVE,
    FDR,
    LISTED_FROM,
    EdgeTests,
    WrongEdges,
    acting_words,
    expected_wrong_edges,
    false_discoveries,
    listed_edges,
    significant_edges,
)
from tacit.assessment.uncertainty.direct import estimate_acting, has_direct_estimate
from tacit.assessment.uncertainty.gate_tests import MOST_GATES, choose_gates
from tacit.assessment.uncertainty.intervals import EdgeIntervals, edge_intervals, intervals_around
from tacit.assessment.uncertainty.reliability import Reliability, reliability
from tacit.assessment.uncertainty.resamples import Kept, resample_rows
from tacit.assessment.uncertainty.residual import residual_deviation
from tacit.assessment.uncertainty.sandwich import MOST_PARAMETERS, Sandwich, sandwich

__all__ = [
    "ACTS",
    "ALWAYS_ABOVE",
    "FDR",
    "FEWEST_REPLICAS",
    "LISTED_FROM",
    "MOST_GATES",
    "MOST_PARAMETERS",
    "QUICK_SANDWICH",
    "STARTS",
    "Acting",
    "EdgeIntervals",
    "EdgeTests",
    "EdgeUncertainty",
    "Kept",
    "Reliability",
    "Sandwich",
    "WrongEdges",
    "acting",
    "acting_by_likelihood",
    "acting_words",
    "adopt",
    "bootstrap",
    "choose_gates",
    "edge_intervals",
    "estimate_acting",
    "expected_wrong_edges",
    "false_discoveries",
    "has_direct_estimate",
    "intervals_around",
    "listed_edges",
    "loss_difference",
    "mean_loss",
    "reliability",
    "resample_rows",
    "residual_deviation",
    "rounded_at_boundary",
    "sandwich",
    "short",
    "significant_edges",
]

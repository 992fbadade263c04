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
from tacit.assessment.uncertainty.boundary import adopt, loss_difference, mean_loss, rounded_at_boundary
from tacit.assessment.uncertainty.decisions import (
    ALWAYS_ABOVE,
    EdgeIntervals,
    EdgeTests,
    Reliability,
    WrongEdges,
    acting_words,
    adjusted_p_values,
    edge_intervals,
    expected_wrong_edges,
    intervals_around,
    reliability,
    significant_edges,
)
from tacit.assessment.uncertainty.direct import estimate_acting, has_direct_estimate
from tacit.assessment.uncertainty.resamples import Kept, resample_rows
from tacit.assessment.uncertainty.sandwich import MOST_PARAMETERS, Sandwich, residual_deviation, sandwich

__all__ = [
    "ALWAYS_ABOVE",
    "FEWEST_REPLICAS",
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
    "adjusted_p_values",
    "adopt",
    "bootstrap",
    "edge_intervals",
    "estimate_acting",
    "expected_wrong_edges",
    "has_direct_estimate",
    "intervals_around",
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

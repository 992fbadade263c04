"""How well are edge probabilities known, and what follows: standard errors, intervals, decisions, reliability."""

from tacit.uncertainty.acting import Acting, acting
from tacit.uncertainty.bagging import adopt, adopt_bagged
from tacit.uncertainty.bootstrap import EdgeUncertainty, bootstrap
from tacit.uncertainty.comparison import mean_loss
from tacit.uncertainty.decisions import (
    FDR,
    EdgeTests,
    WrongEdges,
    expected_wrong_edges,
    false_discoveries,
    listed_edges,
    significant_edges,
)
from tacit.uncertainty.gate_data import tells_acting
from tacit.uncertainty.intervals import EdgeIntervals, edge_intervals, intervals_around
from tacit.uncertainty.reliability import Reliability, reliability
from tacit.uncertainty.resampled_edges import Kept
from tacit.uncertainty.sandwich import Sandwich, sandwich

__all__ = [
    "FDR",
    "Acting",
    "EdgeIntervals",
    "EdgeTests",
    "EdgeUncertainty",
    "Kept",
    "Reliability",
    "Sandwich",
    "WrongEdges",
    "acting",
    "adopt",
    "adopt_bagged",
    "bootstrap",
    "edge_intervals",
    "expected_wrong_edges",
    "false_discoveries",
    "intervals_around",
    "listed_edges",
    "mean_loss",
    "reliability",
    "sandwich",
    "significant_edges",
    "tells_acting",
]

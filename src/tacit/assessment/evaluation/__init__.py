"""Scores of forecasts, and of edge probabilities if the truth is known."""

from tacit.assessment.evaluation.draws import SharedDraws
from tacit.assessment.evaluation.forecasts import (
    LEVELS,
    NUM_GRAPHS,
    ForecastScores,
    PointName,
    discrete_nodes,
    forecast_scores,
    gaussian_coverage,
    gaussian_crps,
    gaussian_scores,
    mean_prediction,
    persistence,
    point_prediction,
    residual_sigmas,
)
from tacit.assessment.evaluation.metrics import (
    PAIRWISE_GRAPHS,
    edge_prob_errors,
    oracle_edge_prob_mae,
    predictive_metrics,
)
from tacit.assessment.evaluation.paired import PairedGain, blocks_of, paired_gain, target_spreads

__all__ = [
    "LEVELS",
    "NUM_GRAPHS",
    "PAIRWISE_GRAPHS",
    "ForecastScores",
    "PairedGain",
    "PointName",
    "SharedDraws",
    "blocks_of",
    "discrete_nodes",
    "edge_prob_errors",
    "forecast_scores",
    "gaussian_coverage",
    "gaussian_crps",
    "gaussian_scores",
    "mean_prediction",
    "oracle_edge_prob_mae",
    "paired_gain",
    "persistence",
    "point_prediction",
    "predictive_metrics",
    "residual_sigmas",
    "target_spreads",
]

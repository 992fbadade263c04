"""How good is an answer, with and without the truth at hand."""

from tacit.evaluation.draws import SharedDraws
from tacit.evaluation.forecasts import ForecastScores, forecast_scores
from tacit.evaluation.gaussian import gaussian_coverage, gaussian_crps, gaussian_scores, residual_sigmas
from tacit.evaluation.metrics import edge_prob_errors, oracle_edge_prob_mae, predictive_metrics
from tacit.evaluation.paired import PairedGain, blocks_of, paired_gain, target_spreads
from tacit.evaluation.point import mean_prediction, persistence, point_prediction

__all__ = [
    "ForecastScores",
    "PairedGain",
    "SharedDraws",
    "blocks_of",
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

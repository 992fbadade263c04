"""How good is an answer, with and without the truth at hand."""

from tacit.evaluation.metrics import edge_prob_errors, oracle_edge_prob_mae, predictive_metrics
from tacit.evaluation.point import point_prediction

__all__ = ["edge_prob_errors", "oracle_edge_prob_mae", "point_prediction", "predictive_metrics"]

"""Gradients for the edge probabilities, through graphs that cannot be differentiated."""

from tacit.estimators.credit import Credit, GlobalCredit, ReceptiveFieldCredit
from tacit.estimators.locality import check_locality
from tacit.estimators.score_function import ScoreFunction

__all__ = ["Credit", "GlobalCredit", "ReceptiveFieldCredit", "ScoreFunction", "check_locality"]

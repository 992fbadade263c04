"""Estimators of the gradient for the edge probabilities, through discrete graphs."""

from tacit.estimators.combination import CreditName, choose_credit, require_combination
from tacit.estimators.credit import Credit, GlobalCredit, OwnRowCredit, ReceptiveFieldCredit
from tacit.estimators.flips import check_locality, check_relaxation
from tacit.estimators.protocol import Estimator, EstimatorOptions
from tacit.estimators.relaxed import Concrete, StraightThrough
from tacit.estimators.score_function import DisARM, ScoreFunction

__all__ = [
    "Concrete",
    "Credit",
    "CreditName",
    "DisARM",
    "Estimator",
    "EstimatorOptions",
    "GlobalCredit",
    "OwnRowCredit",
    "ReceptiveFieldCredit",
    "ScoreFunction",
    "StraightThrough",
    "check_locality",
    "check_relaxation",
    "choose_credit",
    "require_combination",
]

"""Estimators of the gradient for the edge probabilities, through discrete graphs."""

from tacit.estimators.antithetic import DisARM
from tacit.estimators.combination import CreditName, choose_credit, require_combination
from tacit.estimators.concrete import Concrete
from tacit.estimators.credit import Credit, GlobalCredit, OwnRowCredit, ReceptiveFieldCredit
from tacit.estimators.flips import check_locality, check_relaxation
from tacit.estimators.protocol import Estimator, EstimatorOptions
from tacit.estimators.score_function import ScoreFunction
from tacit.estimators.straight_through import StraightThrough

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

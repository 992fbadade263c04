"""Observation models p(y | f(x, A), x): the noise of the targets."""

from tacit.observation.bernoulli import BernoulliTargets
from tacit.observation.gaussian import GaussianNoise, HeadGaussianNoise, InputGaussianNoise
from tacit.observation.log_normal import LogNormalNoise
from tacit.observation.mixed import MixedObservation
from tacit.observation.model import Derivatives, ObservationModel, Support, TargetValues
from tacit.observation.negative_binomial import NegativeBinomialCounts
from tacit.observation.none import NoNoise
from tacit.observation.ordered import OrderedCategories
from tacit.observation.poisson import PoissonCounts
from tacit.observation.positive import PositiveMean
from tacit.observation.simultaneous import SimultaneousNoise
from tacit.observation.student_t import StudentTNoise

__all__ = [
    "BernoulliTargets",
    "Derivatives",
    "GaussianNoise",
    "HeadGaussianNoise",
    "InputGaussianNoise",
    "LogNormalNoise",
    "MixedObservation",
    "NegativeBinomialCounts",
    "NoNoise",
    "ObservationModel",
    "OrderedCategories",
    "PoissonCounts",
    "PositiveMean",
    "SimultaneousNoise",
    "StudentTNoise",
    "Support",
    "TargetValues",
]

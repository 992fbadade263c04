"""Observation models p(y | f(x, A), x): the noise of the targets."""

from tacit.observation.classes import BernoulliTargets, OrderedCategories
from tacit.observation.counts import NegativeBinomialCounts, PoissonCounts
from tacit.observation.gaussian import GaussianNoise, HeadGaussianNoise, InputGaussianNoise, SimultaneousNoise
from tacit.observation.log_normal import LogNormalNoise
from tacit.observation.mixed import MixedObservation
from tacit.observation.model import Derivatives, NoNoise, ObservationModel, PositiveMean, Support, TargetValues
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

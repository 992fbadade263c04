"""Observation models p(y | f(x, A), x): the noise of the targets."""

from tacit.observation.gaussian import GaussianNoise, HeadGaussianNoise, InputGaussianNoise
from tacit.observation.model import ObservationModel, Support, TargetValues
from tacit.observation.none import NoNoise
from tacit.observation.poisson import PoissonCounts
from tacit.observation.simultaneous import SimultaneousNoise

__all__ = [
    "GaussianNoise",
    "HeadGaussianNoise",
    "InputGaussianNoise",
    "NoNoise",
    "ObservationModel",
    "PoissonCounts",
    "SimultaneousNoise",
    "Support",
    "TargetValues",
]

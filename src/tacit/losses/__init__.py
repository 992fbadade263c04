"""Losses between what the model would produce and what was seen."""

from tacit.losses.distribution import MMD, EnergyScore, KernelScore
from tacit.losses.kernels import Gaussian, Kernel, Laplacian, NegativeDistance, RationalQuadratic
from tacit.losses.terms import Loss, LossTerms

__all__ = [
    "MMD",
    "EnergyScore",
    "Gaussian",
    "Kernel",
    "KernelScore",
    "Laplacian",
    "Loss",
    "LossTerms",
    "NegativeDistance",
    "RationalQuadratic",
]

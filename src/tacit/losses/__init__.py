"""Losses between the predicted distribution and the targets."""

from tacit.losses.distribution import MMD, EnergyScore, KernelScore, NoisyEnergyScore
from tacit.losses.expected_error import ELBO, ExpectedError, NodewiseExpectedError, PointMSE
from tacit.losses.kernels import (
    Gaussian,
    Kernel,
    KernelMean,
    Laplacian,
    NegativeDistance,
    RationalQuadratic,
    median_distance,
)
from tacit.losses.log_score import LogScore
from tacit.losses.sampled import LossOptions, LossPreset, Part, SampledLoss
from tacit.losses.terms import Loss, LossTerms, unit_mean

__all__ = [
    "ELBO",
    "MMD",
    "EnergyScore",
    "ExpectedError",
    "Gaussian",
    "Kernel",
    "KernelMean",
    "KernelScore",
    "Laplacian",
    "LogScore",
    "Loss",
    "LossOptions",
    "LossPreset",
    "LossTerms",
    "NegativeDistance",
    "NodewiseExpectedError",
    "NoisyEnergyScore",
    "Part",
    "PointMSE",
    "RationalQuadratic",
    "SampledLoss",
    "median_distance",
    "unit_mean",
]

"""Regressions of single nodes whose edges have weights and gates, fitted together by the exact likelihood."""

from tacit.local.batch import GatedBatch
from tacit.local.dependence import LEVEL, QUANTILE, Dependence
from tacit.local.fits import fit_gated, fit_gates
from tacit.local.gated_fit import GatedFit
from tacit.local.gated_regression import (
    MOST_LOGIT,
    NOISE_DEVIATION,
    SPREAD_DEVIATION,
    GatedRegression,
    fill_noise,
    noise_vector,
    states,
)
from tacit.local.inference import CLEAR, Inference, is_clear, safe_inverse
from tacit.local.newton import maximise

__all__ = [
    "CLEAR",
    "LEVEL",
    "MOST_LOGIT",
    "NOISE_DEVIATION",
    "QUANTILE",
    "SPREAD_DEVIATION",
    "Dependence",
    "GatedBatch",
    "GatedFit",
    "GatedRegression",
    "Inference",
    "fill_noise",
    "fit_gated",
    "fit_gates",
    "is_clear",
    "maximise",
    "noise_vector",
    "safe_inverse",
    "states",
]

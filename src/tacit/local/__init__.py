"""Regressions of single nodes whose edges have weights and gates, fitted together by the exact likelihood."""

from tacit.local.batch import GatedBatch
from tacit.local.covariance import edge_covariances, logit_errors, safe_inverse
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
from tacit.local.newton import maximise

__all__ = [
    "MOST_LOGIT",
    "NOISE_DEVIATION",
    "SPREAD_DEVIATION",
    "GatedBatch",
    "GatedFit",
    "GatedRegression",
    "edge_covariances",
    "fill_noise",
    "fit_gated",
    "fit_gates",
    "logit_errors",
    "maximise",
    "noise_vector",
    "safe_inverse",
    "states",
]

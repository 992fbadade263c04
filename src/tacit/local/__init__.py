"""Regressions of single nodes whose edges have weights and gates: their fits, errors, tests and initial values."""

from tacit.local.batch import GatedBatch, fit_gated, fit_gates
from tacit.local.dependence import LEVEL, QUANTILE, Dependence
from tacit.local.equations import CERTAIN, LEAST, MeanEquations, has_linear_mean, mean_equations, own_columns
from tacit.local.gates import MOST_GATES, NodeGates, choose_gates, gate_scales, judge_gates
from tacit.local.inference import (
    CLEAR,
    Difference,
    Inference,
    is_clear,
    paired_difference,
    safe_inverse,
)
from tacit.local.model import LocalModel, has_gated_weights, has_likelihood, has_moment_estimate
from tacit.local.moments import NodeMoments, RatioErrors, fit_moments, ratio_errors
from tacit.local.newton import maximise
from tacit.local.regimes import BlockLikelihood
from tacit.local.regression import (
    MOST_LOGIT,
    NOISE_DEVIATION,
    SPREAD_DEVIATION,
    GatedFit,
    GatedRegression,
    fill_noise,
    noise_vector,
    states,
)
from tacit.local.ridge import LocalRidge, is_affordable, local_ridge
from tacit.local.starts import (
    edge_start,
    filter_start,
    regression_steps,
    start_at_regression,
    start_ridge,
    steps_read,
)

__all__ = [
    "CERTAIN",
    "CLEAR",
    "LEAST",
    "LEVEL",
    "MOST_GATES",
    "MOST_LOGIT",
    "NOISE_DEVIATION",
    "QUANTILE",
    "SPREAD_DEVIATION",
    "BlockLikelihood",
    "Dependence",
    "Difference",
    "GatedBatch",
    "GatedFit",
    "GatedRegression",
    "Inference",
    "LocalModel",
    "LocalRidge",
    "MeanEquations",
    "NodeGates",
    "NodeMoments",
    "RatioErrors",
    "choose_gates",
    "edge_start",
    "fill_noise",
    "filter_start",
    "fit_gated",
    "fit_gates",
    "fit_moments",
    "gate_scales",
    "has_gated_weights",
    "has_likelihood",
    "has_linear_mean",
    "has_moment_estimate",
    "is_affordable",
    "is_clear",
    "judge_gates",
    "local_ridge",
    "maximise",
    "mean_equations",
    "noise_vector",
    "own_columns",
    "paired_difference",
    "ratio_errors",
    "regression_steps",
    "safe_inverse",
    "start_at_regression",
    "start_ridge",
    "states",
    "steps_read",
]

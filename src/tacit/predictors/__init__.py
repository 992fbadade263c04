"""Predictors f(x, A): any ``torch.nn.Module`` that maps inputs and graphs to samples."""

from tacit.predictors.convolution import ConvolutionStack
from tacit.predictors.filter import GraphFilter, LinearParts
from tacit.predictors.hops import HopPredictor
from tacit.predictors.kinds import PredictorKind, Sizes
from tacit.predictors.network import GraphNetwork
from tacit.predictors.protocol import (
    Predictor,
    edge_buffers_of,
    edge_parameters_of,
    initial_parameters,
    num_hops_of,
    numbers_per_target_of,
    random_parameters,
    relaxed_call,
)
from tacit.predictors.pyg import PyGPredictor
from tacit.predictors.series import SeriesLayout
from tacit.predictors.simultaneous import SimultaneousFilter, sources_first

__all__ = [
    "ConvolutionStack",
    "GraphFilter",
    "GraphNetwork",
    "HopPredictor",
    "LinearParts",
    "Predictor",
    "PredictorKind",
    "PyGPredictor",
    "SeriesLayout",
    "SimultaneousFilter",
    "Sizes",
    "edge_buffers_of",
    "edge_parameters_of",
    "initial_parameters",
    "num_hops_of",
    "numbers_per_target_of",
    "random_parameters",
    "relaxed_call",
    "sources_first",
]

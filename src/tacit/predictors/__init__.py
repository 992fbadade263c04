"""Predictors f(x, A): any ``torch.nn.Module`` that maps inputs and graphs to samples."""

from tacit.predictors.convolution import ConvolutionStack
from tacit.predictors.hops import HopPredictor
from tacit.predictors.polynomial import PolynomialFilter
from tacit.predictors.protocol import Predictor, initial_parameters, num_hops_of, relaxed_call

__all__ = [
    "ConvolutionStack",
    "HopPredictor",
    "PolynomialFilter",
    "Predictor",
    "initial_parameters",
    "num_hops_of",
    "relaxed_call",
]

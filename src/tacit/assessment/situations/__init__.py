"""Edges that depend on the situation, and how often they act in each situation."""

from tacit.assessment.situations.likelihood import vary_by_likelihood
from tacit.assessment.situations.trained import conditional_model, vary_by_training
from tacit.assessment.situations.varying import (
    SituationProbs,
    VaryingEdges,
    called_varying,
    situation_probs,
)
from tacit.assessment.situations.wald import EdgeNumbers, edge_numbers

__all__ = [
    "EdgeNumbers",
    "SituationProbs",
    "VaryingEdges",
    "called_varying",
    "conditional_model",
    "edge_numbers",
    "situation_probs",
    "vary_by_likelihood",
    "vary_by_training",
]

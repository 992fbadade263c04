"""Edges that depend on the situation, and how often they act in each situation."""

from tacit.assessment.situations.likelihood import vary_by_likelihood
from tacit.assessment.situations.training import vary_by_training
from tacit.assessment.situations.varying import (
    SituationProbs,
    VaryingEdges,
    called_varying,
    situation_probs,
)

__all__ = [
    "SituationProbs",
    "VaryingEdges",
    "called_varying",
    "situation_probs",
    "vary_by_likelihood",
    "vary_by_training",
]

"""Regimes of a graph: their number, their weights, and the regime of each observation."""

from tacit.assessment.regimes.fitted import MOST_REGIMES, Estimate, RegimeFit, RegimeStep
from tacit.assessment.regimes.likelihood import has_regime_likelihood, regimes_by_likelihood
from tacit.assessment.regimes.posterior import regime_posterior
from tacit.assessment.regimes.training import regimes_by_training

__all__ = [
    "MOST_REGIMES",
    "Estimate",
    "RegimeFit",
    "RegimeStep",
    "has_regime_likelihood",
    "regime_posterior",
    "regimes_by_likelihood",
    "regimes_by_training",
]

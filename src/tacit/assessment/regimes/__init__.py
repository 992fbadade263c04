"""Regimes of a graph: their number, their weights, and the regime of each observation."""

from tacit.assessment.regimes.fitted import Estimate, RegimeFit, RegimeStep
from tacit.assessment.regimes.fitting import MOST_REGIMES, fit_regimes
from tacit.assessment.regimes.likelihood import has_regime_likelihood, regimes_by_likelihood
from tacit.assessment.regimes.matching import match_regimes
from tacit.assessment.regimes.posterior import regime_posterior

__all__ = [
    "MOST_REGIMES",
    "Estimate",
    "RegimeFit",
    "RegimeStep",
    "fit_regimes",
    "has_regime_likelihood",
    "match_regimes",
    "regime_posterior",
    "regimes_by_likelihood",
]

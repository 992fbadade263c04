"""Plots of fitted estimators and run directories on matplotlib axes, in scikit-learn's display convention."""

from tacit.plots.checks import CalibrationDisplay, TrainingDisplay
from tacit.plots.display import Display
from tacit.plots.effect import EffectDisplay
from tacit.plots.forecast import ForecastDisplay
from tacit.plots.graph import EdgeMatrixDisplay, GraphDisplay

__all__ = [
    "CalibrationDisplay",
    "Display",
    "EdgeMatrixDisplay",
    "EffectDisplay",
    "ForecastDisplay",
    "GraphDisplay",
    "TrainingDisplay",
]

"""Plots of fitted estimators and run directories on matplotlib axes, in scikit-learn's display convention."""

from tacit.plots.calibration import CalibrationDisplay
from tacit.plots.display import Display
from tacit.plots.effect import EffectDisplay
from tacit.plots.forecast import ForecastDisplay
from tacit.plots.graph import GraphDisplay
from tacit.plots.matrix import EdgeMatrixDisplay
from tacit.plots.training import TrainingDisplay

__all__ = [
    "CalibrationDisplay",
    "Display",
    "EdgeMatrixDisplay",
    "EffectDisplay",
    "ForecastDisplay",
    "GraphDisplay",
    "TrainingDisplay",
]

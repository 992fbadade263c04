"""Training: many replicas of one model, by stochastic gradients."""

from tacit.training.checkpoint import Checkpoints
from tacit.training.fit import fit
from tacit.training.listener import Listener
from tacit.training.loop import Monitor, Trace
from tacit.training.model import LatentGraphModel
from tacit.training.result import Epoch, FitResult, Progress, Replica
from tacit.training.schedule import CosineDecay, Schedule, StepDecay
from tacit.training.settings import FitSettings
from tacit.training.warm_start import filter_start, ridge_start

__all__ = [
    "Checkpoints",
    "CosineDecay",
    "Epoch",
    "FitResult",
    "FitSettings",
    "LatentGraphModel",
    "Listener",
    "Monitor",
    "Progress",
    "Replica",
    "Schedule",
    "StepDecay",
    "Trace",
    "filter_start",
    "fit",
    "ridge_start",
]

"""Training of several replicas of one model by stochastic gradients.

A training step is implemented in ``step.py`` (body and parameter update), ``gradient.py`` and ``state.py``.
"""

from tacit.training.checkpoint import Checkpoints
from tacit.training.fit import fit
from tacit.training.gradient import LiftName, constants_of, gradient_of_one, trainable_names
from tacit.training.loop import Monitor, Trace
from tacit.training.model import LatentGraphModel, pair_losses, with_fixed_graph, with_graph
from tacit.training.processes import Ended, Processes, from_the_first, meet_in_step
from tacit.training.result import (
    TOO_EARLY,
    Epoch,
    FitResult,
    Listener,
    Progress,
    Replica,
    densify,
    densify_result,
    late_fall,
)
from tacit.training.settings import CosineDecay, FitSettings, Schedule, StepDecay

__all__ = [
    "TOO_EARLY",
    "Checkpoints",
    "CosineDecay",
    "Ended",
    "Epoch",
    "FitResult",
    "FitSettings",
    "LatentGraphModel",
    "LiftName",
    "Listener",
    "Monitor",
    "Processes",
    "Progress",
    "Replica",
    "Schedule",
    "StepDecay",
    "Trace",
    "constants_of",
    "densify",
    "densify_result",
    "fit",
    "from_the_first",
    "gradient_of_one",
    "late_fall",
    "meet_in_step",
    "pair_losses",
    "trainable_names",
    "with_fixed_graph",
    "with_graph",
]

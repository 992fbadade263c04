"""Training of several replicas of one model by stochastic gradients.

A training step is implemented in ``step.py`` (body and parameter update), ``gradient.py`` and ``state.py``.
"""

from tacit.training.checkpoint import Checkpoints
from tacit.training.convergence import TOO_EARLY, late_fall
from tacit.training.densify import densify, densify_result
from tacit.training.fit import fit
from tacit.training.fixed_graph import Difference, pair_losses, paired_difference, with_fixed_graph, with_graph
from tacit.training.gradient import LiftName, constants_of, gradient_of_one, trainable_names
from tacit.training.local_ridge import LocalRidge, is_affordable, local_ridge
from tacit.training.loop import Monitor, Trace
from tacit.training.model import LatentGraphModel
from tacit.training.node_regressions import (
    NodeRegressions,
    filter_parameters,
    fitted_by_likelihood,
    has_gated_weights,
    has_likelihood,
)
from tacit.training.processes import Ended, Processes, from_the_first, meet_in_step
from tacit.training.result import Epoch, FitResult, Listener, Progress, Replica
from tacit.training.settings import CosineDecay, FitSettings, Schedule, StepDecay
from tacit.training.warm_start import (
    filter_start,
    regression_table,
    ridge_start,
    start_at_regression,
    steps_read,
    table_edge_start,
    table_filter_start,
    table_ridge,
)

__all__ = [
    "TOO_EARLY",
    "Checkpoints",
    "CosineDecay",
    "Difference",
    "Ended",
    "Epoch",
    "FitResult",
    "FitSettings",
    "LatentGraphModel",
    "LiftName",
    "Listener",
    "LocalRidge",
    "Monitor",
    "NodeRegressions",
    "Processes",
    "Progress",
    "Replica",
    "Schedule",
    "StepDecay",
    "Trace",
    "constants_of",
    "densify",
    "densify_result",
    "filter_parameters",
    "filter_start",
    "fit",
    "fitted_by_likelihood",
    "from_the_first",
    "gradient_of_one",
    "has_gated_weights",
    "has_likelihood",
    "is_affordable",
    "late_fall",
    "local_ridge",
    "meet_in_step",
    "pair_losses",
    "paired_difference",
    "regression_table",
    "ridge_start",
    "start_at_regression",
    "steps_read",
    "table_edge_start",
    "table_filter_start",
    "table_ridge",
    "trainable_names",
    "with_fixed_graph",
    "with_graph",
]

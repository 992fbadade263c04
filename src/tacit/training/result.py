r"""The result of a fit: convergence, callbacks, and the conversion from candidates to all pairs.

The result of a fit, and the callbacks that report its progress.

A convergence check of a training, from the losses of its epochs.

A learning rate that decreases to 0 makes every curve flat at its end, so progress is measured in learning rate: after
epoch $e$ it is $p_e = \sum_{k \le e} \eta_k / \sum_k \eta_k$. With $v_e$ the validation loss of the best replica and
$l$ the last epoch with $p_l \le 0.8$, training stopped too early if the loss still decreased in the last fifth,

$$v_l - v_E > 0.05\, |v_E| \quad\text{and}\quad v_l - v_E > 0.05\, (v_1 - v_E)$$

In default fits the loss decreases by at most 2% there. A fit without epochs was computed in closed form, and a single
epoch is not enough for the check.

Conversion from a table of candidates to all pairs of nodes: the same model, with all other edges fixed at 0.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

import torch
from pydantic import FiniteFloat, NonNegativeInt
from torch import nn

from tacit.graph import EdgePrior
from tacit.predictors import edge_buffers_of, edge_parameters_of
from tacit.training.gradient import Stack
from tacit.training.model import LatentGraphModel

LATE = 0.8  # progress at which the last part begins
STILL_FALLING = 0.05  # threshold, as a share of the loss and of its total decrease
TOO_EARLY = (
    "Training stopped too early: in its last part the validation loss still decreased by {fall:.0%} of its value. "
    "Raise epochs, or use the default training options."
)


def late_fall(learning_rates: Sequence[float], losses: Sequence[float | None]) -> float:
    """Return the relative decrease of the loss in the last part; 0 if training was long enough.

    >>> round(late_fall([0.1] * 5, [1.0, 0.5, 0.4, 0.3, 0.2]), 3)
    0.5
    >>> late_fall([0.1] * 5, [1.0, 0.5, 0.4, 0.201, 0.2])
    0.0
    """
    known = [loss for loss in losses if loss is not None]
    if len(known) < max(2, len(losses)):
        return 0.0
    done = list(accumulate(learning_rates))
    late = max(0, sum(part <= LATE * done[-1] * (1 + 1e-9) for part in done) - 1)
    fall, end = known[late] - known[-1], abs(known[-1])
    return fall / end if fall > STILL_FALLING * end > 0 and fall > STILL_FALLING * (known[0] - known[-1]) else 0.0


@dataclass(frozen=True)
class Progress:
    """The progress of a training, for a progress bar; ``loss`` is the lowest of the replicas."""

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float | None


def _ignore(line: str) -> None:
    """Ignore a line."""


@dataclass(frozen=True)
class Listener:
    """Callbacks that report the progress of a job.

    ``stage``     the current stage, as "name: description"
    ``step``      each training step
    ``finished``  the name of a finished stage, and its seconds
    ``say``       a line to show before the job ends
    """

    stage: Callable[[str], None] = field(default=lambda _: None)
    step: Callable[[Progress], None] = field(default=lambda _: None)
    finished: Callable[[str, float], None] = field(default=lambda _, __: None)
    say: Callable[[str], None] = field(default=_ignore)

    @property
    def shows_lines(self) -> bool:
        """Whether the lines of ``say`` are shown."""
        return self.say is not _ignore


@dataclass(frozen=True)
class Epoch:
    """The record of one epoch; lists have one entry per replica, None for dropped replicas."""

    epoch: NonNegativeInt
    learning_rate: FiniteFloat
    train_loss: list[float | None]
    validation_loss: list[float | None]
    seconds: FiniteFloat
    monitored: dict[str, list[float | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class Replica:
    """The result of one replica; ``dropped_after`` is the epoch after which it was dropped, or None."""

    seed: int
    validation_loss: float
    dropped_after: int | None


@dataclass(frozen=True)
class FitResult:
    """The trained model (the replica with the lowest validation loss) and the history of the training.

    ``parameters``     stacked parameters of all replicas (for a dropped replica, those at which it was dropped)
    ``train_seconds``  training time without ``compile_seconds``
    ``trace``          the records of a trace, if one was requested
    """

    model: LatentGraphModel
    best: int
    replicas: list[Replica]
    history: list[Epoch]
    parameters: Stack
    steps: int
    train_seconds: float
    compile_seconds: float
    interrupted: bool
    warnings: list[str]
    trace: list[dict[str, Any]] = field(default_factory=list)

    @property
    def late_fall(self) -> float:
        """Relative decrease of the validation loss in the last part; 0 if training was long enough."""
        rates = [epoch.learning_rate for epoch in self.history]
        return late_fall(rates, [epoch.validation_loss[self.best] for epoch in self.history])


def densify(model: LatentGraphModel) -> LatentGraphModel:
    """Return a model over all pairs of nodes: a copy, or the model itself if it has them."""
    layout, graph = model.graph.layout, model.graph.over_all_pairs()
    if graph is model.graph:
        return model
    full = copy.deepcopy(model)
    full.graph = graph
    for module in full.predictor.modules():
        for name in edge_parameters_of(module):
            values = module.get_parameter(name)
            setattr(module, name, nn.Parameter(layout.in_matrix(values.detach()), values.requires_grad))
        for name in edge_buffers_of(module):
            setattr(module, name, layout.in_matrix(module.get_buffer(name)))
    if model.prior is not None and model.prior.probs.ndim:
        edges = None if model.prior.edges is None else layout.in_matrix(model.prior.edges, fill=False)
        full.prior = EdgePrior(layout.in_matrix(model.prior.probs, fill=0.5), model.prior.weight, edges)
    return full


def densify_result(result: FitResult) -> FitResult:
    """Return the result of a fit with all parameters over all pairs of nodes."""
    graph = result.model.graph
    fills = {f"graph.{graph.link.parameter}": float(graph.link.raw(torch.zeros(())))}
    fills |= {
        f"predictor.{path}.{name}".replace("..", "."): 0.0
        for path, module in result.model.predictor.named_modules()
        for name in edge_parameters_of(module)
    }
    parameters = {
        name: graph.layout.in_matrix(stack, fills[name], axis=1) if name in fills else stack
        for name, stack in result.parameters.items()
    }
    return replace(result, model=densify(result.model), parameters=parameters)

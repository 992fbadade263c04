"""Settings of a fit, schedules of the learning rate, and the numbers that vary from step to step."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from torch import Tensor

from tacit.errors import require, require_int
from tacit.training.model import LatentGraphModel

# The highest floor of the edge probabilities, and the share of the training over which it decreases to 0.
# Measured on the 12-node system (28,000 pairs, MMD at node scope, 10 epochs of a cosine from 0.1). Runs in which an
# edge got stuck at 0: with 16 shared graphs 2 of 8 without the floor and none with it, with 8 graphs 6 of 8 and none,
# with 4 graphs 16 of 16 and none, but 2 if the floor ended after 0.3 of the training. A floor of 0.05 that decreases
# over the whole training also prevents this, but nearly doubles the error of the good runs. With 48 nodes (16,000
# pairs, 5 epochs, 3 runs) and 32 shared graphs: no edge stuck and an error of 0.0049, without the floor 2 to 7 edges
# and 0.0070, with 0.005 none and 0.0045; with 8 graphs 1 to 6 edges stuck, without 23 to 37, with 0.005 11 to 20.
HIGHEST_FLOOR, FLOOR_PART = 0.02, 0.4


@runtime_checkable
class Schedule(Protocol):
    """Interface of learning rate schedules, called before every step."""

    def __call__(self, epoch: float, epochs: int) -> float:
        """Return the learning rate at a (fractional) epoch of ``epochs``."""
        ...


@dataclass(frozen=True)
class StepDecay:
    """A constant learning rate, then a lower one; the defaults are the paper's.

    >>> [StepDecay()(epoch, 10) for epoch in (0, 4.9, 5)]
    [0.05, 0.05, 0.01]
    """

    first: float = 0.05
    then: float = 0.01
    change_epoch: float = 5

    def __post_init__(self) -> None:
        for name in ("first", "then"):
            _require_rate(name, getattr(self, name))

    def __call__(self, epoch: float, epochs: int) -> float:  # noqa: ARG002 - the other schedules need it
        """Return the learning rate at an epoch."""
        return self.first if epoch < self.change_epoch else self.then


@dataclass(frozen=True)
class CosineDecay:
    """A cosine schedule from ``first`` to ``last`` at the end of training.

    >>> [round(CosineDecay(0.1, 0.0)(epoch, 10), 3) for epoch in (0, 5, 10)]
    [0.1, 0.05, 0.0]
    """

    first: float = 0.1
    last: float = 0.0

    def __post_init__(self) -> None:
        _require_rate("first", self.first)
        require(
            0 <= self.last <= self.first,
            f"last must be between 0 and first={self.first}, got {self.last}; lower last",
        )

    def __call__(self, epoch: float, epochs: int) -> float:
        """Return the learning rate at an epoch."""
        return self.last + (self.first - self.last) * 0.5 * (1 + math.cos(math.pi * epoch / epochs))


@dataclass(frozen=True)
class FitSettings:
    """Settings of a fit: epochs, batches, step sizes, averaging and the dropping of bad replicas.

    ``predictor_learning_rate``  initial learning rate of the predictor, which then decreases with the schedule; None
                                 for the schedule's rate
    ``average_fraction``         the final parameters are the mean over this last share of the steps; 0 uses the last
                                 step
    ``min_draws_per_edge``       sets a floor of the edge probabilities, so that every edge continues to be drawn: at
                                 first, the expected number of graphs per step that contain a given edge is at least
                                 this (:func:`edge_floor`); 0 for no floor
    ``halve_after``              epochs after which the worse half of the replicas is dropped (by validation loss)
    ``patience``                 early stopping: stop if no replica has improved for this many epochs, and use each
                                 replica's best epoch; None trains to the end and uses the final parameters
    """

    epochs: int = 10
    batch_size: int = 128
    schedule: Schedule = field(default_factory=CosineDecay)
    predictor_learning_rate: float | None = None
    average_fraction: float = 0.25
    min_draws_per_edge: float = 1.0
    halve_after: tuple[int, ...] = ()
    patience: int | None = None
    adam_betas: tuple[float, float] = (0.9, 0.99)  # the paper's appendix

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            require_int(name, getattr(self, name))
        if self.patience is not None:
            require_int("patience", self.patience)
        require(
            callable(self.schedule) and not isinstance(self.schedule, type),
            f"schedule must be an object like CosineDecay(0.1), got {self.schedule!r}; pass CosineDecay or StepDecay",
        )
        require(
            0 <= self.average_fraction <= 1,
            f"average_fraction must be in [0, 1], got {self.average_fraction}; pass for example 0.25",
        )
        require(
            0 <= self.min_draws_per_edge < float("inf"),
            f"min_draws_per_edge must be at least 0, got {self.min_draws_per_edge}; pass for example 1, or 0 for no "
            "floor",
        )
        require(
            self.predictor_learning_rate is None or 0 < self.predictor_learning_rate < float("inf"),
            f"predictor_learning_rate must be positive, got {self.predictor_learning_rate}; to keep the predictor "
            "fixed, use requires_grad_(False)",
        )
        require(
            isinstance(self.halve_after, tuple) and all(epoch >= 1 for epoch in self.halve_after),
            f"halve_after must be epochs counted from 1, got {self.halve_after}; pass for example (1, 2, 3)",
        )
        require(
            len(self.adam_betas) == 2 and all(0 <= beta < 1 for beta in self.adam_betas),
            f"adam_betas must have two numbers in [0, 1), got {self.adam_betas}; pass for example (0.9, 0.99)",
        )

    @property
    def predictor_factor(self) -> float:
        """The learning rate of the predictor divided by that of the schedule."""
        first = self.schedule(0, self.epochs)
        return 1.0 if self.predictor_learning_rate is None else self.predictor_learning_rate / first


class StepNumbers(NamedTuple):
    """The numbers that vary from step to step beside the data: floats, or tensors on a GPU.

    ``rate``        learning rate
    ``weight``      weight of the step in the running average of the parameters: 0 before averaging begins, 1 for its
                    first step
    ``progress``    completed share of the training
    ``floor``       lowest edge probability, see :func:`edge_floor`
    ``..._correction``  bias corrections of Adam's moments, which start at 0
    """

    rate: float | Tensor
    weight: float | Tensor
    progress: float | Tensor
    floor: float | Tensor
    first_correction: float | Tensor
    second_correction: float | Tensor


class StepPlan(NamedTuple):
    """The sizes of a training, and the numbers of each of its steps."""

    batch_size: int
    steps_per_epoch: int
    numbers: list[StepNumbers]

    @classmethod
    def of(cls, settings: FitSettings, model: LatentGraphModel, num_pairs: int) -> "StepPlan":
        """Return the plan for training on a number of pairs; an incomplete last batch of an epoch is dropped."""
        size = min(settings.batch_size, num_pairs)
        steps = num_pairs // size
        total, draws = steps * settings.epochs, model.draws(size)
        averaging_from = round((1 - settings.average_fraction) * total)

        def numbers(step: int) -> StepNumbers:
            (epoch, within), counted = divmod(step, steps), step - averaging_from + 1
            rate = settings.schedule(epoch + within / steps, settings.epochs)
            corrections = (1 - beta ** (step + 1) for beta in settings.adam_betas)
            weight, done = 1 / counted if counted > 0 else 0.0, step / total
            return StepNumbers(rate, weight, done, edge_floor(settings.min_draws_per_edge, draws, done), *corrections)

        return cls(size, steps, [numbers(step) for step in range(total)])

    @property
    def total_steps(self) -> int:
        """Number of steps of all epochs."""
        return len(self.numbers)


def edge_floor(min_draws_per_edge: float, draws: int, done: float) -> float:
    r"""Return the lowest edge probability at progress ``done`` of the training, with ``draws`` graphs per step.

    If a few noisy steps drive the probability of an edge to nearly 0, it is no longer drawn, gets no gradient and stays
    at 0, even if the data support it. So after each step of the first share $h$ of the training

    $$f_t \le \theta_{ij} \le 1 - f_t, \qquad
    f_t = \min\Big(f, \frac{k}{D}\Big) \max\Big(0, 1 - \frac{t}{h\, T}\Big)$$

    where $D$ is the number of graphs per step, $k$ the expected number of them with the edge (``min_draws_per_edge``),
    $f$ the highest floor and $t$ of $T$ steps are complete. The floor matters if the batch shares a few graphs; if each
    pair has its own graphs, $k / D$ is negligible. It is 0 long before the end of training. An edge that starts at 0 or
    1 stays there, and a training that starts at a trained model has no floor, which would raise probabilities near 0.

    >>> [edge_floor(1.0, 16, done) for done in (0.0, 0.2, 0.4, 1.0)]    # 16 graphs, shared by the batch
    [0.02, 0.01, 0.0, 0.0]
    >>> edge_floor(1.0, 16 * 125, 0.0)                                   # 16 graphs for each of 125 pairs
    0.0005
    """
    return min(HIGHEST_FLOOR, min_draws_per_edge / draws) * max(0.0, 1 - done / FLOOR_PART)


def _require_rate(name: str, value: float) -> None:
    require(
        0 < value < math.inf,
        f"{name} must be a positive learning rate, got {value}; pass for example 0.05",
    )

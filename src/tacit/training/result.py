"""The result of a fit, and the callbacks that report its progress."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import FiniteFloat, NonNegativeInt

from tacit.training.convergence import late_fall
from tacit.training.gradient import Stack
from tacit.training.model import LatentGraphModel


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

"""How the step size falls during training."""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tacit.errors import require


@runtime_checkable
class Schedule(Protocol):
    """The call that training makes before every step."""

    def __call__(self, epoch: float, epochs: int) -> float:
        """Return the learning rate at a (fractional) epoch of ``epochs``."""
        ...


@dataclass(frozen=True)
class StepDecay:
    """One rate, then a lower one; the defaults are the paper's.

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
    """Half a cosine from ``first`` down to ``last`` at the end.

    >>> [round(CosineDecay(0.1, 0.0)(epoch, 10), 3) for epoch in (0, 5, 10)]
    [0.1, 0.05, 0.0]
    """

    first: float = 0.1
    last: float = 0.0

    def __post_init__(self) -> None:
        _require_rate("first", self.first)
        require(
            0 <= self.last <= self.first,
            f"last needs to be between 0 and first={self.first}, got {self.last}; lower last",
        )

    def __call__(self, epoch: float, epochs: int) -> float:
        """Return the learning rate at an epoch."""
        return self.last + (self.first - self.last) * 0.5 * (1 + math.cos(math.pi * epoch / epochs))


def _require_rate(name: str, value: float) -> None:
    require(
        0 < value < math.inf,
        f"{name} needs to be a positive learning rate, got {value}; pass for example 0.05",
    )

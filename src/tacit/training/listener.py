"""Whom to tell how a job goes."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tacit.training.result import Progress


@dataclass(frozen=True)
class Listener:
    """Whom to tell how a job goes: which stage it is in, and each training step."""

    stage: Callable[[str], None] = field(default=lambda _: None)
    step: Callable[[Progress], None] = field(default=lambda _: None)

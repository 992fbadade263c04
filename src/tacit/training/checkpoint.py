"""Checkpoints: a fit that is stopped at any moment goes on from the last one, and ends as if it had never stopped.

Where several processes train they stand at the same place with the same numbers, so that one file serves all: the first
writes it, and reads it for the others. How many they are is not in it, and may be another number when the fit goes on.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import InputError, require
from tacit.tensor_files import Kind
from tacit.training.agreement import from_the_first, require_agreement
from tacit.training.fingerprint import Fingerprint, differences, in_words
from tacit.training.lift import Stack
from tacit.training.loop import Loop
from tacit.training.snapshot import restore, snapshot
from tacit.whole_files import read_whole, write_whole

KIND = Kind("checkpoint", 1, "delete it to start again")
MOST_OF_THE_TIME = 0.01  # that is spent on writing


@dataclass(frozen=True)
class Checkpoints:
    """Where a fit keeps what it has become, and how often.

    ``every``  seconds from one to the next, at least; longer where writing takes more than a hundredth of the time.
               0 writes after each step.
    ``before`` is called before each write, if given; what it raises ends the fit.

    There is one file, replaced as a whole. It stays when the fit is done: the same call then gives the same result
    without training. Delete it when it is no longer wanted.
    """

    path: Path
    every: float = 5.0
    before: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        require(isinstance(self.path, Path), f"path needs a Path, got {self.path!r}; pass Path('fit.checkpoint')")
        require(
            isinstance(self.every, int | float) and 0 <= self.every < float("inf"),
            f"every needs seconds, 0 or more, got {self.every!r}; pass for example 5",
        )


class Keeper:
    """Reads the checkpoint of a loop and writes it when it is time."""

    def __init__(self, checkpoints: Checkpoints, loop: Loop, fingerprint: Fingerprint) -> None:
        self.path, self._every, self._before = checkpoints.path, checkpoints.every, checkpoints.before
        self._loop, self._fingerprint, self._processes = loop, fingerprint, loop.stepper.processes
        self._next = time.monotonic() + self._every
        self._written: tuple[int, int] | None = None

    def take_up(self) -> None:
        """Bring the loop to where the checkpoint is, if there is one; one of another training is refused."""
        require_agreement(self._processes, in_words(self._fingerprint))
        found = from_the_first(self._processes, self._read)
        if found is not None:
            try:
                restore(self._loop, *found)
            except (ValueError, KeyError, TypeError, RuntimeError) as error:
                raise InputError(f"{self.path} is a damaged checkpoint ({error}); {KIND.remedy}") from None
            self._written = self._place

    def _read(self) -> tuple[dict[str, Any], Stack] | None:
        try:
            data = read_whole(self.path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"checkpoint needs a readable file, got {self.path} ({error.strerror})") from None
        text, tensors = KIND.unpack(data, str(self.path))
        try:
            others = differences(self._fingerprint, text["fingerprint"])
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            raise InputError(f"{self.path} is a damaged checkpoint (fingerprint); {KIND.remedy}") from None
        require(
            not others,
            f"checkpoint {self.path} is of another training: {', '.join(others)}; fit as it was begun, or delete it",
        )
        return text, tensors

    def consider(self) -> None:
        """Write, if it is time."""
        if time.monotonic() >= self._next:
            self.write()

    def write(self) -> None:
        """Write, unless nothing happened since the last time, or another process does."""
        if self._written == self._place or not self._processes.first:
            return
        if self._before is not None:
            self._before()
        start = time.monotonic()
        text, tensors = snapshot(self._loop)
        write_whole(self.path, KIND.pack({"fingerprint": self._fingerprint, **text}, tensors))
        self._written, end = self._place, time.monotonic()
        self._next = end + max(self._every, (end - start) / MOST_OF_THE_TIME if self._every else 0.0)

    @property
    def _place(self) -> tuple[int, int]:
        return self._loop.steps_done, len(self._loop.history)

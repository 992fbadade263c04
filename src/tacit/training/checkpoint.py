"""Checkpoints: a fit that was stopped resumes from the last checkpoint, with the result of an uninterrupted fit.

A checkpoint is the state of a training (:mod:`tacit.training.state`) in a file, with a fingerprint of that training. It
can only be resumed by an identical training. Several processes that train together have the same state, so they share
one file: the first process writes it, and reads it for the others. The number of processes is not stored and may differ
when the fit is resumed.
"""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tacit.atomic_files import read_file, write_atomic
from tacit.data import Pairs
from tacit.errors import InputError, require
from tacit.tensor_files import Kind, digest
from tacit.training.gradient import Stack
from tacit.training.processes import Processes, from_the_first
from tacit.training.settings import FitSettings
from tacit.training.state import TrainingState
from tacit.training.step import TrainingStep

KIND = Kind("checkpoint", 1, "delete it to start again")
MOST_OF_THE_TIME = 0.01  # largest share of the time that is spent on writing
DEEPEST = 8  # largest depth of nested objects that are inspected
Fingerprint = dict[str, Any]


@dataclass(frozen=True)
class Checkpoints:
    """Where and how often a fit writes checkpoints.

    ``every``   minimum number of seconds between checkpoints; longer if writing takes more than 1% of the time.
                0 writes after each step.
    ``before``  if given, called before each write; an exception that it raises ends the fit.

    There is one file, which is replaced atomically. It remains after the fit: the same call then returns the same
    result without training. Delete it when it is no longer needed.
    """

    path: Path
    every: float = 5.0
    before: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        require(isinstance(self.path, Path), f"path must be a Path, got {self.path!r}; pass Path('fit.checkpoint')")
        require(
            isinstance(self.every, int | float) and 0 <= self.every < float("inf"),
            f"every must be a non-negative number of seconds, got {self.every!r}; pass for example 5",
        )


class CheckpointFile:
    """Reads the state of a training from its file, and writes it at intervals."""

    def __init__(
        self, checkpoints: Checkpoints, state: TrainingState, found: Fingerprint, processes: Processes
    ) -> None:
        self.path, self._every, self._before = checkpoints.path, checkpoints.every, checkpoints.before
        self._state, self._fingerprint, self._processes = state, found, processes
        self._next = time.monotonic() + self._every
        self._written: tuple[int, int] | None = None

    def resume(self) -> None:
        """Load the state from the file, if it exists; raise an error if it belongs to another training."""
        found = from_the_first(self._processes, self._read)
        if found is not None:
            try:
                self._state.load_tensors(*found)
            except (ValueError, KeyError, TypeError, RuntimeError) as error:
                raise InputError(f"{self.path} is a damaged checkpoint ({error}); {KIND.remedy}") from None
            self._written = self._place

    def _read(self) -> tuple[dict[str, Any], Stack] | None:
        try:
            data = read_file(self.path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(
                f"checkpoint must be a readable file, got {self.path} ({error.strerror}); pass another path"
            ) from None
        text, tensors = KIND.unpack(data, str(self.path))
        try:
            others = differences(self._fingerprint, text["fingerprint"])
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            raise InputError(f"{self.path} is a damaged checkpoint (fingerprint); {KIND.remedy}") from None
        require(
            not others,
            f"checkpoint {self.path} belongs to another training run: {', '.join(others)}; use the settings and data "
            "it was started with, or delete it",
        )
        return text, tensors

    def consider(self) -> None:
        """Write a checkpoint if enough time has passed."""
        if time.monotonic() >= self._next:
            self.write()

    def write(self) -> None:
        """Write a checkpoint, unless the state is unchanged or another process writes it."""
        if self._written == self._place or not self._processes.first:
            return
        if self._before is not None:
            self._before()
        start = time.monotonic()
        text, tensors = self._state.to_tensors()
        write_atomic(self.path, KIND.pack({"fingerprint": self._fingerprint, **text}, tensors))
        self._written, end = self._place, time.monotonic()
        self._next = end + max(self._every, (end - start) / MOST_OF_THE_TIME if self._every else 0.0)

    @property
    def _place(self) -> tuple[int, int]:
        return self._state.log.steps_done, len(self._state.log.history)


def fingerprint(
    step: TrainingStep, validation: Pairs, settings: FitSettings, resamples: Tensor | None, trace_every: int | None
) -> Fingerprint:
    """Return everything that the result of a training depends on, by name; ``#...`` is a checksum.

    It is computed before the first step, with the initial parameters.
    """
    model, state = step.model, step.state
    found: Fingerprint = {
        **_data("training", step.train),
        **_data("validation", validation),
        **{one.name: getattr(settings, one.name) for one in fields(settings) if one.name != "schedule"},
        "schedule": _mark([numbers.rate for numbers in state.plan.numbers]),
        "seeds": list(state.seeds),
        "compile": step.gradient.compiles,
        "lift": "vmap" if step.gradient.lifted else "loop",
        "trace": trace_every,
        "device": step.train.inputs.device.type,
        "num_graphs": model.num_graphs,
        "share_graphs": model.share_graphs,
        **{
            part: _mark(described(getattr(model, part)))
            for part in ("graph", "predictor", "observation", "loss", "estimator", "prior")
        },
        "parameters": {name: list(value.shape) for name, value in state.parameters.items()},
        "start": _mark_stack(state.parameters),
        "constants": _mark_stack(state.constants),
        "resamples": None if resamples is None else f"#{digest([resamples])}",
    }
    plain: Fingerprint = json.loads(json.dumps(found))  # in the form in which it will be read back
    return plain


def in_words(found: Fingerprint) -> dict[str, str]:
    """Return a fingerprint in short form for messages, with abbreviated checksums.

    >>> in_words({"epochs": 10, "loss": "#0123456789abcdef"})
    {'epochs': '10', 'loss': '#01234567'}
    """
    return {name: str(value)[:9] if str(value).startswith("#") else str(value) for name, value in found.items()}


def differences(here: Fingerprint, there: Fingerprint) -> list[str]:
    """Describe how two fingerprints differ.

    >>> differences({"epochs": 10, "loss": "#ab"}, {"epochs": 20, "loss": "#cd"})
    ['epochs is 10 here and 20 there', 'another loss']
    """
    found = []
    for name in {**there, **here}:
        values = here.get(name), there.get(name)
        if values[0] != values[1]:
            marks = any(str(value).startswith("#") for value in values)
            found.append(f"another {name}" if marks else f"{name} is {values[0]} here and {values[1]} there")
    return found


def described(value: Any, depth: int = DEEPEST) -> Any:
    """Describe an object by its type and public attributes, as lists and strings that are equal in every process.

    >>> from tacit.losses import EnergyScore
    >>> described(EnergyScore(scope="node")) == described(EnergyScore(scope="joint"))
    False
    """
    if value is None or isinstance(value, bool | int | float | str | torch.dtype | torch.device):
        return repr(value)
    if isinstance(value, Tensor):
        return digest([value])
    if isinstance(value, list | tuple):
        return [described(entry, depth) for entry in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(described(entry, depth)) for entry in value)
    if isinstance(value, dict):
        return [[described(key, depth), described(entry, depth)] for key, entry in value.items()]
    named = value if hasattr(value, "__qualname__") else type(value)  # a function or a class, or an object
    name = f"{named.__module__}.{named.__qualname__}"
    if named is value or depth == 0:
        return name
    inside = {key: entry for key, entry in getattr(value, "__dict__", {}).items() if not key.startswith("_")}
    if isinstance(value, nn.Module):  # its parameters and buffers are handled separately
        inside |= dict(value.named_children())
        inside.pop("training", None)
    return [name, [[key, described(entry, depth - 1)] for key, entry in sorted(inside.items())]]


def _data(part: str, pairs: Pairs) -> dict[str, Any]:
    tensors = {"mask" if one.name == "observed" else one.name: getattr(pairs, one.name) for one in fields(pairs)}
    del tensors["units"]  # already part of the targets
    marks = {f"{part} {name}": None if value is None else f"#{digest([value])}" for name, value in tensors.items()}
    return {f"{part} pairs": len(pairs), **marks}


def _mark_stack(stack: Stack) -> str:
    return _mark([[name, digest([value])] for name, value in stack.items()])


def _mark(value: Any) -> str:
    return f"#{hashlib.sha256(json.dumps(value).encode()).hexdigest()}"

"""What is being trained, in a few words and checksums: a checkpoint is never gone on with for anything else."""

import hashlib
import json
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor, nn

from tacit.data import Pairs
from tacit.tensor_files import digest
from tacit.training.lift import Stack
from tacit.training.loop import Loop, Trace

DEEPEST = 8  # objects inside of objects that are looked at
Fingerprint = dict[str, Any]


def fingerprint(loop: Loop, *, compile: bool, trace: Trace | None) -> Fingerprint:
    """Return what the result depends on, by a name for each part; ``#...`` stands for a checksum.

    It is taken before the first step, where the parameters are those that the training starts with.
    """
    settings, model, state = loop.settings, loop.model, loop.state
    steps = loop.stepper.steps_per_epoch
    rates = [settings.schedule(step / steps, settings.epochs) for step in range(loop.stepper.total_steps)]
    found: Fingerprint = {
        **{one.name: getattr(settings, one.name) for one in fields(settings) if one.name != "schedule"},
        "schedule": _mark(rates),
        "seeds": list(loop.seeds),
        "compile": compile,
        "lift": "vmap" if loop.gradient.lifted else "loop",
        "trace": None if trace is None else trace.every,
        "device": loop.train.inputs.device.type,
        "num_graphs": model.num_graphs,
        "share_graphs": model.share_graphs,
        **{
            part: _mark(described(getattr(model, part)))
            for part in ("graph", "predictor", "loss", "estimator", "prior")
        },
        "parameters": {name: list(value.shape) for name, value in state.parameters.items()},
        "start": _mark_stack(state.parameters),
        "constants": _mark_stack(state.frozen),
        **_data("training", loop.train),
        **_data("validation", loop.stepper.validation),
        "resamples": None if loop.resamples is None else f"#{digest([loop.resamples])}",
    }
    plain: Fingerprint = json.loads(json.dumps(found))  # as it will be read back
    return plain


def in_words(found: Fingerprint) -> dict[str, str]:
    """Return it short enough to be shown, checksums by their first letters.

    >>> in_words({"epochs": 10, "loss": "#0123456789abcdef"})
    {'epochs': '10', 'loss': '#01234567'}
    """
    return {name: str(value)[:9] if str(value).startswith("#") else str(value) for name, value in found.items()}


def differences(here: Fingerprint, there: Fingerprint) -> list[str]:
    """Return in words how two fingerprints differ.

    >>> differences({"epochs": 10, "loss": "#ab"}, {"epochs": 20, "loss": "#cd"})
    ['epochs is 10 here and 20 there', 'another loss']
    """
    names = [name for name in {**there, **here} if here.get(name) != there.get(name)]
    return [_said(name, here.get(name), there.get(name)) for name in names]


def described(value: Any, depth: int = DEEPEST) -> Any:
    """Return an object as lists and texts that are the same in every process: its type and its public attributes.

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
    if isinstance(value, nn.Module):  # the values of its parameters and buffers are looked at elsewhere
        inside |= dict(value.named_children())
        inside.pop("training", None)
    return [name, [[key, described(entry, depth - 1)] for key, entry in sorted(inside.items())]]


def _said(name: str, here: Any, there: Any) -> str:
    if any(str(value).startswith("#") for value in (here, there)):
        return f"another {name}"
    return f"{name} is {here} here and {there} there"


def _data(part: str, pairs: Pairs) -> dict[str, Any]:
    tensors = {"inputs": pairs.inputs, "targets": pairs.targets, "mask": pairs.observed}
    return {f"{part} {name}": None if value is None else f"#{digest([value])}" for name, value in tensors.items()}


def _mark_stack(stack: Stack) -> str:
    return _mark([[name, digest([value])] for name, value in stack.items()])


def _mark(value: Any) -> str:
    return f"#{hashlib.sha256(json.dumps(value).encode()).hexdigest()}"

"""What an estimator is when it is put away: text and tensors, nothing that runs when it is read.

The text is JSON, the tensors are safetensors. Parameters that are objects (a module, a function) have no such form:
in their place stands :class:`NotStored`, which says what has to be set again.
"""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tacit.errors import InputError
from tacit.graph import Sigmoid
from tacit.tensor_files import Kind, header_of, load

KIND = Kind("saved LatentGraphRegressor", 2, "fit and save it again", first=2)
OLD_KEY = "tacit.regressor"  # format 1 had its text under this name, and no checksum
INFINITE = (f"graph.{Sigmoid.parameter}",)  # the logit of an edge that is always or never there


@dataclass(frozen=True)
class NotStored:
    """Stands where an object was that cannot be written as text."""

    what: str


@dataclass(frozen=True)
class Stored:
    """An estimator put away: ``text`` is what JSON holds, ``tensors`` the rest."""

    text: dict[str, Any]
    tensors: dict[str, Tensor]

    def to_bytes(self) -> bytes:
        """Return one safetensors file with the text in its header, under a checksum."""
        return KIND.pack(self.text, self.tensors)

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> "Stored":
        """Read it back; anything else is an :class:`InputError` that names ``where`` it came from."""
        text, tensors = _format_1(data, where) or KIND.unpack(data, where)
        KIND.require_finite(tensors, where, INFINITE)
        return cls(text, tensors)


def _format_1(data: bytes, where: str) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
    """Return what a file of the first format holds, None if it is another."""
    try:
        written = header_of(data).get(OLD_KEY)
    except ValueError:
        return None
    if written is None:
        return None
    try:
        text, tensors = json.loads(written), load(data)
        if text.pop("format") != 1:
            raise ValueError("it is not of format 1")
        return text, tensors
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{where} is a damaged {KIND.name} ({error}); {KIND.remedy}") from None


def encode(value: Any) -> Any:
    """Return a parameter as JSON; see :func:`decode`.

    >>> decode(encode((1, 0.5, "a", None, np.eye(2)[0]))), encode(print)
    ((1, 0.5, 'a', None, array([1., 0.])), {'not stored': 'builtin_function_or_method'})
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return encode(value.item())
    if isinstance(value, tuple | list | set | frozenset):
        return {type(value).__name__: [encode(entry) for entry in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(entry)] for key, entry in value.items()]}
    if isinstance(value, np.ndarray | Tensor) and str(value.dtype) != "object":
        kind = "array" if isinstance(value, np.ndarray) else "tensor"
        return {kind: value.tolist(), "dtype": str(value.dtype).removeprefix("torch.")}
    return {"not stored": value.what if isinstance(value, NotStored) else type(value).__name__}


def decode(value: Any) -> Any:
    """Return the parameter that :func:`encode` wrote."""
    if not isinstance(value, dict):
        return value
    (kind, entries), *_ = value.items()
    if kind == "not stored":
        return NotStored(entries)
    if kind == "array":
        return np.array(entries, dtype=value["dtype"])
    if kind == "tensor":
        return torch.tensor(entries, dtype=getattr(torch, value["dtype"]))
    if kind == "dict":
        return {decode(key): decode(entry) for key, entry in entries}
    sequence = {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset}[kind]
    return sequence(decode(entry) for entry in entries)

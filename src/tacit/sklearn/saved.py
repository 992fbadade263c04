"""The stored form of an estimator: text and tensors, without code.

The text is JSON, the tensors are safetensors. Parameters that are objects (a module, a function) cannot be stored; they
are replaced by :class:`NotStored`, which names the type of the object to pass again.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import tacit.config
from tacit.atomic_files import read_file, write_atomic
from tacit.config import Closed
from tacit.errors import InputError, require
from tacit.graph import CandidateEdges
from tacit.records import CANDIDATE_PARTS, INFINITE
from tacit.tensor_files import Kind

KIND = Kind("saved estimator", 3, "fit and save it again")


@dataclass(frozen=True)
class NotStored:
    """Placeholder for an object that cannot be stored."""

    what: str


@dataclass(frozen=True)
class Stored:
    """A stored estimator: ``text`` for JSON, and ``tensors``."""

    text: dict[str, Any]
    tensors: dict[str, Tensor]

    def to_bytes(self) -> bytes:
        """Return one safetensors file with the text and a checksum in its header."""
        return KIND.pack(self.text, self.tensors)

    def write(self, path: Path) -> None:
        """Write the file atomically."""
        with write_said(path):
            write_atomic(path, self.to_bytes())

    @classmethod
    def read(cls, path: Path) -> "Stored":
        """Read a file written by :meth:`write`."""
        try:
            data = read_file(path)
        except OSError as error:
            raise InputError(f"path must be a readable file, got {path} ({error.strerror})") from None
        return cls.from_bytes(data, str(path))

    def require_of(self, names: Sequence[str], where: str) -> None:
        """Raise :class:`InputError` unless the stored estimator has one of these class names."""
        saved = self.text.get("estimator")
        require(saved in names, f"{where} is a saved {saved}, and {names[0]} cannot load it; use {saved}.load")

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> "Stored":
        """Read the bytes of :meth:`to_bytes`; other bytes raise an :class:`InputError` that names ``where``."""
        text, tensors = KIND.unpack(data, where)
        KIND.require_finite(tensors, where, INFINITE)
        return cls(text, tensors)


@contextmanager
def write_said(path: Path) -> Iterator[None]:
    """Raise an :class:`InputError` of one line if a file cannot be written."""
    try:
        yield
    except OSError as error:
        raise InputError(f"path must be a file that can be written, got {path} ({error.strerror})") from None


@contextmanager
def damage_said(where: str) -> Iterator[None]:
    """Raise an :class:`InputError` of one line if a stored estimator is damaged."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"{where} is a damaged saved estimator ({line}); fit and save it again") from None


def encode(value: Any) -> Any:
    """Return a parameter for JSON; see :func:`decode`.

    >>> decode(encode((1, 0.5, "a", None, np.eye(2)[0]))), encode(print)
    ((1, 0.5, 'a', None, array([1., 0.])), {'not stored': 'builtin_function_or_method'})
    >>> decode(encode(tacit.config.TrainingOptions(epochs=3))).epochs
    3
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return encode(value.item())
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, tuple | list | set | frozenset):
        return {type(value).__name__: [encode(entry) for entry in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(entry)] for key, entry in value.items()]}
    if isinstance(value, np.ndarray | Tensor) and str(value.dtype) != "object":
        kind = "array" if isinstance(value, np.ndarray) else "tensor"
        return {kind: value.tolist(), "dtype": str(value.dtype).removeprefix("torch.")}
    if isinstance(value, Closed) and type(value).__name__ in tacit.config.__all__:
        return {"options": type(value).__name__, "values": value.model_dump(mode="json")}
    if isinstance(value, CandidateEdges):
        return {"table": value.num_nodes, **{name: encode(getattr(value, name)) for name in CANDIDATE_PARTS}}
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
    if kind == "options" and entries in tacit.config.__all__:
        return getattr(tacit.config, entries).model_validate(value["values"])
    if kind == "table":
        return CandidateEdges(entries, *(decode(value[name]) for name in CANDIDATE_PARTS))
    sequence = {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset}[kind]
    return sequence(decode(entry) for entry in entries)


def is_stored(value: Any) -> bool:
    """Return whether a parameter can be stored."""
    encoded = encode(value)
    return not (isinstance(encoded, dict) and "not stored" in encoded)

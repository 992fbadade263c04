"""The stored form of an estimator, and the conversion of its parameters to a config.

The stored form of an estimator: text and tensors, without code.

The text is JSON, the tensors are safetensors. Parameters that are objects (a module, a function) cannot be stored; they
are replaced by :class:`NotStored`, which names the type of the object to pass again.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import tacit.config
from tacit.atomic_files import read_file, write_atomic
from tacit.config import (
    OWN,
    AssessmentOptions,
    Closed,
    DataOptions,
    FitConfig,
    GraphOptions,
    ModelConfig,
    ObservationOptions,
    PredictorOptions,
    TrainingOptions,
    override,
)
from tacit.errors import InputError, require
from tacit.graph import CandidateEdges
from tacit.losses import Loss
from tacit.pipeline import OwnParts
from tacit.records import INFINITE
from tacit.tensor_files import Kind

KIND = Kind("saved estimator", 4, "fit and save it again")


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
        return {"table": value.num_nodes, **{name: encode(getattr(value, name)) for name in value.stored}}
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
        return CandidateEdges(entries, *(decode(value[name]) for name in CandidateEdges.stored))
    sequence = {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset}[kind]
    return sequence(decode(entry) for entry in entries)


def is_stored(value: Any) -> bool:
    """Return whether a parameter can be stored."""
    encoded = encode(value)
    return not (isinstance(encoded, dict) and "not stored" in encoded)


SECTIONS: Mapping[str, type[Closed]] = {
    "data": DataOptions,
    "graph": GraphOptions,
    "predictor": PredictorOptions,
    "observation": ObservationOptions,
    "model": ModelConfig,
    "training": TrainingOptions,
    "assessment": AssessmentOptions,
}


def read_parameters(parameters: Mapping[str, Any], data: Mapping[str, Any]) -> tuple[FitConfig, OwnParts]:
    """Return the config of the parameters of an estimator, and the parts that were passed as objects.

    ``data`` are options of ``[data]`` that are parameters of the estimator.
    """
    for name, value in parameters.items():
        if isinstance(value, NotStored):
            raise InputError(f"{name} was a {value.what}, which is not stored; pass it with set_params({name}=...)")
    sections = {name: _section(name, parameters.get(name)) for name in SECTIONS}
    loss, predictor, candidates = parameters["loss"], parameters["predictor"], parameters["candidates"]
    changes: dict[str, dict[str, Any]] = {"data": dict(data), "graph": {}, "model": {}, "predictor": {}}
    if parameters["density"] is not None:
        changes["graph"]["density"] = to_python(parameters["density"])
    if isinstance(loss, str):
        changes["model"]["loss"] = loss
    own_predictor = None
    if isinstance(predictor, nn.Module) or (callable(predictor) and not isinstance(predictor, Closed)):
        changes["predictor"]["kind"], own_predictor = OWN, predictor
    candidates = torch.as_tensor(candidates) if isinstance(candidates, np.ndarray) else candidates
    table = candidates if isinstance(candidates, CandidateEdges | Tensor) else None
    if candidates is not table:
        changes["graph"]["candidates"] = _edges(candidates)
    values = {name: {**section.model_dump(), **changes.get(name, {})} for name, section in sections.items()}
    own_loss = loss if loss is not None and not isinstance(loss, str) else None
    require(own_loss is None or isinstance(own_loss, Loss), f"loss must be a name or a loss of tacit, got {loss!r}")
    return override(FitConfig(), values), OwnParts(own_predictor, own_loss, table)


def _section(name: str, value: Any) -> Closed:
    """Return the options of a section: those passed, a kind by its name, or the defaults."""
    kind = SECTIONS[name]
    if isinstance(value, kind):
        return value
    default: Closed = getattr(FitConfig(), name)
    by_node = name == "observation" and isinstance(value, dict)
    if (isinstance(value, str) or by_node) and "kind" in kind.model_fields:
        return kind(kind=value)
    own = name == "predictor" and (isinstance(value, nn.Module) or callable(value))
    named = " or a name" if "kind" in kind.model_fields else ""
    require(
        value is None or own,
        f"{name} must be {kind.__name__}(...){named}, got {value!r}; pass for example {kind.__name__}()",
    )
    return default


def _edges(candidates: Any) -> tuple[tuple[Any, Any], ...]:
    """Return edges as pairs (source, target)."""
    if not isinstance(candidates, list | tuple | set | frozenset):
        raise InputError(f"candidates must be edges as (source, target), got {candidates!r}; pass for example [(0, 1)]")
    for edge in candidates:
        require(
            isinstance(edge, list | tuple) and len(edge) == 2,
            f"candidates must be edges as (source, target), got {edge!r}; pass for example [(0, 1)]",
        )
    return tuple((to_python(source), to_python(target)) for source, target in candidates)


def seed_of(random_state: Any) -> int:
    """Return a seed from a ``random_state``: an integer, a NumPy generator, or None for a new seed each time.

    >>> seed_of(7), seed_of(np.random.RandomState(0))
    (7, 209652396)
    """
    state = to_python(random_state)
    if isinstance(state, int) and not isinstance(state, bool) and state >= 0:
        return state
    if state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(state, np.random.RandomState):
        return int(state.randint(2**31))
    if isinstance(state, np.random.Generator):
        return int(state.integers(2**31))
    raise InputError(f"random_state must be an integer of at least 0, a generator or None, got {random_state!r}")


def to_python(value: Any) -> Any:
    """Convert a NumPy number or array to Python numbers and lists: parameter grids contain NumPy numbers.

    >>> to_python(np.int64(3)), to_python(0.5), to_python(np.eye(2)[0])
    (3, 0.5, [1.0, 0.0])
    """
    return value.tolist() if isinstance(value, np.generic | np.ndarray | Tensor) else value

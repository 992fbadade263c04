"""Conversion of the parameters of an estimator to a config, and to parts that were passed as objects."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

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
from tacit.sklearn.saved import NotStored

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
    table = torch.as_tensor(candidates) if isinstance(candidates, np.ndarray) else candidates
    if not isinstance(table, CandidateEdges | Tensor):
        table = None
    if candidates is not None and table is None:
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

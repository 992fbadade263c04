"""A finished run as a model again: what it learned, and how to read new data as it did."""

from dataclasses import dataclass
from pathlib import Path

import torch
from pydantic import ValidationError
from torch import Tensor

from tacit.config import FitConfig, ModelConfig
from tacit.errors import InputError, require
from tacit.graph import BernoulliGraph, Slots
from tacit.own_data.building import assemble, build_observation, build_predictor
from tacit.own_data.preparation import Preparation, stored_preparation
from tacit.records import MODEL, RECORD, SLOT_PARTS, SLOTS, Record, read_model, read_record
from tacit.registry import LOSSES
from tacit.training import LatentGraphModel


@dataclass(frozen=True, eq=False)
class StoredRun:
    """The record of a run of ``tacit fit`` and the model that it made."""

    directory: Path
    record: Record
    config: FitConfig
    preparation: Preparation
    model: LatentGraphModel

    @classmethod
    def read(cls, directory: Path, device: torch.device) -> "StoredRun":
        """Read a run directory; loading runs no code, and a damaged file is an :class:`InputError`."""
        record = read_record(directory)
        require(
            bool(record.preparation),
            f"{directory} is a run of tacit demo or another job, which has no data of its own; pass one of tacit fit",
        )
        try:
            config = FitConfig.model_validate(record.config)
            preparation = stored_preparation(record.preparation)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _damaged(directory, f"{RECORD}: {_line(error)}") from None
        tensors = read_model(directory, record)
        try:
            model = _empty_model(config, preparation, _table(tensors, len(preparation.nodes)))
        except (ValueError, KeyError, TypeError, RuntimeError) as error:
            raise _damaged(directory, f"{MODEL}: {_line(error)}") from None
        for name, value in model.state_dict().items():
            found = _kind(tensors[name]) if name in tensors else "none"
            if found != _kind(value):
                raise _damaged(directory, f"{MODEL} needs {name} of {_kind(value)}, got {found}")
        model.load_state_dict({name: tensors[name] for name in model.state_dict()})
        return cls(directory, record, config, preparation, model.to(device).eval())


def _kind(tensor: Tensor) -> str:
    return f"shape {tuple(tensor.shape)} and type {str(tensor.dtype).removeprefix('torch.')}"


def _table(tensors: dict[str, Tensor], num_nodes: int) -> Slots | None:
    """Return the table of candidates that a model is over, if it is over one."""
    if not any(name.startswith(SLOTS) for name in tensors):
        return None
    return Slots(num_nodes, *(tensors[f"{SLOTS}.{name}"] for name in SLOT_PARTS))


def _empty_model(config: FitConfig, preparation: Preparation, slots: Slots | None) -> LatentGraphModel:
    """Return a model of the right shapes."""
    nodes = len(preparation.nodes)
    start = torch.zeros((nodes, nodes) if slots is None else slots.senders.shape)
    graph = BernoulliGraph(start, link=config.model.build_link(), symmetric=config.graph.symmetric, slots=slots)
    predictor = build_predictor(config.predictor, nodes, preparation.sizes, slots=slots)
    observation = build_observation(config.predictor, nodes, preparation.sizes)
    return assemble(config.model_copy(update={"model": _plain(config.model)}), graph, predictor, observation)


def _plain(model: ModelConfig) -> ModelConfig:
    """Return the choices of the model without a kernel scale that is taken from data: it matters in training alone."""
    if "kernel_scale" in LOSSES[model.loss].uses and model.kernel_scale in (None, "median"):
        return model.model_copy(update={"kernel": "rational_quadratic", "kernel_scale": None})
    return model


def _damaged(directory: Path, what: str) -> InputError:
    return InputError(f"{directory} holds a damaged run ({what}); run tacit fit again")


def _line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    lacking = "lacks " if isinstance(error, KeyError) else ""
    return lacking + (str(error).strip() or type(error).__name__).splitlines()[0][:150]

"""A finished run as a model again: what it learned, and how to read new data as it did."""

from dataclasses import dataclass
from pathlib import Path

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load

from tacit.config import FitConfig, ModelConfig
from tacit.errors import InputError, require
from tacit.graph import BernoulliGraph
from tacit.own_data.building import assemble, build_predictor
from tacit.own_data.preparation import Preparation, stored_preparation
from tacit.records import Run, read_run
from tacit.training import LatentGraphModel

MODEL = "model.safetensors"


@dataclass(frozen=True, eq=False)
class StoredRun:
    """The record of a run of ``tacit fit`` and the model that it made."""

    directory: Path
    run: Run
    config: FitConfig
    preparation: Preparation
    model: LatentGraphModel

    @classmethod
    def read(cls, directory: Path, device: torch.device) -> "StoredRun":
        """Read a run directory; loading runs no code, and a damaged file is an :class:`InputError`."""
        run = read_run(directory)
        require(
            bool(run.record.preparation),
            f"{directory} is a run of tacit demo or another job, which has no data of its own; pass one of tacit fit",
        )
        try:
            config = FitConfig.model_validate(run.record.config)
            preparation = stored_preparation(run.record.preparation)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _damaged(directory, f"record.json: {_line(error)}") from None
        model = _empty_model(config, preparation)
        try:
            tensors = load((directory / MODEL).read_bytes())
        except (OSError, SafetensorError) as error:
            raise _damaged(directory, f"{MODEL}: {_line(error)}") from None
        for name, value in model.state_dict().items():
            found = tuple(tensors[name].shape) if name in tensors else "none"
            if found != tuple(value.shape):
                raise _damaged(directory, f"{MODEL} needs {name} of shape {tuple(value.shape)}, got {found}")
        model.load_state_dict({name: tensors[name] for name in model.state_dict()})
        return cls(directory, run, config, preparation, model.to(device).eval())


def _empty_model(config: FitConfig, preparation: Preparation) -> LatentGraphModel:
    """Return a model of the right shapes."""
    nodes = len(preparation.nodes)
    graph = BernoulliGraph(torch.zeros(nodes, nodes), link=config.model.build_link(), symmetric=config.graph.symmetric)
    predictor = build_predictor(config.predictor, nodes, preparation.sizes)
    return assemble(config.model_copy(update={"model": _plain(config.model)}), graph, predictor)


def _plain(model: ModelConfig) -> ModelConfig:
    """Return the choices of the model without a kernel scale that is taken from data: it matters in training alone."""
    if model.loss == "mmd" and model.kernel_scale in (None, "median"):
        return model.model_copy(update={"kernel": "rational_quadratic", "kernel_scale": None})
    return model


def _damaged(directory: Path, what: str) -> InputError:
    return InputError(f"{directory} holds a damaged run ({what}); run tacit fit again")


def _line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lacking = "lacks " if isinstance(error, KeyError) else ""
    return lacking + (str(error).strip() or type(error).__name__).splitlines()[0][:150]

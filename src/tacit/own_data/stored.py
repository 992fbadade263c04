"""A finished run as a model again: what it learned, and how to read new data as it did."""

from dataclasses import dataclass
from pathlib import Path

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load

from tacit.config import FitConfig
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
            tensors = load((directory / MODEL).read_bytes())
            graph = BernoulliGraph(
                torch.zeros(len(preparation.nodes), len(preparation.nodes)),
                link=config.model.build_link(),
                symmetric=config.graph.symmetric,
            )
            predictor = build_predictor(config.predictor, len(preparation.nodes), preparation.sizes)
            # the scale of a kernel only matters in training and is not kept
            model = assemble(config.model_copy(update={"model": _plain(config)}), graph, predictor)
            wanted = {name: tensors[name] for name in model.state_dict()}
            model.load_state_dict(wanted)
        except (OSError, SafetensorError, ValidationError, KeyError, TypeError, RuntimeError) as error:
            if isinstance(error, InputError):
                raise
            line = (str(error).strip() or type(error).__name__).splitlines()[0][:150]
            raise InputError(f"{directory} holds a damaged run ({line}); run tacit fit again") from None
        return cls(directory, run, config, preparation, model.to(device).eval())


def _plain(config: FitConfig) -> object:
    """Return the model's choices without a kernel scale that would be taken from data."""
    if config.model.loss == "mmd" and config.model.kernel_scale in (None, "median"):
        return config.model.model_copy(update={"kernel": "rational_quadratic", "kernel_scale": None})
    return config.model

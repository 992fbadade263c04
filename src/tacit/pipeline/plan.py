"""Everything that is decided before the first step: the data, the choices, and the model at its start."""

from dataclasses import dataclass, field

import numpy as np
import torch

from tacit.config import FitConfig
from tacit.graph import EdgeRules
from tacit.pipeline.building import build_model
from tacit.pipeline.choices import resolve_defaults
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.known_edges import left_out, place_nodes, read_rules
from tacit.pipeline.memory import require_memory_for
from tacit.pipeline.parts import OwnParts
from tacit.pipeline.resampling import require_resampling
from tacit.pipeline.sources import Source
from tacit.training import LatentGraphModel, Listener


@dataclass(frozen=True, eq=False)
class Plan:
    """What to learn, and from what; ``choices`` says what was chosen from the data, and why."""

    name: str
    command: str
    config: FitConfig
    choices: list[str]
    dataset: Dataset
    rules: EdgeRules
    coordinates: np.ndarray | None
    model: LatentGraphModel
    seed: int
    device: torch.device
    own: OwnParts = field(default_factory=OwnParts)
    listener: Listener = field(default_factory=Listener)
    notes: tuple[str, ...] = ()

    @classmethod
    def make(
        cls,
        source: Source,
        config: FitConfig,
        *,
        seed: int,
        device: torch.device,
        command: str,
        name: str | None = None,
        own: OwnParts | None = None,
        listener: Listener | None = None,
        notes: tuple[str, ...] = (),
    ) -> "Plan":
        """Prepare the data and choose what was left open; whatever cannot be is refused here."""
        own, kind = own or OwnParts(), config.predictor.kind
        scaled = kind == "auto" or own.kind(config.predictor).scaled
        dataset = Dataset.prepare(source, config.data, seed=seed, scaled=scaled)
        rules = read_rules(dataset, config.graph, own.candidates)
        config, choices = resolve_defaults(config, dataset, rules, own, on_gpu=device.type == "cuda")
        require_resampling(config.assessment, dataset.preparation, dataset.split.train)
        require_memory_for(config, dataset, rules, own, device)
        model = build_model(config, dataset, rules, own, seed)
        return cls(
            name or source.name,
            command,
            config,
            choices,
            dataset,
            rules,
            place_nodes(dataset, config.graph),
            model,
            seed,
            device,
            own,
            listener or Listener(),
            (*dataset.notes, *left_out(rules), *notes),
        )

"""How far a fit can be trusted: what is asked, and what was found out."""

from dataclasses import dataclass, field, replace
from typing import Any

import torch

from tacit.config import FitConfig
from tacit.data import Split, usual_block
from tacit.data.resampling import require_resamplable
from tacit.errors import InputError
from tacit.evaluation import ForecastScores
from tacit.own_data.preparation import Preparation, SeriesPreparation
from tacit.randomness import generator_for
from tacit.records import EdgeFindings
from tacit.training import FitResult, FitSettings, LatentGraphModel, Listener


@dataclass
class Trust:
    """What is known about a fit besides its answer, as it is found out."""

    edges: EdgeFindings = field(default_factory=EdgeFindings)
    references: dict[str, dict[str, float]] = field(default_factory=dict)
    goodness: dict[str, Any] = field(default_factory=dict)
    uncertainty: dict[str, float] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    scores: ForecastScores | None = None  # of the model on the test part, where a stage needed them


@dataclass(frozen=True)
class Question:
    """A fit and what it was made from; ``untrained`` is the model as it was before."""

    result: FitResult
    untrained: LatentGraphModel
    split: Split
    config: FitConfig
    settings: FitSettings
    preparation: Preparation
    seed: int
    listener: Listener

    @property
    def done(self) -> FitSettings:
        """The settings of the fit, with as many epochs as it took."""
        return as_done(self.settings, max(1, len(self.result.history)))

    @property
    def compile(self) -> bool:
        """Are steps compiled?"""
        return bool(self.config.training.compile)

    def generator(self, purpose: str) -> torch.Generator:
        """Return a generator on the device of the data."""
        return generator_for(self.seed, purpose, self.split.train.inputs.device)


def as_done(settings: FitSettings, epochs: int) -> FitSettings:
    """Return the settings of a fit that ended after so many epochs."""
    halvings = tuple(epoch for epoch in settings.halve_after if epoch < epochs)
    return replace(settings, epochs=epochs, patience=None, halve_after=halvings)


def block_length(config: FitConfig, preparation: Preparation, num_pairs: int) -> int:
    """Return how many neighbouring pairs are resampled together: what one pair reaches over, in a series."""
    if config.trust.block is not None:
        return config.trust.block
    if not isinstance(preparation, SeriesPreparation):
        return 1
    windows = preparation.windows
    return usual_block(num_pairs, windows.window + windows.horizon)


def require_trust(config: FitConfig, preparation: Preparation, num_pairs: int) -> None:
    """Raise :class:`InputError` before any work if standard errors are wanted and cannot be."""
    if config.trust.replicas:
        require_resamplable(num_pairs, block_length(config, preparation, num_pairs))
    elif config.trust.block is not None:
        raise InputError("block in [trust] needs std_errors, and there are none; set std_errors = 16")

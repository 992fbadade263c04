"""What the stages of the assessment take, and what they find."""

from dataclasses import dataclass, field, replace
from typing import Any

import torch

from tacit.assessment.evaluation import ForecastScores
from tacit.assessment.uncertainty import Kept, has_direct_estimate
from tacit.config import FitConfig
from tacit.data import Pairs, Split
from tacit.graph import ContextVariable
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.preparation import Preparation
from tacit.pipeline.references import Reference
from tacit.randomness import generator_for
from tacit.records import EdgeFindings
from tacit.shapes import EdgeMask
from tacit.training import FitResult, FitSettings, LatentGraphModel, Listener


@dataclass
class Assessment:
    """The findings of the assessment.

    ``evidence``    how it was found which edges exist, as ``record.json`` has it; empty where that was not asked
    ``references``  scores of other forecasts, with the gain over them in scaled CRPS where that was computed
    ``simple``      forecasts without a model, where a stage needed them
    ``node_gains``  how much the edges improve the forecast of each node, a share of its scaled CRPS
    ``model``       the fit in which edges depend on the situation, or have regimes; None where the first fit stands
    ``situations``  what was found of that, as ``record.json`` has it, and in sentences of the answer
    """

    edges: EdgeFindings = field(default_factory=EdgeFindings)
    evidence: dict[str, Any] = field(default_factory=dict)
    evidence_seconds: float = 0.0
    references: dict[str, dict[str, float]] = field(default_factory=dict)
    simple: dict[str, Reference] | None = None
    node_gains: dict[str, float] = field(default_factory=dict)
    goodness: dict[str, Any] = field(default_factory=dict)
    uncertainty: dict[str, float] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    model: LatentGraphModel | None = None
    situations: dict[str, Any] = field(default_factory=dict)
    situation_sentences: tuple[str, ...] = ()
    scores: ForecastScores | None = None  # of the model on the test part, where a stage needed them


@dataclass(frozen=True)
class AssessmentInputs:
    """A fit and what it was made from.

    ``untrained``  the model as it was before
    ``kept``       returns the edges that may be there given the rows of a resample; None where edges were not chosen
                   before the fit: a probability then also says whether an edge is there at all
    ``dropped``    edges that are fixed at 0 because they hardly exist, not because of a rule
    ``closed_form``  regressions gave the fit, and give its controls
    ``levelled``   pairs for the fit test in place of the test part
    ``variables``  that edges may depend on, where that is asked
    ``dataset``    what the pairs come from: times and series of regimes
    """

    result: FitResult
    untrained: LatentGraphModel
    split: Split
    config: FitConfig
    settings: FitSettings
    preparation: Preparation
    seed: int
    listener: Listener
    kept: Kept | None = None
    dropped: EdgeMask | None = None
    closed_form: bool = False
    levelled: Pairs | None = None
    variables: tuple[ContextVariable, ...] = ()
    dataset: Dataset | None = None

    @property
    def done(self) -> FitSettings:
        """The settings of the fit, with as many epochs as it took."""
        return as_done(self.settings, len(self.result.history) or self.settings.epochs)

    @property
    def has_direct_estimate(self) -> bool:
        """Were edges chosen first, so that mean and variance of the targets tell how often they act?"""
        return self.kept is not None and has_direct_estimate(self.result.model)

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

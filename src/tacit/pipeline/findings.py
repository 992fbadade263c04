"""Inputs and results of the stages of the assessment, results before a model is fitted, and scores of groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from tacit.assessment.evaluation import ForecastScores
from tacit.assessment.evidence import KEEP, Evidence
from tacit.assessment.uncertainty import Acting, Kept, has_direct_estimate
from tacit.config import FitConfig
from tacit.data import Pairs, Split
from tacit.edges import EdgeIndex, EdgeTable
from tacit.graph import ContextVariable, GraphDistribution
from tacit.pipeline.comparisons import Reference
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.evidence import REGRESSION, RegressionEvidence
from tacit.pipeline.preparation import Preparation
from tacit.randomness import generator_for
from tacit.shapes import EdgeMask
from tacit.training import FitResult, FitSettings, LatentGraphModel, Listener
from tacit.words import GAUSSIAN_P, Finding


@dataclass
class Assessment:
    """The results of the assessment.

    ``edges``       what is known of the edges of the graph
    ``evidence``    how edges were tested, as in ``record.json``; empty if they were not
    ``references``  scores of other forecasts, with the gain over them in scaled CRPS if it was computed
    ``simple``      forecasts without a model, if a stage needed them
    ``node_gains``  how much the edges improve the forecast of each node, as a fraction of its scaled CRPS
    ``model``       the fit in which edges depend on the situation, or have regimes; None if the first fit is kept
    ``situations``  the results on situations or regimes, as in ``record.json``
    """

    edges: EdgeTable
    evidence: dict[str, Any] = field(default_factory=dict)
    evidence_seconds: float = 0.0
    references: dict[str, dict[str, float]] = field(default_factory=dict)
    simple: dict[str, Reference] | None = None
    node_gains: dict[str, float] = field(default_factory=dict)
    goodness: dict[str, Any] = field(default_factory=dict)
    uncertainty: dict[str, float | str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    model: LatentGraphModel | None = None
    situations: dict[str, Any] = field(default_factory=dict)
    situation_sentences: tuple[str, ...] = ()
    scores: ForecastScores | None = None  # of the model on the test part, if a stage needed them


@dataclass(frozen=True)
class AssessmentInputs:
    """A fit and its inputs.

    ``untrained``  the model before the fit
    ``kept``       a function that returns the edges that may exist given the rows of a resample; None if edges were not
                   selected before the fit: a probability then includes whether the edge exists
    ``dropped``    edges that are fixed at 0 because they are unlikely to exist, not because of a rule
    ``closed_form``  whether regressions gave the fit; they then also give the controls
    ``levelled``   pairs for the fit test that replace the test part
    ``variables``  variables that edges may depend on, if this is tested
    ``dataset``    the data set, for times and series of regimes
    ``acting``     how often edges act, if the fit found it, with intervals
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
    acting: Acting | None = None

    @property
    def done(self) -> FitSettings:
        """The settings of the fit, with the number of epochs that were run."""
        return as_done(self.settings, len(self.result.history) or self.settings.epochs)

    @property
    def has_direct_estimate(self) -> bool:
        """Whether edges were selected first, so that mean and variance of the targets show how often they act."""
        return self.kept is not None and has_direct_estimate(self.result.model)

    @property
    def compile(self) -> bool:
        """Whether training steps are compiled."""
        return bool(self.config.training.compile)

    def generator(self, purpose: str) -> torch.Generator:
        """Return a generator on the device of the data."""
        return generator_for(self.seed, purpose, self.split.train.inputs.device)


def as_done(settings: FitSettings, epochs: int) -> FitSettings:
    """Return the settings of a fit that ended after ``epochs`` epochs."""
    halvings = tuple(epoch for epoch in settings.halve_after if epoch < epochs)
    return replace(settings, epochs=epochs, patience=None, halve_after=halvings)


def known_before_fit(evidence: RegressionEvidence | None, config: FitConfig, index: EdgeIndex) -> Assessment:
    """Return the results before the fit for the edges of a graph: which exist, their effects and lags."""
    if evidence is None:
        return Assessment(EdgeTable(index, fdr=config.assessment.fdr))
    about = _about(REGRESSION, evidence.prior, evidence.notes, config, evidence.resamples)
    about["smallest_effect"] = config.graph.smallest_effect
    if evidence.changes:
        about["changes"] = list(evidence.changes)
    if evidence.within is not None:
        about |= {GAUSSIAN_P: evidence.within.gaussian, "notes": [*about["notes"], *evidence.within.notes]}
    return Assessment(evidence.table.moved(index), evidence=about, evidence_seconds=evidence.seconds)


def from_evidence(found: Evidence, config: FitConfig, graph: GraphDistribution, index: EdgeIndex) -> Assessment:
    """Return the evidence of a fitted model."""
    table = EdgeTable(index, keep=KEEP, fdr=config.assessment.fdr)
    table = table.updated(exists=graph.vector(found.exists), effect=graph.vector(found.effect))
    return Assessment(table, evidence=_about(found.method, found.prior, found.notes, config))


def _about(
    method: str, prior: Mapping[str, float | str], notes: Sequence[str], config: FitConfig, resamples: int = 0
) -> dict[str, Any]:
    """Return how the edges were tested, for the record."""
    return {
        "method": method,
        "prior": prior,
        "keep": KEEP,
        "fdr": config.assessment.fdr,
        "resamples": resamples,
        "notes": list(notes),
    }


Named = dict[str, dict[str, float]]  # score -> name of the node or series -> number


def group_scores(scores: ForecastScores, nodes: Sequence[str], series_names: Sequence[str]) -> dict[str, Named]:
    """Return ``by_node`` and ``by_series``; the latter is empty if series have no names."""
    return {"by_node": _named(scores.by_node, nodes), "by_series": _named(scores.by_series, series_names)}


def _named(scores: dict[str, list[float]], names: Sequence[str]) -> Named:
    # Series at the end that have no pair are not in the scores.
    return {score: dict(zip(names, values, strict=False)) for score, values in scores.items()} if names else {}

"""The state of a fit. A stage takes a :class:`Fit` and returns the next one; the times of the stages."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tacit.assessment.evaluation import ForecastScores
from tacit.assessment.evidence import BELIEVED
from tacit.assessment.uncertainty import Acting, Kept, has_direct_estimate
from tacit.config import FitConfig
from tacit.data import Split
from tacit.edges import EdgeTable
from tacit.graph import EdgeRules
from tacit.pipeline.comparisons import Reference
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.evidence import RegressionEvidence
from tacit.pipeline.parts import OwnParts
from tacit.pipeline.preparation import Preparation, block_length
from tacit.randomness import generator_for
from tacit.shapes import EdgeMask
from tacit.training import TOO_EARLY, CosineDecay, FitResult, FitSettings, LatentGraphModel, Listener
from tacit.words import Choice, Finding

HALVINGS = (0.1, 0.2)  # fractions of the training after which the worse half of the replicas stops
PRELIMINARY = "Training was stopped before its end: the result is preliminary."


class StageTimes:
    """Seconds by stage, in the order in which stages first began; the times of a repeated stage are added.

    The name of a stage is the text before the colon: "fit: compiling" and "fit: training" are one stage.

    >>> times = StageTimes(Listener(stage=print), clock=iter([0.0, 2.0, 3.0]).__next__)
    >>> times.stage("reading: a.csv")
    reading: a.csv
    >>> times.stage("fit: training")
    fit: training
    >>> times.finish()
    >>> times.seconds
    {'reading': 2.0, 'fit': 1.0}
    """

    def __init__(self, listener: Listener, clock: Callable[[], float] = time.perf_counter) -> None:
        self.seconds: dict[str, float] = {}
        self._listener, self._clock = listener, clock
        self._name, self._start = "", 0.0

    def stage(self, text: str) -> None:
        """Begin a stage, or another part of the current one."""
        name = text.split(":")[0]
        if name != self._name:
            now = self._end()
            self._name, self._start = name, now
        self._listener.stage(text)

    def finish(self) -> None:
        """End the stage that is running."""
        self._end()
        self._name = ""

    def rounded(self) -> dict[str, float]:
        """Return the seconds, rounded to milliseconds, for the record."""
        return {name: round(seconds, 3) for name, seconds in self.seconds.items()}

    def _end(self) -> float:
        now = self._clock()
        if self._name:
            took = now - self._start
            self.seconds[self._name] = self.seconds.get(self._name, 0.0) + took
            self._listener.finished(self._name, took)
        return now


@dataclass(frozen=True)
class TimedListener(Listener):
    """A listener whose stages are timed."""

    times: StageTimes = field(default_factory=lambda: StageTimes(Listener()))

    @classmethod
    def of(cls, listener: Listener | None) -> "TimedListener":
        """Return the listener with a clock; a timed listener is returned unchanged."""
        if isinstance(listener, cls):
            return listener
        listener = listener or Listener()
        times = StageTimes(listener)
        return cls(times.stage, listener.step, listener.finished, listener.say, times)


@dataclass(frozen=True, eq=False)
class Fit:
    """What is known of a fit, from its options to its results.

    ``config``    all options, each of them set; ``choices`` are those that were chosen from the data, with reasons
    ``own``       parts of the model that were passed as objects
    ``evidence``  which edges may exist, if this was found by regressions before the fit
    ``closed_form``  whether regressions may give the complete fit
    ``untrained`` the model before the fit

    ``split``     the pairs, on the device of the fit
    ``fitted``    the result of the training, or of regressions; None before
    ``acting``    how often edges act, if the fit found it, with intervals
    ``dropped``   edges that are fixed at 0 because they are unlikely to exist, not because of a rule
    ``varying``   the model in which edges depend on the situation, or have regimes; None if the first fit is kept
    ``complete``  false after Ctrl-C

    ``edges``     what is known of the edges of the graph
    ``tested``    how edges were tested, as in ``record.json``; empty if they were not
    ``references``  scores of other forecasts, with the gain over them in scaled CRPS if it was computed
    ``simple``    forecasts without a model, if a stage needed them
    ``node_gains``  how much the edges improve the forecast of each node, as a fraction of its scaled CRPS
    ``situations``  the results on situations or regimes, as in ``record.json``
    ``scores``    of the model on the test part, if a stage needed them
    """

    name: str
    command: str
    config: FitConfig
    seed: int
    device: torch.device
    dataset: Dataset
    rules: EdgeRules
    untrained: LatentGraphModel
    split: Split
    edges: EdgeTable
    choices: tuple[Choice, ...] = ()
    notes: tuple[str, ...] = ()
    coordinates: np.ndarray | None = None
    own: OwnParts = field(default_factory=OwnParts)
    listener: TimedListener = field(default_factory=lambda: TimedListener.of(None))
    evidence: RegressionEvidence | None = None
    closed_form: bool = False
    fitted: FitResult | None = None
    acting: Acting | None = None
    dropped: EdgeMask | None = None
    varying: LatentGraphModel | None = None
    complete: bool = True
    tested: dict[str, Any] = field(default_factory=dict)
    evidence_seconds: float = 0.0
    uncertainty: dict[str, float | str] = field(default_factory=dict)
    goodness: dict[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    situations: dict[str, Any] = field(default_factory=dict)
    situation_sentences: tuple[str, ...] = ()
    scores: ForecastScores | None = None
    references: dict[str, dict[str, float]] = field(default_factory=dict)
    simple: dict[str, Reference] | None = None
    node_gains: dict[str, float] = field(default_factory=dict)

    @property
    def result(self) -> FitResult:
        """The result of the training, or of regressions."""
        assert self.fitted is not None
        return self.fitted

    @property
    def model(self) -> LatentGraphModel:
        """The model for forecasts: with situations or regimes, if they were found; untrained before the fit."""
        if self.varying is not None:
            return self.varying
        return self.untrained if self.fitted is None else self.fitted.model

    @property
    def preparation(self) -> Preparation:
        """How data become pairs."""
        return self.dataset.preparation

    @property
    def settings(self) -> FitSettings:
        """The settings of the training; the worse half of the replicas stops after the first epochs."""
        return fit_settings(self.config)

    @property
    def done(self) -> FitSettings:
        """The settings of the fit, with the number of epochs that were run."""
        return as_done(self.settings, len(self.result.history) or self.settings.epochs)

    @property
    def compile(self) -> bool:
        """Whether training steps are compiled."""
        return bool(self.config.training.compile)

    @property
    def block(self) -> int:
        """Number of neighbouring training pairs that are resampled together."""
        return block_length(self.config.assessment, self.preparation, len(self.split.train))

    @property
    def kept(self) -> Kept | None:
        """A function that returns the edges that may exist given the rows of a resample.

        None if edges were not selected before the fit: a probability then includes whether the edge exists.
        """
        evidence, graph, train = self.evidence, self.result.model.graph, self.dataset.split.train
        if evidence is None:
            return None
        index = graph.index(self.dataset.nodes)

        def kept(rows: Tensor) -> Tensor:
            masks = evidence.kept_on(train, self.preparation, rows, self.seed)
            return torch.stack([graph.placed(evidence.table.index.moved(mask, index)) for mask in masks])

        return kept

    @property
    def likely(self) -> EdgeMask | None:
        """The edges that probably exist, or that the model needs; None if edges were not tested before the fit."""
        evidence, graph = self.evidence, (self.untrained if self.fitted is None else self.fitted.model).graph
        if evidence is None:
            return None
        probably = evidence.exists >= BELIEVED
        probably = probably if evidence.needed is None else probably | evidence.needed
        return graph.placed(evidence.table.index.moved(probably, graph.index(self.dataset.nodes)))

    @property
    def has_direct_estimate(self) -> bool:
        """Whether edges were selected first, so that mean and variance of the targets show how often they act."""
        return self.kept is not None and has_direct_estimate(self.result.model)

    @property
    def too_early(self) -> str:
        """A sentence if training stopped too early and regressions did not give the result, otherwise empty."""
        if self.result.interrupted:
            return PRELIMINARY
        known = has_own_estimate(self.uncertainty) and bool(self.uncertainty["adopted"])
        return "" if known or not self.result.late_fall else TOO_EARLY.format(fall=self.result.late_fall)

    def generator(self, purpose: str) -> torch.Generator:
        """Return a generator on the device of the data."""
        return generator_for(self.seed, purpose, self.split.train.inputs.device)

    def found(self, *findings: Finding, **changes: Any) -> "Fit":
        """Return the next state, with further findings."""
        return replace(self, findings=(*self.findings, *findings), **changes)


def has_own_estimate(uncertainty: Mapping[str, float | str]) -> bool:
    """Return whether the errors come with an estimate of their own, without training: how often edges act."""
    return uncertainty.get("method") in ("regressions", "likelihood")


def fit_settings(config: FitConfig) -> FitSettings:
    """Return the settings of the training; the worse half of the replicas stops after the first epochs."""
    training = config.training
    epochs, rate = training.epochs or 1, training.predictor_learning_rate or training.learning_rate
    halvings = {max(1, round(part * epochs)) for part in HALVINGS} if (training.replicas or 1) > 1 else set()
    return FitSettings(
        epochs=epochs,
        batch_size=training.batch_size or 1,
        schedule=CosineDecay(training.learning_rate),
        predictor_learning_rate=rate,
        halve_after=tuple(sorted(epoch for epoch in halvings if epoch < epochs)),
        patience=training.patience,
    )


def as_done(settings: FitSettings, epochs: int) -> FitSettings:
    """Return the settings of a fit that ended after ``epochs`` epochs."""
    halvings = tuple(epoch for epoch in settings.halve_after if epoch < epochs)
    return replace(settings, epochs=epochs, patience=None, halve_after=halvings)

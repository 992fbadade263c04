"""From a plan to results: train, assess, score. The command and the estimators both use this path."""

import copy
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np
import torch
from torch import Tensor

from tacit.assessment.evaluation import PAIRWISE_GRAPHS, forecast_scores, predictive_metrics
from tacit.assessment.uncertainty import Acting, Kept
from tacit.config import FitConfig
from tacit.data import Split
from tacit.edges import EdgeIndex
from tacit.graph import GraphDistribution
from tacit.interrupts import deferred_interrupts
from tacit.local import start_at_regression
from tacit.pipeline.answer import GAUSSIAN_P, answer_sentences, caveats, required_edges
from tacit.pipeline.assessment import assess
from tacit.pipeline.backgrounds import background_curves
from tacit.pipeline.closed_form import fit_closed_form, in_closed_form
from tacit.pipeline.comparisons import Reference, references
from tacit.pipeline.findings import Assessment, AssessmentInputs, as_done, from_evidence, group_scores, known_before_fit
from tacit.pipeline.fitted import Fitted
from tacit.pipeline.forecasts import shown_forecasts
from tacit.pipeline.model_evidence import EARLY, judge_edges, judges_edges, why_unknown, with_needed_edges
from tacit.pipeline.parts import MOST_EXPANDED
from tacit.pipeline.plan import Plan
from tacit.pipeline.preparation import block_length
from tacit.pipeline.simultaneous import held_sentences, without_held
from tacit.pipeline.situation_stage import asks_situations
from tacit.pipeline.situations import context_variables
from tacit.randomness import generator_for, replica_seeds
from tacit.records import CandidateCount, ForecastTable, Record, describe_device, history_line, versions
from tacit.threads import threads_for
from tacit.training import (
    TOO_EARLY,
    Checkpoints,
    CosineDecay,
    FitResult,
    FitSettings,
    LatentGraphModel,
    Processes,
    densify,
    densify_result,
    fit,
)

HALVINGS = (0.1, 0.2)  # fractions of the training after which the worse half of the replicas stops
STOPPED_VALUES = 2000  # values of the test part that are scored after Ctrl-C, so that the run ends soon
STOPPED = "the run was stopped: the scores use {pairs} of {all} test pairs, evenly spaced"
GOING_ON = 1 / 2  # of the epochs, for a trained model with more edges
PRELIMINARY = "Training was stopped before its end: the result is preliminary."


@dataclass(frozen=True, eq=False)
class Learned:
    """The result of a plan; ``complete`` is false if it was stopped by Ctrl-C.

    ``too_early``  a sentence if training stopped too early, otherwise empty
    """

    plan: Plan
    split: Split
    result: FitResult
    assessment: Assessment
    complete: bool
    too_early: str = ""

    @property
    def model(self) -> LatentGraphModel:
        """The model for forecasts: the one with situations or regimes, if they were found."""
        return self.assessment.model or self.result.model

    def compared(self) -> "Learned":
        """Return the result with scores of forecasts without a model; it is not complete after Ctrl-C."""
        if self.assessment.simple or not self.complete:
            return self
        self.plan.listener.stage("scoring: forecasts without a model")
        try:
            self.assessment.simple = self.without_model()
        except KeyboardInterrupt:
            if Processes.current().several:
                raise
            return replace(self, complete=False)
        return self

    def without_model(self) -> dict[str, Reference]:
        """Return scores of forecasts without a model, of a graph over all pairs also those of a regression."""
        ridge = self.complete and self.result.model.graph.has_all_pairs
        return references(self.plan.dataset.preparation, _scored(self)[0], ridge=ridge)

    def conclude(self) -> Fitted:
        """Score the model on the test part, and return the fit."""
        with deferred_interrupts(), threads_for(len(self.plan.dataset.nodes) ** 2):
            self.plan.listener.stage("scoring: forecasts of the test part")
            record = _record(self)
            forecasts, background = self._forecasts(), None
            if self.complete and self.plan.evidence is not None:
                background, said = background_curves(self.plan.evidence.backgrounds, self.plan.dataset)
                record = record.model_copy(update={"background": said})
            self.plan.listener.times.finish()
            record = record.model_copy(update={"stages": self.plan.listener.times.rounded()})
        history = [history_line(epoch) for epoch in self.result.history]
        own = self.plan.own.predictor
        return Fitted(
            record,
            self.assessment.edges,
            history,
            self.plan.config,
            self.plan.dataset.preparation,
            self.model,
            own,
            forecasts=forecasts,
            background=background,
        )

    def _forecasts(self) -> ForecastTable | None:
        """Return the forecasts that the page shows; none of a run that was stopped, for which a person waits."""
        if not self.complete:
            return None
        plan = self.plan
        return shown_forecasts(self.model, self.split.test, plan.dataset, plan.config, self.assessment.edges, plan.seed)


def learn(plan: Plan, *, checkpoint: Checkpoints | None = None) -> Learned:
    """Train and assess; after Ctrl-C the results up to then are kept."""
    with threads_for(len(plan.dataset.nodes) ** 2):
        return _learn(plan, checkpoint)


def _learn(plan: Plan, checkpoint: Checkpoints | None) -> Learned:
    config, listener, processes = plan.config, plan.listener, Processes.current()
    split, settings = plan.dataset.split.to(plan.device), fit_settings(config)
    result, untrained, acting = _train(plan, split, settings, checkpoint)
    plan, result, untrained, acting, stopped = _with_needed_edges(plan, split, settings, result, untrained, acting)
    if len(plan.dataset.nodes) <= MOST_EXPANDED:
        result, untrained = densify_result(result), densify(untrained)
    index = result.model.graph.index(plan.dataset.nodes)
    assessment, complete = known_before_fit(plan.evidence, config, index), not stopped
    try:
        if complete and (config.assessment.enabled or asks_situations(config)):
            dropped, evidence = None, plan.evidence
            if evidence is not None:
                dropped = result.model.graph.placed(evidence.table.index.moved(evidence.dropped, index))
            if config.assessment.enabled and judges_edges(plan, result) and not result.late_fall:
                judged = judge_edges(plan, result, untrained, split, as_done(settings, len(result.history)))
                result, untrained, dropped, acting = judged.result, judged.untrained, judged.dropped, None
                assessment = from_evidence(judged.evidence, config, result.model.graph, index)
                assessment.evidence_seconds = judged.seconds
            inputs = AssessmentInputs(
                result,
                untrained,
                split,
                config,
                settings,
                plan.dataset.preparation,
                plan.seed,
                listener,
                kept=_kept(plan, result.model.graph, index),
                dropped=dropped,
                closed_form=not result.history,
                levelled=plan.dataset.levelled,
                variables=context_variables(plan.dataset, config),
                dataset=plan.dataset,
                acting=acting,
            )
            assess(assessment, inputs)
    except KeyboardInterrupt:  # what was learned is kept
        if processes.several:
            raise
        complete = False
    assessment.edges = without_held(assessment.edges, result.model)
    assessment.findings += held_sentences(result.model, plan.dataset.nodes)
    return Learned(plan, split, result, assessment, complete, _too_early(result, assessment))


def _with_needed_edges(
    plan: Plan,
    split: Split,
    settings: FitSettings,
    result: FitResult,
    untrained: LatentGraphModel,
    acting: Acting | None,
) -> tuple[Plan, FitResult, LatentGraphModel, Acting | None, bool]:
    """Train again with the dropped edges that the model needs; after Ctrl-C the first fit is kept."""
    if result.interrupted:
        return plan, result, untrained, acting, True
    try:
        again = with_needed_edges(plan, result.model, split.train)
        if again is None:
            return plan, result, untrained, acting, False
        second, start, acts = _train(again, split, settings, earlier=result)
    except KeyboardInterrupt:
        if Processes.current().several:
            raise
        return plan, result, untrained, acting, True
    if second.interrupted:
        return plan, result, untrained, acting, True
    return again, second, start, acts, False


def _too_early(result: FitResult, assessment: Assessment) -> str:
    """Return a sentence if training stopped too early, unless regressions gave the result."""
    if result.interrupted:
        return PRELIMINARY
    always_known = "always" in assessment.uncertainty and assessment.uncertainty["adopted"] > 0
    return "" if always_known or not result.late_fall else TOO_EARLY.format(fall=result.late_fall)


def _train(
    plan: Plan,
    split: Split,
    settings: FitSettings,
    checkpoint: Checkpoints | None = None,
    earlier: FitResult | None = None,
) -> tuple[FitResult, LatentGraphModel, Acting | None]:
    """Return the fitted model, and a copy before the fit; a fit in closed form also finds how often edges act.

    With an ``earlier`` training of one replica on fewer edges, the training goes on from there.
    """
    config, listener = plan.config, plan.listener
    if plan.closed_form:
        moments = plan.model.observation.by_moments
        listener.stage("fit: regressions of mean and variance" if moments else "fit: likelihood of each node")
        model = plan.model.to(split.train.inputs.device, split.train.inputs.dtype)
        block = block_length(config.assessment, plan.dataset.preparation, len(split.train))
        switching = bool(config.graph.regimes)
        assessed = config.assessment.enabled
        settled = fit_closed_form(
            model,
            split,
            plan.seed,
            block=block,
            assessed=assessed,
            switching=switching,
            intervals=assessed and plan.evidence is not None,
        )
        if settled is not None:
            return settled[0], model, settled[1]
    listener.stage("fit: starting values")
    model = plan.model.to(split.train.inputs.device, split.train.inputs.dtype)
    at_regression = plan.evidence is not None and start_at_regression(model, split.train)
    untrained, seeds = copy.deepcopy(model), replica_seeds(plan.seed, config.training.replicas or 1)
    if earlier is not None and (
        len(seeds) > 1 or not earlier.history or earlier.model.graph.raw.shape != model.graph.raw.shape
    ):
        earlier = None
    if earlier is not None:
        new = model.graph.raw.detach().clone()
        model.load_state_dict(dict(earlier.model.named_parameters()), strict=False)
        model.graph.raw.data = torch.where(earlier.model.graph.learned, model.graph.raw.data, new)
        settings = replace(settings, epochs=max(1, math.ceil(GOING_ON * settings.epochs)))
    listener.stage(f"fit: {'compiling' if config.training.compile else 'training'}")
    result = fit(
        model,
        split.train,
        split.validation,
        settings,
        seeds=seeds,
        compile=bool(config.training.compile),
        start_at_model=at_regression or earlier is not None,
        on_progress=listener.step,
        checkpoint=checkpoint,
    )
    if earlier is not None:
        before = earlier.history
        result = replace(
            result,
            history=[*before, *(replace(one, epoch=len(before) + one.epoch) for one in result.history)],
            steps=earlier.steps + result.steps,
            train_seconds=earlier.train_seconds + result.train_seconds,
        )
    return result, untrained, None


def _kept(plan: Plan, graph: GraphDistribution, index: EdgeIndex) -> Kept | None:
    """Return a function that selects edges on resamples of the training pairs, as in the evidence stage."""
    evidence = plan.evidence
    if evidence is None:
        return None
    train, preparation = plan.dataset.split.train, plan.dataset.preparation

    def kept(rows: Tensor) -> Tensor:
        masks = evidence.kept_on(train, preparation, rows, plan.seed)
        return torch.stack([graph.placed(evidence.table.index.moved(mask, index)) for mask in masks])

    return kept


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


def _record(learned: Learned) -> Record:
    plan, result, assessment = learned.plan, learned.result, learned.assessment
    split, few = _scored(learned)
    model, device, preparation = learned.model, split.test.inputs.device, plan.dataset.preparation
    scores = assessment.scores
    if scores is None:
        generator = generator_for(plan.seed, "score", device)
        scores = forecast_scores(model, split.test, generator=generator, spread=preparation.spread(split.test))
    scaled = predictive_metrics(
        model,
        split.test,
        model.loss,
        generator=generator_for(plan.seed, "scaled", device),
        point_graphs=PAIRWISE_GRAPHS,
    )
    metrics = {**scores.numbers(), **{name: scaled[name] for name in ("energy_score", "distribution_loss")}}
    groups = group_scores(scores, plan.dataset.nodes, plan.dataset.series_names)
    simple = assessment.simple or learned.without_model()
    compared = {**{name: one.numbers for name, one in simple.items()}, **assessment.references}
    compared = {name: _finite(numbers) for name, numbers in compared.items()}
    edges = model.graph.described(assessment.edges)
    listed, required = edges.listed(), edges.index.at(required_edges(edges))
    least = np.nan_to_num(edges.values.astype(np.float32)[listed]).min(initial=1.0)
    return Record(
        title=f"{plan.name}, {_ahead(plan)}",
        command=plan.command,
        config=plan.config.model_dump(mode="json"),
        seed=plan.seed,
        versions=versions(),
        device=describe_device(device, Processes.current().count),
        timings={
            "train_seconds": result.train_seconds,
            "compile_seconds": result.compile_seconds,
            "evidence_seconds": assessment.evidence_seconds,
            "steps": result.steps,
        },
        metrics=_finite(metrics),
        by_node={score: _finite(values) for score, values in groups["by_node"].items()},
        by_series={score: _finite(values) for score, values in groups["by_series"].items()},
        replicas=[asdict(replica) for replica in result.replicas],
        best_replica=result.best,
        node_names=list(plan.dataset.nodes),
        converged=not learned.too_early,
        warnings=[*few, *plan.notes, *result.warnings, *caveats(edges)],
        choices=plan.choices if result.history else in_closed_form(plan.choices, result.model),
        references=compared,
        preparation=preparation.to_dict(),
        coordinates=None if plan.coordinates is None else plan.coordinates.tolist(),
        findings=assessment.findings,
        goodness=assessment.goodness,
        uncertainty=assessment.uncertainty,
        answer=answer_sentences(
            edges,
            compared,
            assessment.evidence.get("notes", ()),
            EARLY if learned.too_early else why_unknown(plan.config, result.model.graph),
            learned.too_early,
            assessment.situation_sentences,
            assessment.evidence.get(GAUSSIAN_P),
        ),
        evidence=assessment.evidence
        and {
            **assessment.evidence,
            "listed_from": float(f"{least:.6g}") if listed.any() else None,  # as in edges.csv
            "required": np.stack([required.source, required.target], 1).tolist(),
        },
        node_gains=assessment.node_gains,
        situations=assessment.situations,
        candidates=CandidateCount.of(model.graph.layout.num_candidates),
    )


def _scored(learned: Learned) -> tuple[Split, list[str]]:
    """Return the data for scoring, and notes; a stopped run is scored on fewer test pairs."""
    split, most = learned.split, max(1, STOPPED_VALUES // learned.split.test.num_nodes)
    if learned.complete or learned.assessment.scores is not None or len(split.test) <= most:
        return split, []
    test = split.test[:: -(-len(split.test) // most)]
    return replace(split, test=test), [STOPPED.format(pairs=len(test), all=len(split.test))]


def _finite(numbers: Mapping[str, float]) -> dict[str, float]:
    """Return the finite numbers; others are absent from a record."""
    return {name: value for name, value in numbers.items() if math.isfinite(value)}


def _ahead(plan: Plan) -> str:
    preparation = plan.dataset.preparation
    names, steps = ", ".join(preparation.target_names), preparation.horizon
    return f"{names}, {steps} step{'s' if steps > 1 else ''} ahead" if preparation.is_series else names

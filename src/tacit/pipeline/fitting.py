"""From a resolved fit to results: the stages in order. The command and the estimators both use this path."""

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace

import numpy as np
import torch

from tacit.assessment.evaluation import PAIRWISE_GRAPHS, forecast_scores, predictive_metrics
from tacit.assessment.evidence import CORRELATED, DRIVER, MOST_NODES
from tacit.edges import EdgeTable
from tacit.interrupts import deferred_interrupts
from tacit.local import Dependence, MeanEquations, has_linear_mean, mean_equations, start_at_regression
from tacit.pipeline.assessment import assess
from tacit.pipeline.backgrounds import background_curves
from tacit.pipeline.closed_form import fit_closed_form, in_closed_form
from tacit.pipeline.comparisons import group_scores, references
from tacit.pipeline.evidence import REGRESSION
from tacit.pipeline.fitted import Fitted
from tacit.pipeline.forecasts import shown_forecasts
from tacit.pipeline.model_evidence import (
    EARLY,
    how_tested,
    judge_edges,
    judges_edges,
    why_unknown,
    with_needed_edges,
)
from tacit.pipeline.parts import MOST_EXPANDED
from tacit.pipeline.simultaneous import held_findings, without_held
from tacit.pipeline.state import Fit
from tacit.randomness import generator_for, replica_seeds
from tacit.records import CandidateCount, Record, describe_device, history_line, versions
from tacit.threads import threads_for
from tacit.training import Checkpoints, FitResult, Processes, densify, densify_result
from tacit.training import fit as train_model
from tacit.words import GAUSSIAN_P, answer_sentences, caveats, required_edges

STOPPED_VALUES = 2000  # values of the test part that are scored after Ctrl-C, so that the run ends soon
STOPPED = "the run was stopped: the scores use {pairs} of {all} test pairs, evenly spaced"
GOING_ON = 1 / 2  # of the epochs, for a trained model with more edges


def learn(fit: Fit, *, checkpoint: Checkpoints | None = None) -> Fit:
    """Train and assess; after Ctrl-C the results up to then are kept, and the fit is not complete."""
    with threads_for(len(fit.dataset.nodes) ** 2):
        fit = train(replace(fit, split=fit.dataset.split.to(fit.device)), checkpoint)
        fit = _until_stopped(fit, second_look)
        fit = known_before(fit)
        if fit.config.assessment.enabled or fit.config.graph.depends_on or fit.config.graph.regimes is not None:
            fit = _until_stopped(fit, judged, assess)
        edges = without_held(fit.edges, fit.result.model)
        return fit.found(*held_findings(fit.result.model, fit.dataset.nodes), edges=edges)


def _until_stopped(fit: Fit, *steps: Callable[[Fit], Iterator[Fit]]) -> Fit:
    """Run the steps of a complete fit, each of which yields states; Ctrl-C keeps the last of them."""
    if not fit.complete:
        return fit
    try:
        for step in steps:
            for state in step(fit):
                fit = state
    except KeyboardInterrupt:
        if Processes.current().several:
            raise
        return replace(fit, complete=False)
    return fit


def train(fit: Fit, checkpoint: Checkpoints | None = None, earlier: FitResult | None = None) -> Fit:
    """Fit the model: in closed form, which also finds how often edges act, or by gradients.

    With an ``earlier`` training of one replica on fewer edges, the training goes on from there.
    """
    config, listener, split, settings = fit.config, fit.listener, fit.split, fit.settings
    model = fit.untrained.to(split.train.inputs.device, split.train.inputs.dtype)
    if fit.closed_form:
        moments = model.observation.by_moments
        listener.stage("fit: regressions of mean and variance" if moments else "fit: likelihood of each node")
        settled = fit_closed_form(
            model,
            split,
            fit.seed,
            block=fit.block,
            assessed=config.assessment.enabled,
            switching=bool(config.graph.regimes),
            intervals=config.assessment.enabled and fit.evidence is not None,
            likely=fit.likely,
            always=config.data.events,
        )
        if settled is not None:
            return replace(fit, untrained=model, fitted=settled[0], acting=settled[1])
    listener.stage("fit: starting values")
    at_regression = fit.evidence is not None and start_at_regression(model, split.train)
    untrained, seeds = copy.deepcopy(model), replica_seeds(fit.seed, config.training.replicas or 1)
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
    result = train_model(
        model,
        split.train,
        split.validation,
        settings,
        seeds=seeds,
        compile=fit.compile,
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
    return replace(fit, untrained=untrained, fitted=result, acting=None, complete=not result.interrupted)


def second_look(fit: Fit) -> Iterator[Fit]:
    """Train once more if the model needs dropped edges; the first fit is kept if that is stopped."""
    again = with_needed_edges(fit)
    if again is not None:
        second = train(again, earlier=fit.result)
        yield second if second.complete else replace(fit, complete=False)


def known_before(fit: Fit) -> Fit:
    """Return the fit with what is known of its edges before the assessment: which exist, their effects and lags.

    Up to :data:`MOST_EXPANDED` nodes, a table of candidates becomes a graph over all pairs of nodes.
    """
    if len(fit.dataset.nodes) <= MOST_EXPANDED:
        fit = replace(fit, fitted=densify_result(fit.result), untrained=densify(fit.untrained))
    config, evidence, index = fit.config, fit.evidence, fit.result.model.graph.index(fit.dataset.nodes)
    if evidence is None:
        return replace(fit, edges=EdgeTable(index, fdr=config.assessment.fdr))
    about = how_tested(REGRESSION, evidence.prior, evidence.notes, config, evidence.resamples)
    about |= {"smallest_effect": config.graph.smallest_effect, "signs": sorted(evidence.found.notes)}
    form = evidence.found.search[0][0][0]
    searched = not (form.decay or form.products) and fit.preparation.horizon == 1  # for drivers
    residuals = not config.graph.simultaneous and len(fit.dataset.nodes) <= MOST_NODES
    about["signs_tested"] = [name for name, done in ((DRIVER, searched), (CORRELATED, residuals)) if done]
    if evidence.changes:
        about["changes"] = list(evidence.changes)
    if evidence.within is not None:
        about |= {GAUSSIAN_P: evidence.within.gaussian, "notes": [*about["notes"], *evidence.within.notes]}
    return replace(
        fit,
        edges=evidence.table.moved(index),
        tested=about,
        evidence_seconds=evidence.seconds,
        dropped=fit.result.model.graph.placed(evidence.table.index.moved(evidence.dropped, index)),
    )


def judged(fit: Fit) -> Iterator[Fit]:
    """Test the edges with the fitted model, if regressions did not."""
    if fit.config.assessment.enabled and judges_edges(fit) and not fit.result.late_fall:
        yield judge_edges(fit)


def compared(fit: Fit) -> Fit:
    """Return the fit with scores of forecasts without a model; it is not complete after Ctrl-C."""
    if fit.simple or not fit.complete:
        return fit
    fit.listener.stage("scoring: forecasts without a model")

    def scored(fit: Fit) -> Iterator[Fit]:
        yield replace(fit, simple=references(fit.preparation, fit.split, ridge=fit.result.model.graph.has_all_pairs))

    return _until_stopped(fit, scored)


def conclude(fit: Fit) -> Fitted:
    """Score the model on the test part, and return what a run holds."""
    with deferred_interrupts(), threads_for(len(fit.dataset.nodes) ** 2):
        fit.listener.stage("scoring: forecasts of the test part")
        record, forecasts, background = _record(fit), None, None
        if fit.complete:  # for a run that was stopped a person waits
            forecasts = shown_forecasts(fit.model, fit.split.test, fit.dataset, fit.config, fit.edges, fit.seed)
        if fit.complete and fit.evidence is not None:
            background, said = background_curves(fit.evidence.backgrounds, fit.dataset)
            record = record.model_copy(update={"background": said})
        fit.listener.times.finish()
        record = record.model_copy(update={"stages": fit.listener.times.rounded()})
    history = [history_line(epoch) for epoch in fit.result.history]
    return Fitted(
        record,
        fit.edges,
        history,
        fit.config,
        fit.preparation,
        fit.model,
        fit.own.predictor,
        forecasts=forecasts,
        background=background,
        equations=_equations(fit),
    )


def _equations(fit: Fit) -> MeanEquations | None:
    """Return the mean equations of a series with their covariances, if means are linear and edges do not vary."""
    model = fit.result.model
    if not (fit.complete and fit.preparation.is_series) or fit.varying is not None or not has_linear_mean(model):
        return None
    known = fit.edges.of_groups if "exists" in fit.edges else np.full(len(fit.edges), np.nan)
    exists = model.graph.placed(fit.edges.index.moved(known, model.graph.index(fit.dataset.nodes)), np.nan)
    train = fit.split.train  # forecasts that overlap have correlated errors
    return mean_equations(model, train, exists, Dependence(fit.preparation.horizon, train.series))


def _record(fit: Fit) -> Record:
    result, config, split, few = fit.result, fit.config, fit.split, list[str]()
    most = max(1, STOPPED_VALUES // split.test.num_nodes)
    if not fit.complete and fit.scores is None and len(split.test) > most:  # a stopped run is scored on fewer pairs
        test = split.test[:: -(-len(split.test) // most)]
        split, few = replace(split, test=test), [STOPPED.format(pairs=len(test), all=len(split.test))]
    model, device, preparation, scores = fit.model, split.test.inputs.device, fit.preparation, fit.scores
    if scores is None:
        generator = generator_for(fit.seed, "score", device)
        scores = forecast_scores(model, split.test, generator=generator, spread=preparation.spread(split.test))
    scaled = predictive_metrics(
        model,
        split.test,
        model.loss,
        generator=generator_for(fit.seed, "scaled", device),
        point_graphs=PAIRWISE_GRAPHS,
    )
    metrics = {**scores.numbers(), **{name: scaled[name] for name in ("energy_score", "distribution_loss")}}
    groups = group_scores(scores, fit.dataset.nodes, fit.dataset.series_names)
    ridge = fit.complete and result.model.graph.has_all_pairs
    simple = fit.simple or references(preparation, split, ridge=ridge)
    against = {**{name: one.numbers for name, one in simple.items()}, **fit.references}
    against = {name: _finite(numbers) for name, numbers in against.items()}
    edges = model.graph.described(fit.edges)
    listed, required = edges.listed(), edges.index.at(required_edges(edges))
    least = np.nan_to_num(edges.values.astype(np.float32)[listed]).min(initial=1.0)
    names, steps = ", ".join(preparation.target_names), preparation.horizon
    ahead = f"{names}, {steps} step{'s' if steps > 1 else ''} ahead" if preparation.is_series else names
    return Record(
        title=f"{fit.name}, {ahead}",
        command=fit.command,
        config=config.model_dump(mode="json"),
        seed=fit.seed,
        versions=versions(),
        device=describe_device(device, Processes.current().count),
        timings={
            "train_seconds": result.train_seconds,
            "compile_seconds": result.compile_seconds,
            "evidence_seconds": fit.evidence_seconds,
            "steps": result.steps,
        },
        metrics=_finite(metrics),
        by_node={score: _finite(values) for score, values in groups["by_node"].items()},
        by_series={score: _finite(values) for score, values in groups["by_series"].items()},
        replicas=[asdict(replica) for replica in result.replicas],
        best_replica=result.best,
        node_names=list(fit.dataset.nodes),
        converged=not fit.too_early,
        warnings=[*few, *fit.notes, *result.warnings, *caveats(edges)],
        choices=list(fit.choices) if result.history else in_closed_form(fit.choices, result.model),
        references=against,
        preparation=preparation.to_dict(),
        coordinates=None if fit.coordinates is None else fit.coordinates.tolist(),
        findings=list(fit.findings),
        goodness=fit.goodness,
        uncertainty=fit.uncertainty,
        answer=answer_sentences(
            edges,
            against,
            fit.tested.get("notes", ()),
            EARLY if fit.too_early else why_unknown(config, result.model.graph),
            fit.too_early,
            fit.situation_sentences,
            fit.tested.get(GAUSSIAN_P),
        ),
        evidence=fit.tested
        and {
            **fit.tested,
            "listed_from": float(f"{least:.6g}") if listed.any() else None,  # as in edges.csv
            "required": np.stack([required.source, required.target], 1).tolist(),
        },
        node_gains=fit.node_gains,
        situations=fit.situations,
        candidates=CandidateCount.of(model.graph.layout.num_candidates),
    )


def _finite(numbers: Mapping[str, float]) -> dict[str, float]:
    """Return the finite numbers; others are absent from a record."""
    return {name: value for name, value in numbers.items() if math.isfinite(value)}

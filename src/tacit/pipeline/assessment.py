"""The stages of the assessment: standard errors, identifiability, a fit test, other graphs, controls."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
import torch

from tacit.assessment.fit_tests import Goodness, goodness_of_fit, graph_controls
from tacit.assessment.identification import (
    CERTAIN,
    LOOPS_OFF,
    LOOPS_ON,
    Identifiability,
    Representation,
    compare_replicas,
    find_representations,
    identify,
)
from tacit.assessment.uncertainty import ALWAYS_ABOVE, expected_wrong_edges
from tacit.data import Pairs
from tacit.edges import ACTS, EdgeTable
from tacit.errors import TrainingError
from tacit.pipeline.comparisons import compare_forecasts, too_large_for_ridge
from tacit.pipeline.parts import MOST_EXPANDED
from tacit.pipeline.preparation import Preparation
from tacit.pipeline.simultaneous import with_held
from tacit.pipeline.situation_stage import regimes, varying_edges, which_depend, which_switch
from tacit.pipeline.state import Fit, has_own_estimate
from tacit.pipeline.std_errors import estimate_std_errors
from tacit.randomness import generator_for, replica_seeds
from tacit.training import LatentGraphModel
from tacit.words import Finding, FindingKind, find

# Pairs of the fit test: enough to detect relevant misfits. With many nodes fewer, so that the number of targets is
# limited, but never fewer than 100.
MOST_TESTED = 2000
MOST_TESTED_NUMBERS, FEWEST_TESTED = 1_000_000, 100
SHORTER = 0.3  # of the epochs of the fit, for a predictor that starts from the fitted one
MOST_FLIPPED = 40_000
SHOWN = 0.5  # edges with a larger probability count as present


class Stage(NamedTuple):
    """A stage of the assessment: its name, the question that it answers, whether a fit needs it, and the stage."""

    name: str
    question: Callable[[Fit], str]
    needed: Callable[[Fit], bool]
    run: Callable[[Fit], Fit]
    of_edges: bool = True  # it requires all pairs of nodes, and a probability for each


def assess(fit: Fit) -> Iterator[Fit]:
    """Run the stages that a fit needs; each yields the next state.

    A stage that fails adds a finding, and the next one follows.
    """
    graph = fit.result.model.graph
    lacking = "no edge probabilities" if not graph.has_edge_probs else None if graph.has_all_pairs else "many nodes"
    for stage in STAGES:
        if not stage.needed(fit):
            continue
        about: dict[str, Any] = {"stage": stage.name, "question": stage.question(fit)}
        if lacking and stage.of_edges:
            yield (fit := fit.found(find(FindingKind.NOT_COMPUTED, reason=lacking, limit=MOST_EXPANDED, **about)))
            continue
        fit.listener.stage(f"{stage.name}: {about['question']}")
        try:
            fit = stage.run(fit)
        except (TrainingError, torch.OutOfMemoryError) as error:
            first = str(error).splitlines()[0]
            fit = fit.found(find(FindingKind.NOT_COMPUTED, reason="failed", error=first, **about))
        yield fit


def _errors_from(fit: Fit) -> str:
    if fit.has_direct_estimate:
        moments = fit.result.model.observation.by_moments
        return "regressions of mean and variance" if moments else "profile likelihoods"
    return f"{fit.config.assessment.replicas} replicas on resampled data"


def fit_test(
    model: LatentGraphModel, pairs: Pairs, preparation: Preparation, seed: int, *, trained: bool = True
) -> Goodness | None:
    """Test how a model fits pairs that it was not fitted on; None if fewer than two of them have targets.

    Forecasts further ahead than one step overlap, so some pairs are left out.

    ``trained``  false for a fit in closed form
    """
    pairs = pairs.with_targets()
    horizon, numbers = preparation.horizon, pairs.targets[0].numel()
    most = min(MOST_TESTED, max(FEWEST_TESTED, MOST_TESTED_NUMBERS // numbers))
    stride = horizon * max(1, -(-len(pairs) // (horizon * most)))
    if -(-len(pairs) // stride) < 2:
        return None
    generator = generator_for(seed, "goodness", pairs.inputs.device)
    names = list(preparation.nodes)
    return goodness_of_fit(model, pairs, generator=generator, stride=stride, node_names=names, trained=trained)


def std_errors(fit: Fit) -> Fit:
    """Estimate how often edges act, with standard errors; the model may get the mean over replicas."""
    if fit.result.late_fall and not fit.has_direct_estimate:
        return fit.found(find(FindingKind.NOT_COMPUTED, stage="standard errors", reason="training stopped"))
    found = estimate_std_errors(fit, moments=fit.has_direct_estimate, change=True)
    graph = fit.result.model.graph
    edges = fit.edges.updated(**{name: graph.vector(values) for name, values in found.columns.items()})
    return fit.found(*found.findings, edges=edges, uncertainty=found.uncertainty)


def identify_edges(
    model: LatentGraphModel, train: Pairs, preparation: Preparation, generator: torch.Generator, **options: Any
) -> Identifiability:
    """Return which edges are identifiable from the training pairs."""
    return identify(
        with_held(model),
        train.inputs,
        train.targets,
        observed=train.observed,
        generator=generator,
        num_pairs=len(train),
        nodes=preparation.nodes,
        **options,
    )


def identification(fit: Fit) -> Fit:
    """Find which edges are identifiable, and starts that found other graphs."""
    train, model = fit.split.train, fit.result.model
    count = int(model.graph.learned.sum())
    if count > MOST_FLIPPED:
        return fit.found(find(FindingKind.TOO_MANY_EDGES, count=count))
    found, findings = identify_edges(model, train, fit.preparation, fit.generator("identify")), list[Finding]()
    edges = fit.edges.updated(identifiable=model.graph.vector(found.flags()))
    if bool(found.learned.any()) or not bool(model.graph.learned.any()):  # else all directions are open
        findings += [find(FindingKind.IDENTIFICATION, line) for line in found.sentences()]
    if not has_own_estimate(fit.uncertainty):  # otherwise probabilities do not depend on the random start
        others = [other for other in compare_replicas(fit.result) if other.relation != "same"]
        findings += [find(FindingKind.OTHER_START, one.sentence(), **asdict(one)) for one in others]
    if "exists" not in edges:  # with it, the answer has the expected number of false edges
        wrong = expected_wrong_edges(
            model.graph.edge_probs.detach(),
            SHOWN,
            learned=found.learned,
            identifiable=found.identifiable,
            symmetric=model.graph.symmetric,
        )
        about: dict[str, Any] = {"false": float(wrong.false), "missed": float(wrong.missed), "level": SHOWN}
        findings.append(find(FindingKind.INACTIVE_EDGES, **about))
    return fit.found(*findings, edges=edges)


def goodness(fit: Fit) -> Fit:
    """Test whether the model fits the test part; the verdict comes first in the findings."""
    device, levelled = fit.split.test.inputs.device, fit.dataset.levelled
    pairs = fit.split.test if levelled is None else levelled.to(device)
    found = fit_test(fit.model, pairs, fit.preparation, fit.seed, trained=bool(fit.result.history))
    numbers = {} if found is None else found.to_dict()
    return replace(fit, goodness=numbers, findings=(*fit_findings(found), *fit.findings))


def fit_findings(found: Goodness | None) -> list[Finding]:
    """Return the verdict of a fit test and its details; None if there were too few pairs."""
    if found is None:
        return [find(FindingKind.FIT_NOT_TESTED)]
    first, *further = found.sentences()
    verdict = find(FindingKind.FIT_VERDICT, first, fits=found.fits, p_value=found.p_value)
    return [verdict, *(find(FindingKind.FIT_DETAIL, line) for line in further)]


def other_graphs(fit: Fit) -> Fit:
    """Find other graphs with which a retrained predictor forecasts as well.

    Whether edges always act is left out if the fit reports it for each edge.
    """
    certain = () if has_own_estimate(fit.uncertainty) else (CERTAIN,)
    found = find_representations(
        fit.result.model,
        fit.split.train,
        fit.split.validation,
        generator=fit.generator("representations"),
        names=(*certain, LOOPS_OFF, LOOPS_ON),  # complements appear in the replicas of the fit, and take many starts
        settings=replace(fit.done, halve_after=(), epochs=max(1, round(SHORTER * fit.done.epochs))),
        compile=fit.compile,
        on_progress=fit.listener.step,
    )
    equivalent = [other for other in found if other.equivalent]
    edges, findings = widened(fit.edges, equivalent)
    return fit.found(*findings, edges=edges)


def widened(edges: EdgeTable, equivalent: Sequence[Representation]) -> tuple[EdgeTable, list[Finding]]:
    """Return intervals that contain the other graphs that predict as well, and the findings on these graphs."""
    findings = list[Finding]()
    for other in equivalent:
        loss = {"loss": other.difference.mean, "std_error": other.difference.std_error}
        findings.append(find(FindingKind.OTHER_GRAPH, other.sentence(), graph=other.name, **loss))
    if any(other.name == CERTAIN for other in equivalent):
        findings.append(find(FindingKind.RANKING))
    if "low" not in edges or "high" not in edges or not equivalent:
        return edges, findings
    others = np.stack([edges.index.vector(other.edge_probs.cpu().numpy()) for other in equivalent])
    low, high = np.minimum(edges["low"], others.min(0)), np.maximum(edges["high"], others.max(0))
    acting = edges["acting"]
    if acting is not None:  # a word is not certain if the wider interval does not agree with it
        times = (acting == ACTS.index("at times")) & (high < 1)
        always = (acting == ACTS.index("always")) & (low > ALWAYS_ABOVE)
        acting = np.where(times | always | (acting == 0), acting, ACTS.index("undecided")).astype(acting.dtype)
    return edges.updated(low=low, high=high, acting=acting), [*findings, find(FindingKind.WIDENED)]


def controls(fit: Fit) -> Fit:
    """Fit the same model without edges and with all edges, and compare on the test part."""
    split, replicas = fit.split, fit.config.training.replicas or 1
    others = graph_controls(
        fit.untrained.to(split.train.inputs.device, split.train.inputs.dtype),
        split.train,
        split.validation,
        fit.done,
        dropped=fit.dropped,
        at_regression=fit.evidence is not None,
        closed_form=not fit.result.history,
        seeds=replica_seeds(fit.seed, replicas),
        compile=fit.compile,
        on_progress=fit.listener.step,
    ).by_name()
    scores, references, simple, gains = compare_forecasts(fit.model, others, split, fit.preparation, fit.seed)
    findings = list[Finding]()
    if too_large := too_large_for_ridge(fit.preparation, len(split.train)):
        findings.append(find(FindingKind.NO_RIDGE, columns=too_large, pairs=len(split.train)))
    known = {"references": {**references, **fit.references}, "simple": simple, "node_gains": gains}
    return fit.found(*findings, scores=scores, **known)


def _is_enabled(fit: Fit) -> bool:
    return fit.config.assessment.enabled


def _has_errors(fit: Fit) -> bool:
    return _is_enabled(fit) and (fit.config.assessment.replicas > 0 or fit.has_direct_estimate)


def _has_other_graphs(fit: Fit) -> bool:
    """Return whether predictors are trained under other graphs, which joint noise does not allow."""
    return bool(fit.config.assessment.controls) and not fit.untrained.observation.joint


STAGES = (
    Stage("standard errors", _errors_from, _has_errors, std_errors),
    Stage("situations", which_depend, lambda fit: bool(fit.config.graph.depends_on), varying_edges, of_edges=False),
    Stage("regimes", which_switch, lambda fit: fit.config.graph.regimes is not None, regimes, of_edges=False),
    Stage("identification", lambda _: "which edges are identifiable from the data", _is_enabled, identification),
    Stage("fit test", lambda _: "whether the model fits the test part", _is_enabled, goodness, of_edges=False),
    Stage("other graphs", lambda _: "which other graphs predict as well", _has_other_graphs, other_graphs),
    Stage(
        "controls",
        lambda _: "the same model without a graph and with all edges",
        lambda fit: bool(fit.config.assessment.controls),
        controls,
    ),
)

"""The stages of the assessment: standard errors, identifiability, a fit test, other graphs, controls."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

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
from tacit.edges import ACTS
from tacit.errors import TrainingError
from tacit.pipeline.comparisons import compare_forecasts, too_large_for_ridge
from tacit.pipeline.findings import Assessment, AssessmentInputs
from tacit.pipeline.parts import MOST_EXPANDED
from tacit.pipeline.preparation import Preparation, block_length
from tacit.pipeline.simultaneous import with_held
from tacit.pipeline.situation_stage import ask_situations, asks_situations, situation_stage
from tacit.pipeline.std_errors import estimate_std_errors, has_own_estimate
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


def assess(answer: Assessment, fit: AssessmentInputs) -> None:
    """Run the stages one after another and store the results in ``answer``; the model may get the mean over replicas.

    After Ctrl-C, ``answer`` has the results up to then. A stage that fails adds a finding, and the next one follows.
    """
    wanted = fit.config.assessment
    graph = fit.result.model.graph
    many = graph.candidates is not None
    lacking = "many nodes" if many else None if graph.has_edge_probs else "no edge probabilities"
    asked = asks_situations(fit.config)
    other_graphs = bool(wanted.controls) and not fit.untrained.observation.joint  # predictors are trained for them
    errors = wanted.enabled and (wanted.replicas > 0 or fit.has_direct_estimate)
    stages: list[tuple[str, str, Callable[[Assessment, AssessmentInputs], None], bool]] = [
        ("standard errors", _errors_from(fit), _errors, errors),
        *([(*situation_stage(fit.config), ask_situations, True)] if asked else []),
        ("identification", "which edges are identifiable from the data", _flags, wanted.enabled),
        ("fit test", "whether the model fits the test part", _goodness, wanted.enabled),
        ("other graphs", "which other graphs predict as well", _representations, other_graphs),
        ("controls", "the same model without a graph and with all edges", _controls, bool(wanted.controls)),
    ]
    for name, words, stage, needed in stages:
        if needed and lacking and stage not in (_goodness, ask_situations):
            about: dict[str, Any] = {"limit": MOST_EXPANDED} if many else {}
            answer.findings.append(find(FindingKind.NOT_COMPUTED, stage=name, question=words, reason=lacking, **about))
        elif needed:
            fit.listener.stage(f"{name}: {words}")
            try:
                stage(answer, fit)
            except (TrainingError, torch.OutOfMemoryError) as error:
                first = str(error).splitlines()[0]
                answer.findings.append(
                    find(FindingKind.NOT_COMPUTED, stage=name, question=words, reason="failed", error=first)
                )


def _errors_from(fit: AssessmentInputs) -> str:
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


def _errors(answer: Assessment, fit: AssessmentInputs) -> None:
    config, train = fit.config, fit.split.train
    if fit.result.late_fall and not fit.has_direct_estimate:
        answer.findings.append(find(FindingKind.NOT_COMPUTED, stage="standard errors", reason="training stopped"))
        return
    found = estimate_std_errors(
        fit.result.model,
        fit.split,
        fit.done,
        replicas=config.assessment.replicas,
        trained=not fit.result.late_fall and not fit.untrained.observation.joint,
        block=block_length(config.assessment, fit.preparation, len(train)),
        seed=fit.seed,
        compile=fit.compile,
        listener=fit.listener,
        moments=fit.has_direct_estimate,
        kept=fit.kept,
        untrained=fit.untrained,
        starts=config.assessment.starts or 0,
        thorough=config.assessment.thorough,
        change=True,
        switching=bool(config.graph.regimes),
        earlier=fit.acting,
    )
    graph = fit.result.model.graph
    answer.edges = answer.edges.updated(**{name: graph.vector(values) for name, values in found.columns.items()})
    answer.uncertainty = found.uncertainty
    answer.findings += found.findings


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


def _flags(answer: Assessment, fit: AssessmentInputs) -> None:
    train, model = fit.split.train, fit.result.model
    count = int(model.graph.learned.sum())
    if count > MOST_FLIPPED:
        answer.findings.append(find(FindingKind.TOO_MANY_EDGES, count=count))
        return
    found = identify_edges(model, train, fit.preparation, fit.generator("identify"))
    answer.edges = answer.edges.updated(identifiable=model.graph.vector(found.flags()))
    if bool(found.learned.any()) or not bool(model.graph.learned.any()):  # else all directions are open
        answer.findings += [find(FindingKind.IDENTIFICATION, line) for line in found.sentences()]
    if not has_own_estimate(answer.uncertainty):  # otherwise probabilities do not depend on the random start
        others = [other for other in compare_replicas(fit.result) if other.relation != "same"]
        answer.findings += [find(FindingKind.OTHER_START, one.sentence(), **asdict(one)) for one in others]
    if "exists" in answer.edges:  # the answer has the expected number of false edges
        return
    wrong = expected_wrong_edges(
        model.graph.edge_probs.detach(),
        SHOWN,
        learned=found.learned,
        identifiable=found.identifiable,
        symmetric=model.graph.symmetric,
    )
    about: dict[str, Any] = {"false": float(wrong.false), "missed": float(wrong.missed), "level": SHOWN}
    answer.findings.append(find(FindingKind.INACTIVE_EDGES, **about))


def _goodness(answer: Assessment, fit: AssessmentInputs) -> None:
    pairs = fit.split.test if fit.levelled is None else fit.levelled.to(fit.split.test.inputs.device)
    model = answer.model or fit.result.model
    found = fit_test(model, pairs, fit.preparation, fit.seed, trained=not fit.closed_form)
    answer.goodness = {} if found is None else found.to_dict()
    answer.findings = [*fit_findings(found), *answer.findings]  # the verdict comes first


def fit_findings(found: Goodness | None) -> list[Finding]:
    """Return the verdict of a fit test and its details; None if there were too few pairs."""
    if found is None:
        return [find(FindingKind.FIT_NOT_TESTED)]
    first, *further = found.sentences()
    verdict = find(FindingKind.FIT_VERDICT, first, fits=found.fits, p_value=found.p_value)
    return [verdict, *(find(FindingKind.FIT_DETAIL, line) for line in further)]


def _representations(answer: Assessment, fit: AssessmentInputs) -> None:
    """Find other graphs with which a retrained predictor forecasts as well.

    Whether edges always act is left out if the answer reports it for each edge.
    """
    certain = () if has_own_estimate(answer.uncertainty) else (CERTAIN,)
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
    take_representations(answer, [other for other in found if other.equivalent])


def take_representations(answer: Assessment, equivalent: Sequence[Representation]) -> None:
    """Report the other graphs that predict as well, and widen intervals to contain them."""
    for other in equivalent:
        loss = {"loss": other.difference.mean, "std_error": other.difference.std_error}
        answer.findings.append(find(FindingKind.OTHER_GRAPH, other.sentence(), graph=other.name, **loss))
    if any(other.name == CERTAIN for other in equivalent):
        answer.findings.append(find(FindingKind.RANKING))
    edges = answer.edges
    if "low" not in edges or "high" not in edges or not equivalent:
        return
    others = np.stack([edges.index.vector(other.edge_probs.cpu().numpy()) for other in equivalent])
    low, high = np.minimum(edges["low"], others.min(0)), np.maximum(edges["high"], others.max(0))
    acting = edges["acting"]
    if acting is not None:  # a word is not certain if the wider interval does not agree with it
        times = (acting == ACTS.index("at times")) & (high < 1)
        always = (acting == ACTS.index("always")) & (low > ALWAYS_ABOVE)
        acting = np.where(times | always | (acting == 0), acting, ACTS.index("undecided")).astype(acting.dtype)
    answer.edges = edges.updated(low=low, high=high, acting=acting)
    answer.findings.append(find(FindingKind.WIDENED))


def _controls(answer: Assessment, fit: AssessmentInputs) -> None:
    """Fit the same model without edges and with all edges, and compare on the test part."""
    split, replicas = fit.split, fit.config.training.replicas or 1
    controls = graph_controls(
        fit.untrained.to(split.train.inputs.device, split.train.inputs.dtype),
        split.train,
        split.validation,
        fit.done,
        dropped=fit.dropped,
        at_regression=fit.kept is not None,
        closed_form=fit.closed_form,
        seeds=replica_seeds(fit.seed, replicas),
        compile=fit.compile,
        on_progress=fit.listener.step,
    ).by_name()
    found = compare_forecasts(answer.model or fit.result.model, controls, split, fit.preparation, fit.seed)
    answer.scores, answer.simple = found.scores, found.simple
    answer.references = {**found.references, **answer.references}
    answer.node_gains = found.node_gains
    if too_large := too_large_for_ridge(fit.preparation, len(split.train)):
        answer.findings.append(find(FindingKind.NO_RIDGE, columns=too_large, pairs=len(split.train)))

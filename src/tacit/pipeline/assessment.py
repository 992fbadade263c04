"""The stages of the assessment: standard errors, identifiability, a fit test, other graphs, controls.

The findings are written here; commands and reports show them.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
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
from tacit.pipeline.comparisons import compare_forecasts, why_no_ridge
from tacit.pipeline.findings import Assessment, AssessmentInputs
from tacit.pipeline.parts import MOST_EXPANDED
from tacit.pipeline.preparation import Preparation, block_length
from tacit.pipeline.simultaneous import with_held
from tacit.pipeline.situation_stage import ask_situations, asks_situations, situation_stage
from tacit.pipeline.std_errors import estimate_std_errors
from tacit.randomness import generator_for, replica_seeds
from tacit.training import LatentGraphModel

# Pairs of the fit test: enough to detect relevant misfits. With many nodes fewer, so that the number of targets is
# limited, but never fewer than 100.
MOST_TESTED = 2000
MOST_TESTED_NUMBERS, FEWEST_TESTED = 1_000_000, 100
CERTAIN_MEANS = (
    "These data do not distinguish an edge that acts at times from a weaker edge that always acts: use the "
    "probabilities as a ranking of edges."
)
WIDENED = "Intervals are widened to contain every solution that is compatible with these data."
TOO_FEW = "Fewer than two test forecasts that do not overlap: too few for a fit test."
NO_ERRORS = "Not computed, standard errors: training stopped too early, so replicas would stop too early as well."
SHORTER = 0.3  # of the epochs of the fit, for a predictor that starts from the fitted one
MOST_FLIPPED = 40_000
TOO_MANY = (
    f"it requires all pairs of nodes, and there are more than {MOST_EXPANDED} nodes; fit only the nodes around the "
    "edges of interest"
)
NO_EDGE_PROBS = "it requires a probability for each edge, which this graph distribution does not have"
SHOWN = 0.5  # edges with a larger probability count as present


def assess(answer: Assessment, fit: AssessmentInputs) -> None:
    """Run the stages one after another and store the results in ``answer``; the model may get the mean over replicas.

    After Ctrl-C, ``answer`` has the results up to then. A stage that fails adds a finding, and the next one follows.
    """
    wanted = fit.config.assessment
    graph = fit.result.model.graph
    lacking = NO_EDGE_PROBS if not graph.has_edge_probs else "" if graph.has_all_pairs else TOO_MANY
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
            answer.findings.append(f"Not computed, {name} ({words}): {lacking}.")
        elif needed:
            fit.listener.stage(f"{name}: {words}")
            try:
                stage(answer, fit)
            except (TrainingError, torch.OutOfMemoryError) as error:
                first = str(error).splitlines()[0]
                answer.findings.append(f"Not computed, {name} ({words}): {first}.")


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
        answer.findings.append(NO_ERRORS)
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
        answer.findings.append(
            f"Not computed, identifiability: it takes long for {count:,} learned edges; name candidates, or call "
            "tacit.identify."
        )
        return
    found = identify_edges(model, train, fit.preparation, fit.generator("identify"))
    answer.edges = answer.edges.updated(identifiable=model.graph.vector(found.flags()))
    always_known = "always" in answer.uncertainty  # then the probabilities do not depend on the random start
    others = [] if always_known else [o.sentence() for o in compare_replicas(fit.result) if o.relation != "same"]
    if bool(found.learned.any()) or not bool(model.graph.learned.any()):  # else all directions are open
        answer.findings += found.sentences()
    answer.findings += others
    if "exists" in answer.edges:  # the answer has the expected number of false edges
        return
    wrong = expected_wrong_edges(
        model.graph.edge_probs.detach(),
        SHOWN,
        learned=found.learned,
        identifiable=found.identifiable,
        symmetric=model.graph.symmetric,
    )
    answer.findings.append(
        f"In a given observation, about {wrong.false:.1f} of the edges above {SHOWN:g} are inactive, and about "
        f"{wrong.missed:.1f} of the other edges are active."
    )


def _goodness(answer: Assessment, fit: AssessmentInputs) -> None:
    pairs = fit.split.test if fit.levelled is None else fit.levelled.to(fit.split.test.inputs.device)
    model = answer.model or fit.result.model
    found = fit_test(model, pairs, fit.preparation, fit.seed, trained=not fit.closed_form)
    said = [TOO_FEW] if found is None else found.sentences()
    answer.goodness = {} if found is None else found.to_dict()
    answer.findings = [*said, *answer.findings]  # the verdict comes first


def _representations(answer: Assessment, fit: AssessmentInputs) -> None:
    """Find other graphs with which a retrained predictor forecasts as well.

    Whether edges always act is left out if the answer reports it for each edge.
    """
    certain = () if "always" in answer.uncertainty else (CERTAIN,)
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
    answer.findings += [other.sentence() for other in equivalent]
    if any(other.name == CERTAIN for other in equivalent):
        answer.findings.append(CERTAIN_MEANS)
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
    answer.findings.append(WIDENED)


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
    answer.findings += filter(None, [why_no_ridge(fit.preparation, len(split.train))])

"""The stages in which a fit is looked at: standard errors, flags, a fit test, other graphs, the model without a graph.

What was found is put into words once, here; commands and pages show these sentences.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from tacit.data import Pairs
from tacit.errors import TrainingError
from tacit.evaluation import forecast_scores
from tacit.goodness import Goodness, goodness_of_fit, graph_controls, skill
from tacit.identification import (
    CERTAIN,
    LOOPS_OFF,
    LOOPS_ON,
    Representation,
    compare_replicas,
    find_representations,
    identify,
)
from tacit.own_data.layout import MOST_EXPANDED
from tacit.own_data.preparation import Preparation, SeriesPreparation
from tacit.own_data.trust import Question, Trust, block_length
from tacit.randomness import generator_for
from tacit.training import LatentGraphModel
from tacit.uncertainty import adopt_bagged, bootstrap, expected_wrong_edges

LEVEL = 0.95
MOST_TESTED = 2000  # pairs that the fit test looks at: it finds what matters in these
CERTAIN_MEANS = (
    "So these data do not tell an edge that is there at times from one that is always there and weaker: read the "
    "probabilities as a ranking of edges."
)
WIDENED = "Intervals are widened to hold every way to write the answer that these data do not rule out."
TOO_FEW = "Fewer than two test forecasts that do not overlap: too few for a fit test."
SHORTER = 0.3  # of the epochs of the fit, for a predictor that starts where it ended
MOST_FLIPPED = 40_000
TOO_MANY = (
    f"it needs all pairs of nodes, and there are more than {MOST_EXPANDED} nodes; fit some of the nodes by themselves, "
    "those around the edges that matter"
)
SHOWN = 0.5  # edges more probable than this count as shown


def assess(trust: Trust, question: Question) -> None:
    """Fill ``trust``, one stage after another; the model gets the mean over replicas where they were asked for.

    Stopped by Ctrl-C, it leaves in ``trust`` what was found up to then. A stage that fails says so, and the next one
    follows.
    """
    wanted = question.config.trust
    over_table = question.result.model.graph.slots is not None
    stages: list[tuple[str, Callable[[Trust, Question], None], bool]] = [
        (f"standard errors: {wanted.replicas} replicas on resampled data", _errors, wanted.replicas > 0),
        ("which edges can be told from the data", _flags, True),
        ("does the model fit the test part", _goodness, True),
        ("other graphs that might predict as well", _representations, bool(wanted.controls)),
        ("the same model without a graph and with all edges", _controls, bool(wanted.controls)),
    ]
    for name, stage, needed in stages:
        if needed and over_table and stage is not _goodness:
            trust.findings.append(f"Not looked at, {name.split(':')[0]}: {TOO_MANY}.")
        elif needed:
            question.listener.stage(name)
            try:
                stage(trust, question)
            except (TrainingError, torch.OutOfMemoryError) as error:
                first = str(error).splitlines()[0]
                trust.findings.append(f"Not found out, {name.split(':')[0]}: {first}.")


def fit_test(model: LatentGraphModel, pairs: Pairs, preparation: Preparation, seed: int) -> Goodness | None:
    """Return how a model fits pairs that it has not seen; None where fewer than two of them have targets.

    Forecasts further ahead than one step overlap: every so many are taken that they do not.
    """
    if pairs.observed is not None:
        pairs = pairs[pairs.observed.flatten(1).any(1)]
    horizon = preparation.windows.horizon if isinstance(preparation, SeriesPreparation) else 1
    stride = horizon * max(1, -(-len(pairs) // (horizon * MOST_TESTED)))
    if -(-len(pairs) // stride) < 2:
        return None
    generator = generator_for(seed, "goodness", pairs.inputs.device)
    return goodness_of_fit(model, pairs, generator=generator, stride=stride, node_names=list(preparation.nodes))


def _errors(trust: Trust, question: Question) -> None:
    split, config = question.split, question.config
    found = bootstrap(
        question.result.model,
        split.train,
        split.validation,
        question.done,
        replicas=config.trust.replicas,
        block=block_length(config, question.preparation, len(split.train)),
        seed=question.seed,
        compile=question.compile,
        on_progress=question.listener.step,
    )
    adopted = adopt_bagged(question.result.model, found, split.validation)
    around = found.intervals(LEVEL)
    trust.edges = trust.edges.model_copy(
        update={
            "std_error": found.std_errors.tolist(),
            "low": around.low.tolist(),
            "high": around.high.tolist(),
            "bagged": found.edge_probs.tolist(),
        }
    )
    trust.uncertainty = {
        "replicas": float(len(found.resampled)),
        "rho": found.rho,
        "train_seconds": found.train_seconds,
        "adopted": float(adopted),
    }
    answer = (
        "the answer is the mean over them"
        if adopted
        else "the fit stays the answer, as their mean predicts worse; errors and intervals are those of the mean"
    )
    trust.findings.append(f"Standard errors from {len(found.resampled)} resamples of the data; {answer}.")
    trust.findings += [f"{line[0].upper()}{line[1:]}." for line in found.warnings]


def _flags(trust: Trust, question: Question) -> None:
    train, model = question.split.train, question.result.model
    count = int((~model.graph.fixed).sum())
    if count > MOST_FLIPPED:
        trust.findings.append(
            f"Which edges can be told from the data was not looked at: {count:,} are learned, and flipping each takes "
            "long from 200 nodes on; name candidates, or call tacit.identify."
        )
        return
    found = identify(
        model,
        train.inputs,
        train.targets,
        observed=train.observed,
        generator=question.generator("identify"),
        num_pairs=len(train),
        nodes=question.preparation.nodes,
    )
    trust.edges = trust.edges.model_copy(update={"identifiable": found.flags()})
    others = [other.sentence() for other in compare_replicas(question.result) if other.relation != "same"]
    wrong = expected_wrong_edges(
        model.graph.edge_probs.detach(),
        SHOWN,
        learned=found.learned,
        identifiable=found.identifiable,
        symmetric=model.graph.symmetric,
    )
    trust.findings += [
        *found.sentences(),
        *others,
        f"Of the edges above {SHOWN:g} about {wrong.false:.1f} are absent in a given observation, and about "
        f"{wrong.missed:.1f} of the others are present.",
    ]


def _goodness(trust: Trust, question: Question) -> None:
    found = fit_test(question.result.model, question.split.test, question.preparation, question.seed)
    said = [TOO_FEW] if found is None else found.sentences()
    trust.goodness = {} if found is None else found.to_dict()
    trust.findings = [*said, *trust.findings]  # the verdict comes first


def _representations(trust: Trust, question: Question) -> None:
    """Name the other graphs with which a retrained predictor does as well."""
    found = find_representations(
        question.result.model,
        question.split.train,
        question.split.validation,
        generator=question.generator("representations"),
        names=(CERTAIN, LOOPS_OFF, LOOPS_ON),  # a complement shows in the replicas of the fit, and takes many starts
        settings=replace(question.done, halve_after=(), epochs=max(1, round(SHORTER * question.done.epochs))),
        compile=question.compile,
        on_progress=question.listener.step,
    )
    take_representations(trust, [other for other in found if other.equivalent])


def take_representations(trust: Trust, equivalent: Sequence[Representation]) -> None:
    """Say which other graphs predict as well, and widen intervals to hold them too."""
    trust.findings += [other.sentence() for other in equivalent]
    if any(other.name == CERTAIN for other in equivalent):
        trust.findings.append(CERTAIN_MEANS)
    if trust.edges.low is None or trust.edges.high is None or not equivalent:
        return
    others = torch.stack([other.edge_probs.cpu() for other in equivalent])
    low = torch.minimum(torch.tensor(trust.edges.low), others.amin(0))
    high = torch.maximum(torch.tensor(trust.edges.high), others.amax(0))
    trust.edges = trust.edges.model_copy(update={"low": low.tolist(), "high": high.tolist()})
    trust.findings.append(WIDENED)


def _controls(trust: Trust, question: Question) -> None:
    """Train without any edge and with all of them, as the fit was trained, and compare on the test part."""
    split, replicas = question.split, question.config.training.replicas or 1
    controls = graph_controls(
        question.untrained.to(split.train.inputs.device, split.train.inputs.dtype),
        split.train,
        split.validation,
        question.done,
        seeds=[question.seed * 1000 + replica for replica in range(replicas)],
        compile=question.compile,
        on_progress=question.listener.step,
    )
    models = {"learned graph": question.result.model, **controls.by_name()}
    spread = question.preparation.spread
    scores = {
        name: forecast_scores(model, split.test, generator=question.generator("score"), spread=spread)
        for name, model in models.items()
    }
    trust.scores = scores["learned graph"]
    trust.references = {name: scores[name].numbers() for name in controls.by_name()}
    gains = {name: skill(scores["learned graph"].crps, scores[name].crps) for name in controls.by_name()}
    trust.findings.append(_worth(gains))


def _worth(gains: dict[str, float | None]) -> str:
    known = {name: gain for name, gain in gains.items() if gain is not None}
    said = [f"{abs(gain):.1%} {'lower' if gain >= 0 else 'higher'} than with {name}" for name, gain in known.items()]
    if not said:
        return "The model predicts perfectly with and without a graph."
    verdict = "" if all(gain > 0 for gain in known.values()) else ": the graph does not pay for itself in predictions"
    return f"The error of the predicted distribution (CRPS) is {' and '.join(said)}{verdict}."

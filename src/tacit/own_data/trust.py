"""How far a fit can be trusted: standard errors, flags, a fit test, and the same model without a graph.

What was found is put into words once, here; commands and pages show these sentences.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from tacit.config import FitConfig
from tacit.data import Pairs, Split, usual_block
from tacit.data.resampling import require_resamplable
from tacit.errors import InputError
from tacit.evaluation import forecast_scores
from tacit.goodness import Goodness, goodness_of_fit, graph_controls, skill
from tacit.identification import (
    CERTAIN,
    Identifiability,
    Representation,
    compare_replicas,
    find_representations,
    identify,
)
from tacit.own_data.preparation import Preparation, SeriesPreparation
from tacit.randomness import generator_for
from tacit.records import EdgeFindings
from tacit.training import FitResult, FitSettings, LatentGraphModel, Listener
from tacit.uncertainty import EdgeUncertainty, adopt_bagged, bootstrap, expected_wrong_edges

LEVEL = 0.95
MOST_TESTED = 2000  # pairs that the fit test looks at: it finds what matters in these
CERTAIN_MEANS = (
    "So these data do not tell an edge that is there at times from one that is always there and weaker: read the "
    "probabilities as a ranking of edges. Intervals are widened to hold both ways to write the answer."
)
SHOWN = 0.5  # edges more probable than this count as shown


@dataclass
class Trust:
    """What is known about a fit besides its answer, as it is found out."""

    edges: EdgeFindings = field(default_factory=EdgeFindings)
    references: dict[str, dict[str, float]] = field(default_factory=dict)
    goodness: dict[str, Any] = field(default_factory=dict)
    uncertainty: dict[str, float] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)


def assess(
    trust: Trust,
    result: FitResult,
    split: Split,
    config: FitConfig,
    settings: FitSettings,
    preparation: Preparation,
    *,
    seed: int,
    listener: Listener,
) -> None:
    """Fill ``trust``; the model of ``result`` gets the mean over the replicas where they were asked for.

    Stopped by Ctrl-C, it leaves in ``trust`` what was found up to then.
    """
    model, done = result.model, as_done(settings, max(1, len(result.history)))
    if config.trust.replicas:
        listener.stage(f"standard errors: {config.trust.replicas} replicas on resampled data")
        found = bootstrap(
            model,
            split.train,
            split.validation,
            done,
            replicas=config.trust.replicas,
            block=block_length(config, preparation, len(split.train)),
            seed=seed,
            compile=bool(config.training.compile),
            on_progress=listener.step,
        )
        trust.findings += [f"{line[0].upper()}{line[1:]}." for line in found.warnings]
        _take_errors(trust, found, adopted=adopt_bagged(model, found, split.validation))
    listener.stage("which edges can be told from the data")
    generator = generator_for(seed, "identify", split.train.inputs.device)
    identified = identify(
        model,
        split.train.inputs,
        split.train.targets,
        observed=split.train.observed,
        generator=generator,
        num_pairs=len(split.train),
        nodes=preparation.nodes,
    )
    _take_flags(trust, identified, result)
    listener.stage("does the model fit the test part")
    goodness = fit_test(model, split.test, preparation, seed)
    if goodness is not None:
        trust.goodness, trust.findings = goodness.to_dict(), [*goodness.sentences(), *trust.findings]
    if config.trust.controls:
        listener.stage("other graphs that might predict as well")
        found_others = find_representations(
            model,
            split.train,
            split.validation,
            generator=generator,
            settings=replace(done, halve_after=()),
            compile=bool(config.training.compile),
            on_progress=listener.step,
        )
        _take_representations(trust, [other for other in found_others if other.equivalent])
        _take_controls(trust, result, split, done, config, preparation, seed, listener)


def as_done(settings: FitSettings, epochs: int) -> FitSettings:
    """Return the settings of a fit that ended after so many epochs."""
    halvings = tuple(epoch for epoch in settings.halve_after if epoch < epochs)
    return replace(settings, epochs=epochs, patience=None, halve_after=halvings)


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


def _take_errors(trust: Trust, found: EdgeUncertainty, *, adopted: bool) -> None:
    around = found.intervals(LEVEL)
    trust.edges = trust.edges.model_copy(
        update={
            "std_error": found.std_errors.tolist(),
            "low": around.low.tolist(),
            "high": around.high.tolist(),
            "bagged": found.edge_probs.tolist(),
        }
    )
    errors = found.std_errors[found.learned]
    typical = float(errors.median()) if len(errors) else 0.0
    trust.uncertainty = {
        "replicas": float(len(found.resampled)),
        "median_std_error": typical,
        "rho": found.rho,
        "train_seconds": found.train_seconds,
        "adopted": float(adopted),
    }
    wrong = expected_wrong_edges(found.edge_probs, SHOWN, learned=found.learned, symmetric=found.symmetric)
    answer = (
        "the answer is the mean over them"
        if adopted
        else "the fit stays the answer, as their mean predicts worse; errors and intervals are those of the mean"
    )
    trust.findings.append(
        f"Standard errors from {len(found.resampled)} resamples of the data, half below {typical:.2g}; {answer}."
    )
    trust.findings.append(
        f"Of the edges above {SHOWN:g} about {wrong.false:.1f} are absent in a given observation, and about "
        f"{wrong.missed:.1f} of those below are present."
    )


def _take_flags(trust: Trust, found: Identifiability, result: FitResult) -> None:
    trust.edges = trust.edges.model_copy(update={"identifiable": found.flags()})
    others = [other.sentence() for other in compare_replicas(result) if other.relation != "same"]
    trust.findings += [*found.sentences(), *others]


def _take_representations(trust: Trust, equivalent: Sequence[Representation]) -> None:
    """Name the other graphs with which a retrained predictor does as well; intervals are widened to hold them too."""
    trust.findings += [other.sentence() for other in equivalent]
    if any(other.name == CERTAIN for other in equivalent):
        trust.findings.append(CERTAIN_MEANS)
    if trust.edges.low is None or trust.edges.high is None or not equivalent:
        return
    others = torch.stack([other.edge_probs.cpu() for other in equivalent])
    low = torch.minimum(torch.tensor(trust.edges.low), others.amin(0))
    high = torch.maximum(torch.tensor(trust.edges.high), others.amax(0))
    trust.edges = trust.edges.model_copy(update={"low": low.tolist(), "high": high.tolist()})


def _take_controls(
    trust: Trust,
    result: FitResult,
    split: Split,
    settings: FitSettings,
    config: FitConfig,
    preparation: Preparation,
    seed: int,
    listener: Listener,
) -> None:
    """Train without any edge and with all of them, as the fit was trained, and compare on the test part."""
    listener.stage("the same model without a graph and with all edges")
    seeds = [seed * 1000 + replica for replica in range(config.training.replicas or 1)]
    controls = graph_controls(
        result.model,
        split.train,
        split.validation,
        settings,
        seeds=seeds,
        compile=bool(config.training.compile),
        on_progress=listener.step,
    )
    device = split.test.inputs.device
    scores = {
        name: forecast_scores(
            model, split.test, generator=generator_for(seed, "score", device), spread=preparation.spread
        )
        for name, model in {"learned graph": result.model, **controls.by_name()}.items()
    }
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

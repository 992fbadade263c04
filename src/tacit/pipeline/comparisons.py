"""Comparison of the forecasts of the test part with those without edges, with all edges, and of ridge regression."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tacit.assessment.evaluation import ForecastScores, PairedGain, forecast_scores, paired_gain, target_spreads
from tacit.data import Split
from tacit.pipeline.answer import NO_GRAPH, RIDGE
from tacit.pipeline.preparation import Preparation
from tacit.pipeline.references import Reference, references
from tacit.pipeline.resampling import score_block
from tacit.randomness import generator_for
from tacit.training import LatentGraphModel


@dataclass(frozen=True, eq=False)
class Comparison:
    """Scores on the test part.

    ``references``  scores of other forecasts, with the gain over them in scaled CRPS if it was computed
    ``simple``      forecasts without a model
    ``node_gains``  how much the edges improve the forecast of each node, as a fraction of its scaled CRPS
    """

    scores: ForecastScores
    references: dict[str, dict[str, float]]
    simple: dict[str, Reference]
    node_gains: dict[str, float]


def compare_to(
    model: LatentGraphModel, other: LatentGraphModel, split: Split, preparation: Preparation, seed: int
) -> dict[str, float]:
    """Return the scores of another model on the test part, and how much lower the scaled CRPS of the first is."""
    test, device = split.test, split.test.inputs.device
    own, theirs = (
        forecast_scores(one, test, generator=generator_for(seed, "score", device), spread=preparation.spread(test))
        for one in (model, other)
    )
    block = score_block(preparation, len(test))
    found = paired_gain(own.pair_crps, theirs.pair_crps, test, target_spreads(split.train), block=block)
    return {**theirs.numbers(), **_gains(found)}


def _gains(found: PairedGain | None) -> dict[str, float]:
    """Return a gain and its standard error, if they could be computed."""
    if found is None:
        return {}
    return {"gain": found.gain} | ({} if found.std_error is None else {"gain_std_error": found.std_error})


def compare_forecasts(
    model: LatentGraphModel,
    controls: Mapping[str, LatentGraphModel],
    split: Split,
    preparation: Preparation,
    seed: int,
) -> Comparison:
    """Return how much lower the scaled CRPS of a model is than that of its controls and of ridge regression."""
    test, device = split.test, split.test.inputs.device
    own, *others = (
        forecast_scores(one, test, generator=generator_for(seed, "score", device), spread=preparation.spread(test))
        for one in (model, *controls.values())
    )
    simple = references(preparation, split)
    numbers = {name: scores.numbers() for name, scores in zip(controls, others, strict=True)}
    crps = {name: scores.pair_crps for name, scores in zip(controls, others, strict=True)}
    if RIDGE in simple:
        numbers[RIDGE], crps[RIDGE] = simple[RIDGE].numbers, simple[RIDGE].pair_crps
    spread, block, by_node = target_spreads(split.train), score_block(preparation, len(test)), dict[str, float]()
    for name, theirs in crps.items():
        found = paired_gain(own.pair_crps, theirs, test, spread, block=block)
        if found is None:
            continue
        numbers[name] = {**numbers[name], **_gains(found)}
        if name == NO_GRAPH:
            gains = zip(preparation.nodes, found.by_node, strict=True)
            by_node = {node: gain for node, gain in gains if math.isfinite(gain)}
    return Comparison(own, numbers, simple, by_node)

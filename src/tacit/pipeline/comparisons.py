"""Comparison with other forecasts: the last value, ridge regression, no graph and the full graph."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from tacit.assessment.evaluation import (
    LEVELS,
    ForecastScores,
    PairedGain,
    forecast_scores,
    gaussian_coverage,
    gaussian_crps,
    gaussian_scores,
    paired_gain,
    persistence,
    residual_sigmas,
    target_spreads,
)
from tacit.data import Pairs, Split, distinct_inputs, ridge_regression
from tacit.pipeline.preparation import Preparation, score_block
from tacit.randomness import generator_for
from tacit.shapes import PointPrediction
from tacit.training import LatentGraphModel
from tacit.words.answer import NO_GRAPH, RIDGE

MOST_RIDGE_FEATURES, MOST_RIDGE_SIDE = 20_000, 3000  # time grows with the cube of the fewer of columns and pairs


@dataclass(frozen=True, eq=False)
class Reference:
    """Scores of a forecast in the units of the data, and the CRPS of every number in the units of training."""

    numbers: dict[str, float]
    pair_crps: PointPrediction


def references(preparation: Preparation, split: Split, *, ridge: bool = True) -> dict[str, Reference]:
    """Return scores on the test part; the regression has a weight for every two nodes."""
    sizes, spread = preparation.sizes, preparation.spread(split.test).cpu()
    found: dict[str, Reference] = {}
    parts = {name: getattr(split, name).to("cpu") for name in ("train", "validation", "test")}
    start = {name: torch.zeros_like(part.targets) for name, part in parts.items()}
    if preparation.is_series:
        start = {
            name: persistence(
                part.inputs, num_features=sizes.num_features, out_channels=sizes.out_channels, known=sizes.known
            )
            for name, part in parts.items()
        }
        sigmas = residual_sigmas(start["train"], parts["train"])
        found["the last value"] = _in_units(start["test"], sigmas, parts["test"], spread)
    if ridge and not too_large_for_ridge(preparation, len(split.train)):
        once = distinct_inputs(parts["train"], sizes.known)
        changes = {  # for a series, the regression predicts the change from the last value
            name: Pairs(part.inputs * once, part.targets - start[name], part.observed) for name, part in parts.items()
        }
        fitted = ridge_regression(changes["train"], changes["validation"])
        means = fitted.predict(changes["test"].inputs) + start["test"]
        found["ridge regression"] = _in_units(means, fitted.sigmas, parts["test"], spread)
    return found


def too_large_for_ridge(preparation: Preparation, pairs: int) -> int:
    """Return the number of columns of the regression if it is left out because it takes long, otherwise 0."""
    sizes = preparation.sizes
    columns = sizes.num_nodes * (sizes.in_channels - sizes.known) + sizes.known
    return 0 if columns <= MOST_RIDGE_FEATURES and min(columns, pairs) <= MOST_RIDGE_SIDE else columns


def _in_units(means: torch.Tensor, sigmas: torch.Tensor, pairs: Pairs, spread: torch.Tensor) -> Reference:
    scaled = Pairs(pairs.inputs, pairs.targets * spread, pairs.observed)
    coverage = {f"coverage_{level:g}": gaussian_coverage(means, sigmas, pairs, level) for level in LEVELS}
    numbers = {**gaussian_scores(means * spread, sigmas * spread, scaled), **coverage}
    return Reference(numbers, gaussian_crps(means, sigmas, pairs.targets))


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
) -> tuple[ForecastScores, dict[str, dict[str, float]], dict[str, Reference], dict[str, float]]:
    """Return how much lower the scaled CRPS of a model is than that of its controls and of ridge regression.

    These are its scores on the test part, the scores of the others with the gain over them, the forecasts without a
    model, and how much the edges improve the forecast of each node, as a fraction of its scaled CRPS.
    """
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
    return own, numbers, simple, by_node


Named = dict[str, dict[str, float]]  # score -> name of the node or series -> number


def group_scores(scores: ForecastScores, nodes: Sequence[str], series_names: Sequence[str]) -> dict[str, Named]:
    """Return ``by_node`` and ``by_series``; the latter is empty if series have no names."""
    return {"by_node": _named(scores.by_node, nodes), "by_series": _named(scores.by_series, series_names)}


def _named(scores: dict[str, list[float]], names: Sequence[str]) -> Named:
    # Series at the end that have no pair are not in the scores.
    return {score: dict(zip(names, values, strict=False)) for score, values in scores.items()} if names else {}

"""Predictions, samples and scores of a fitted model on new data, the same from the command and in Python.

All rows share their graphs, and for points and quantiles the noise as well, so that the prediction for a row does not
depend on other rows.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.assessment.evaluation import PointName, SharedDraws, discrete_nodes, forecast_scores, point_prediction
from tacit.data import NewPairs, Pairs
from tacit.errors import require, require_int
from tacit.graph import require_memory
from tacit.pipeline.assessment import TOO_FEW, fit_test
from tacit.pipeline.class_forecasts import ClassForecasts
from tacit.pipeline.data_files import data_files, series_labels
from tacit.pipeline.fitted import Fitted
from tacit.pipeline.forecast_frame import LEVELS, forecast_frame, in_units, require_memory_for_table, values_in_units
from tacit.pipeline.group_scores import group_scores
from tacit.pipeline.observation_kinds import require_new_values, supports_of
from tacit.pipeline.regime_columns import regime_columns
from tacit.pipeline.series_numbers import needs_series, training_names, training_series
from tacit.pipeline.situation_options import about_depends_on
from tacit.pipeline.sources import Source, read_sources
from tacit.randomness import generator_for

if TYPE_CHECKING:
    import pandas as pd

NUM_GRAPHS = 1000
NOT_TESTED = "This run has no fit test: the assessment was off, or the run was stopped. Pass data to test it."
Values = Float[np.ndarray, "pair node channel"]


def read_new(fitted: Fitted, sources: Sequence[str]) -> Source:
    """Read new data in the format of the training data; pairs may lack their targets."""
    preparation = fitted.preparation
    channels = None if preparation.is_series else preparation.sizes.out_channels
    with about_depends_on(fitted.config):
        source = read_sources(sources, fitted.config.data, piece=True, out_channels=channels, nodes=fitted.nodes)
    files = data_files(sources)
    return preparation.completed(source, series_labels(files)[0] if len(files) == 1 else None)


def point_predictions(
    fitted: Fitted, source: Source, point: PointName | float = "mean", *, num_graphs: int = NUM_GRAPHS, seed: int = 0
) -> Values:
    """Return the mean, the median or a quantile of every target, in the units of the data."""
    new, draws = new_pairs(fitted, source), _draws(fitted, num_graphs, seed)
    parts = []
    for pairs in _chunks(new.pairs, draws):
        mean = point == "mean"
        values = draws.mean(pairs) if mean else point_prediction(draws.values(pairs), point, _discrete(fitted))
        parts.append(in_units(fitted, values, pairs) if mean else values_in_units(fitted, values, pairs))
    return torch.cat(parts).numpy()


def quantile_predictions(
    fitted: Fitted, pairs: Pairs, levels: Sequence[float], *, seed: int = 0
) -> Float[np.ndarray, "pair node channel level"]:
    """Return quantiles of every target, in the units of the data."""
    draws, parts = _draws(fitted, NUM_GRAPHS, seed), []
    for chunk in _chunks(pairs, draws):
        values = draws.values(chunk)
        found = [point_prediction(values, level, _discrete(fitted)) for level in levels]
        parts.append(torch.stack([values_in_units(fitted, one, chunk) for one in found], -1))
    return torch.cat(parts).numpy()


def class_probabilities(
    fitted: Fitted, source: Source, *, num_graphs: int = NUM_GRAPHS, seed: int = 0
) -> Float[np.ndarray, "pair node channel class"]:
    """Return the probability of each class of yes-or-no targets and of ordered categories."""
    classes = ClassForecasts.of(fitted.config, fitted.preparation)
    assert classes is not None
    new, draws = new_pairs(fitted, source), _draws(fitted, num_graphs, seed)
    observation = fitted.model.observation
    return torch.cat(
        [classes.probs(observation, draws.described(pairs)) for pairs in _chunks(new.pairs, draws)]
    ).numpy()


def samples(
    fitted: Fitted, source: Source, *, num_samples: int, seed: int = 0
) -> Float[np.ndarray, "pair sample node channel"]:
    """Return samples of every target: all pairs share the graph of a sample, and each pair has its own noise."""
    require_int("num_samples", num_samples)
    new, draws = new_pairs(fitted, source), _draws(fitted, num_samples, seed)
    drawn = [values_in_units(fitted, draws.own_values(pairs), pairs) for pairs in _chunks(new.pairs, draws)]
    return np.concatenate([values.numpy() for values in drawn])


def forecast_table(fitted: Fitted, source: Source, *, seed: int = 0, num_samples: int = 0) -> "pd.DataFrame":
    """Return one row per time, node and variable: mean, median, quantiles, the actual value and, if asked for, samples.

    Every window of the source has a forecast, also if its target is not known yet. ``attrs["notes"]`` lists what was
    changed or left out.
    """
    preparation = fitted.preparation
    require_int("num_samples", num_samples, 0)
    new = new_pairs(fitted, source)
    require_memory_for_table(new.pairs.targets.numel(), num_samples)
    draws = _draws(fitted, NUM_GRAPHS, seed)
    sampled = _draws(fitted, num_samples, seed) if num_samples else None
    parts, masses, discrete = [], [], _discrete(fitted)
    classes = ClassForecasts.of(fitted.config, preparation)
    for pairs in _chunks(new.pairs, draws):
        drawn = draws.values(pairs)
        values = [point_prediction(drawn, level, discrete) for level in LEVELS]
        values += [] if sampled is None else list(sampled.own_values(pairs).unbind(1))
        drawn_values = [values_in_units(fitted, value, pairs) for value in values]
        parts.append(torch.stack([in_units(fitted, draws.mean(pairs), pairs), *drawn_values], -1))
        if classes is not None:
            masses.append(classes.probs(fitted.model.observation, draws.described(pairs)))
    keys = {} if new.series is None else {"series": new.series}
    keys[preparation.row_name] = new.times
    numbers, supports = torch.cat(parts), supports_of(fitted.config, fitted.nodes)
    further = {} if classes is None else classes.columns(torch.cat(masses), numbers[..., 0], supports)
    further |= regime_columns(fitted, new.pairs, seed)
    return forecast_frame(fitted, keys, numbers, new.actual, new.notes, further)


def prediction_index(times: np.ndarray, series: np.ndarray | None, row_name: str) -> "pd.Index":
    """Return the time of each prediction, with its series if there are several."""
    import pandas as pd

    if series is None:
        return pd.Index(times, name=row_name)
    return pd.MultiIndex.from_arrays([series, times], names=["series", row_name])


def evaluate(fitted: Fitted, source: Source | None, *, seed: int = 0) -> dict[str, Any]:
    """Return scores and findings on the test part of the fit, as recorded, or on new data."""
    if source is None:
        record = fitted.record
        return {
            "data": "the test part",
            "metrics": record.metrics,
            "references": record.references,
            "findings": record.findings or [NOT_TESTED],
            "goodness": record.goodness,
            "by_node": record.by_node,
            "by_series": record.by_series,
            "notes": [],
        }
    preparation, device = fitted.preparation, fitted.model.graph.raw.device
    new = new_pairs(fitted, source)
    some = new.pairs.observed is None or bool(new.pairs.observed.any())
    remedy = "pass more rows" if preparation.is_series else "pass y too, in columns y:NODE or in an .npz file"
    require(some, f"{source.name}: at least one target must be known, got none; {remedy}")
    known = new.pairs.with_targets().to(device)
    series_names = [] if new.series is None else list(dict.fromkeys(new.series.tolist()))  # in the order of numbers
    if needs_series(fitted):
        series_names = training_names(fitted)
    generator = generator_for(seed, "score", device)
    scores = forecast_scores(fitted.model, known, generator=generator, spread=preparation.spread(known))
    goodness = fit_test(fitted.model, known, preparation, seed, trained=bool(fitted.history))
    return {
        "data": source.name,
        "pairs": len(known),
        "metrics": scores.numbers(),
        **group_scores(scores, fitted.nodes, series_names),
        "findings": [TOO_FEW] if goodness is None else goodness.sentences(),
        "goodness": {} if goodness is None else goodness.to_dict(),
        "notes": list(new.notes),
    }


def new_pairs(fitted: Fitted, source: Source) -> NewPairs:
    """Return the pairs of new data; ``notes`` lists what was changed or left out."""
    notes = require_new_values(fitted.config, fitted.preparation, source)
    new = fitted.preparation.apply(source)
    if new.series is not None and needs_series(fitted):
        pairs = new.pairs
        series, units = training_series(fitted, new.series, pairs.series, pairs.units, source.name)
        new = replace(new, pairs=replace(pairs, series=series, units=units))
    return replace(new, notes=tuple(dict.fromkeys((*source.content.notes, *new.notes, *notes))))


def _discrete(fitted: Fitted) -> Bool[Tensor, " node"]:
    return discrete_nodes(fitted.model.observation, len(fitted.nodes))


def _draws(fitted: Fitted, num_graphs: int, seed: int) -> SharedDraws:
    graph = fitted.model.graph
    require_int("num_graphs", num_graphs)
    what, remedy = f"a prediction under {num_graphs:,} graphs", "lower the number of graphs or samples"
    require_memory(9 * num_graphs * math.prod(graph.edge_shape), graph.raw.device, what, remedy)
    return SharedDraws(fitted.model, num_graphs, generator_for(seed, "predict", graph.raw.device))


def _chunks(pairs: Pairs, draws: SharedDraws) -> Iterator[Pairs]:
    device = draws.model.graph.raw.device
    for start in range(0, len(pairs), draws.pairs_at_once):
        yield pairs[start : start + draws.pairs_at_once].to(device)

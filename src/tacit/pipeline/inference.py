"""Predictions, samples and scores of a fitted model on new data, and the numbers of a fan chart."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from tacit.assessment.evaluation import PointName, SharedDraws, discrete_nodes, forecast_scores, point_prediction
from tacit.data import NewPairs, Pairs
from tacit.errors import InputError, did_you_mean, require, require_int
from tacit.graph import require_memory
from tacit.pipeline.assessment import fit_findings, fit_test
from tacit.pipeline.comparisons import group_scores
from tacit.pipeline.fitted import Fitted
from tacit.pipeline.forecasts import (
    LEVELS,
    ClassForecasts,
    forecast_frame,
    in_units,
    needs_series,
    regime_columns,
    require_memory_for_table,
    training_names,
    training_series,
    values_in_units,
)
from tacit.pipeline.observation_kinds import require_new_values, supports_of
from tacit.pipeline.paths import path_quantiles
from tacit.pipeline.situations import about_depends_on
from tacit.pipeline.sources import Source, data_files, read_sources, series_labels
from tacit.randomness import generator_for
from tacit.records import QUANTILES, ForecastTable

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
            "findings": [one.sentence for one in record.findings] or [NOT_TESTED],
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
        "findings": [one.sentence for one in fit_findings(goodness)],
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


FAN_LEVELS = tuple(QUANTILES.values())  # the median, and the ends of 50%, 80% and 95% intervals
SHOWN = 150  # forecasts of a chart


@dataclass(frozen=True, eq=False)
class Fan:
    """Forecasts of one variable of a node: a row of ``quantiles`` for each time, a column for each of ``FAN_LEVELS``.

    ``observed`` are the values at ``observed_times``; NaN where one is missing. Without ``has_times`` they are pairs.
    """

    node: str
    variable: str
    series: str | None
    row_name: str
    has_times: bool
    times: Shaped[np.ndarray, " time"]
    quantiles: Float[np.ndarray, "time level"]
    observed_times: Shaped[np.ndarray, " row"]
    observed: Float[np.ndarray, " row"]

    def quantile(self, level: float) -> Float[np.ndarray, " time"]:
        """Return the quantiles of one level."""
        return self.quantiles[:, [round(one, 3) for one in FAN_LEVELS].index(round(level, 3))]

    @property
    def title(self) -> str:
        """What the chart shows."""
        return self.node if self.series is None else f"{self.node}, series {self.series}"


def fan_of(
    fitted: Fitted,
    source: Source,
    *,
    node: str | None = None,
    variable: str | None = None,
    series: str | None = None,
    last: int = SHOWN,
    steps: int | None = None,
    origin: Any = None,
    seed: int | None = None,
) -> Fan:
    """Return the forecasts of the last windows of some data; with ``steps`` those of one path of so many steps.

    What is not named is the first one: node, variable and series. ``last`` limits the forecasts; of a path, the
    observed values before it.
    """
    require_int("last", last)
    require(steps is not None or origin is None, "origin requires steps; pass for example steps=24")
    preparation, seed = fitted.preparation, fitted.record.seed if seed is None else seed
    number = _chosen("node", node, fitted.nodes)
    channel = _chosen("variable", variable, preparation.target_names)
    new = new_pairs(fitted, source)
    series, new = _of_series(new, series)
    known = new.actual[:, number, channel]
    names = fitted.nodes[number], preparation.target_names[channel], series
    place = (preparation.row_name, preparation.is_series)
    if steps is None:
        first = max(0, len(known) - last)
        found = quantile_predictions(fitted, new.pairs[first:], FAN_LEVELS, seed=seed)
        times = new.times[first:]
        return Fan(*names, *place, times, found[:, number, channel], times, known[first:])
    paths, origins = path_quantiles(fitted, source, steps, FAN_LEVELS, origin=origin, seed=seed)
    one = 0 if series is None or origins.series_names is None else list(origins.series_names).index(series)
    before = new.times <= origins.origin_times[one]
    seen, actual = np.flatnonzero(before)[-last:], origins.actual[one, :, number, channel]
    times = origins.times[one]
    observed_times = np.concatenate([new.times[seen], times])
    return Fan(*names, *place, times, paths[one, :, number, channel], observed_times, np.append(known[seen], actual))


def kept_fan(
    kept: ForecastTable,
    node_names: Sequence[str],
    *,
    node: str | None = None,
    variable: str | None = None,
    series: str | None = None,
    last: int = SHOWN,
    **further: Any,
) -> Fan:
    """Return the last forecasts that a run keeps; others, such as paths of several ``steps``, require data."""
    for name in further:
        raise InputError(
            f"{name} requires data, which a run does not keep; pass data (--data FILE), or leave {name} out"
        )
    require_int("last", last)
    names = [node_names[place] for place in kept.nodes]
    number, channel = _chosen("node", node, names), _chosen("variable", variable, kept.variables)
    rows, chosen = np.arange(len(kept.rows)), None
    if kept.series:
        labels = list(dict.fromkeys(kept.series))
        chosen = labels[_chosen("series", series, labels)]
        rows = np.flatnonzero(np.array(kept.series) == chosen)
    else:
        require(series is None, f"series must be left out where there is one series, got {series!r}")
    rows = rows[-last:]
    texts = [kept.rows[row] for row in rows]
    times = np.array(texts, dtype="datetime64[ms]" if texts and "T" in texts[0] else float)
    numbers = kept.numbers[rows, number, channel]
    levels = len(FAN_LEVELS)
    place = kept.row_name, kept.row_name == "time"
    named = names[number], kept.variables[channel], chosen
    return Fan(*named, *place, times, numbers[:, :levels], times, numbers[:, levels])


def _chosen(what: str, name: str | None, names: Sequence[str]) -> int:
    """Return the place of a name, or of the first where none was named."""
    if name is None:
        return 0
    if name not in names:
        raise InputError(
            f"{what} must be one of the run's {len(names):,}, got {name!r}{did_you_mean(str(name), names)}"
        )
    return list(names).index(name)


def _of_series(new: NewPairs, name: str | None) -> tuple[str | None, NewPairs]:
    """Return the name and the pairs of one series."""
    if new.series is None:
        require(name is None, f"series must be left out where there is one series, got {name!r}")
        return None, new
    names = list(dict.fromkeys(new.series.tolist()))
    chosen = names[_chosen("series", name, names)]
    rows = np.flatnonzero(new.series == chosen)
    pairs = new.pairs[torch.from_numpy(rows)]
    return chosen, replace(new, pairs=pairs, times=new.times[rows], actual=new.actual[rows], series=new.series[rows])

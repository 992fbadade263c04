"""The numbers of a fan chart: quantiles of the forecasts of one node, and what was observed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Shaped

from tacit.data import NewPairs
from tacit.errors import InputError, did_you_mean, require, require_int
from tacit.pipeline.fitted import Fitted
from tacit.pipeline.inference import new_pairs, quantile_predictions
from tacit.pipeline.path_forecasts import path_quantiles
from tacit.pipeline.sources import Source
from tacit.records import QUANTILES, ForecastTable

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

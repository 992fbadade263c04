r"""Missing inputs: the forecast of a value from the values before it, of all nodes.

$$\hat v_{tk} = a_k + \sum_{(l, j) \in S_k} b_{klj}\, v_{t - l, j}$$

for column $k$, a variable of a node. $S_k$ has the lags $l = 1 \dots 3$ of the column itself, and few lags of other
columns, added one at a time while the Bayesian information criterion falls. Within a gap, values before it that are
missing too are their own forecasts.

A forecast from the past leaves regressions on the filled values unbiased: what it misses is unrelated to everything
before it. The last observed value does not, because in a gap of a node its own parents predict it better; they would
look like parents of its children. Values after the gap are not used, since they may be effects of the target.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

Columns = Float[np.ndarray, "time column"]
OneSeries = Float[np.ndarray, "_ column"]  # of one of several series
OfRows = Bool[np.ndarray, " _"]
LAGS, MOST_OTHERS = 3, 6
SCREENED = 24  # lagged columns per column that may enter, by their correlation with what its own past leaves
ROUNDS = 2  # the first fill is the last observed value
MOST_ROWS = 5_000  # the last ones, for the regressions
RIDGE = 1e-6


@dataclass(frozen=True, eq=False)
class Gaps:
    """How missing values of each column are filled: lagged columns, their weights, intercepts and the possible range.

    ``places``  lag - 1 times the number of columns plus the column, for each of the used lagged columns

    >>> rng = np.random.default_rng(0)
    >>> values = rng.normal(size=(400, 2))
    >>> values[1:, 1] = 2 * values[:-1, 0]  # the second column follows the first
    >>> gaps = Gaps.learned([np.where(np.arange(400)[:, None] % 50 == [60, 7], np.nan, values)], [np.ones(400, bool)])
    >>> gaps.filled(np.array([[0.5, 3.0], [np.nan, np.nan]])).round(2).tolist()[1][1]
    1.0
    """

    places: Int[np.ndarray, "column used"]
    weights: Float[np.ndarray, "column used"]
    intercepts: Float[np.ndarray, " column"]
    low: Float[np.ndarray, " column"]
    high: Float[np.ndarray, " column"]

    @classmethod
    def learned(cls, series: Sequence[OneSeries], rows: Sequence[OfRows]) -> "Gaps":
        """Return the regressions of the columns with missing values; ``rows`` are the targets to use in each series.

        A column without missing values keeps its last value, should one be missing in new data.
        """
        count = series[0].shape[1]
        used = LAGS + MOST_OTHERS
        seen = [values[keep] for values, keep in zip(series, rows, strict=True)]
        gaps = cls(
            np.repeat(np.arange(count)[:, None], used, 1),  # of the column itself, one step before
            np.eye(1, used).repeat(count, 0),
            np.zeros(count),
            np.fmin.reduce(np.concatenate(seen), axis=0),
            np.fmax.reduce(np.concatenate(seen), axis=0),
        )
        missing = np.flatnonzero(np.any([np.isnan(values).any(0) for values in series], axis=0))
        chosen = _last(rows)
        for _ in range(ROUNDS):
            filled = [gaps.filled(values) for values in series]
            past = np.concatenate([_past(values)[keep] for values, keep in zip(filled, chosen, strict=True)])
            actual = np.concatenate([values[keep] for values, keep in zip(series, chosen, strict=True)])
            places, weights, intercepts = gaps.places.copy(), gaps.weights.copy(), gaps.intercepts.copy()
            for column, (place, weight, intercept) in zip(missing, _regressions(past, actual, missing), strict=True):
                places[column], weights[column], intercepts[column] = column, 0.0, intercept
                places[column, : len(place)], weights[column, : len(place)] = place, weight
            gaps = cls(places, weights, intercepts, gaps.low, gaps.high)
        return gaps

    def filled(self, values: Columns) -> Columns:
        """Return one series with its missing values filled; before the first row all values were 0, the mean."""
        filled, missing = values.copy(), np.isnan(values)
        back, column = 1 + self.places // values.shape[1], self.places % values.shape[1]
        for row in np.flatnonzero(missing.any(1)).tolist():
            before = np.where(back <= row, filled[np.maximum(row - back, 0), column], 0.0)
            forecast = (self.weights * before).sum(1) + self.intercepts
            filled[row] = np.where(missing[row], np.clip(forecast, self.low, self.high), filled[row])
        return filled

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as lists."""
        return {name: getattr(self, name).tolist() for name in ARRAYS}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Gaps":
        """Return the result of :meth:`to_dict` as an object again."""
        return cls(**{name: np.array(stored[name], dtype=kind) for name, kind in ARRAYS.items()})


ARRAYS: dict[str, type] = {"places": np.int64, "weights": float, "intercepts": float, "low": float, "high": float}


def _last(rows: Sequence[OfRows]) -> list[OfRows]:
    """Return the rows to use: of all series together the last ``MOST_ROWS``, none of the first ``LAGS`` of a series."""
    chosen, left = [], MOST_ROWS
    for one in reversed(rows):
        keep = one.copy()
        keep[:LAGS] = False
        places = np.flatnonzero(keep)
        keep[places[: max(0, len(places) - left)]] = False
        left -= int(keep.sum())
        chosen.append(keep)
    return chosen[::-1]


def _past(values: Columns) -> Float[np.ndarray, "time lagged"]:
    """Return the lags of all columns side by side: lag 1 first."""
    past = np.zeros((len(values), LAGS * values.shape[1]))
    for lag in range(1, LAGS + 1):
        past[lag:, (lag - 1) * values.shape[1] : lag * values.shape[1]] = values[: len(values) - lag]
    return past


def _regressions(
    past: Float[np.ndarray, "time lagged"], actual: Columns, columns: Int[np.ndarray, " missing"]
) -> Iterator[tuple[list[int], Float[np.ndarray, " used"], float]]:
    """Yield the places, the weights and the intercept of the forecast of each of the columns."""
    count, spread = actual.shape[1], np.maximum(past.std(0), 1e-9)
    for column in columns.tolist():
        known = ~np.isnan(actual[:, column])
        own = [lag * count + column for lag in range(LAGS)]
        if known.sum() <= 2 * (LAGS + 1):  # too few rows for a regression: the last value
            yield own[:1], np.ones(1), 0.0
            continue
        centre, level = past[known].mean(0), actual[known, column].mean()
        target, inputs = actual[known, column] - level, past[known] - centre
        rows, weights = len(target), _solved(inputs[:, own], target)
        alike = np.abs((target - inputs[:, own] @ weights) @ inputs) / spread
        alike[own] = 0.0
        screened = np.argsort(-alike, kind="stable")[:SCREENED]
        chosen, left = own, float(((target - inputs[:, own] @ weights) ** 2).sum())
        for _ in range(MOST_OTHERS):
            residual = target - inputs[:, chosen] @ weights
            others = [place for place in screened.tolist() if place not in chosen]
            if not others:
                break
            best = others[int(np.argmax(np.abs(residual @ inputs[:, others]) / spread[others]))]
            tried = _solved(inputs[:, [*chosen, best]], target)
            error = float(((target - inputs[:, [*chosen, best]] @ tried) ** 2).sum())
            # the Bayesian information criterion, whose price includes the choice among all lagged columns
            if rows * np.log(max(error, 1e-12) / max(left, 1e-12)) + np.log(rows) + 2 * np.log(past.shape[1]) >= 0:
                break
            chosen, weights, left = [*chosen, best], tried, error
        yield chosen, weights, float(level - centre[chosen] @ weights)


def _solved(inputs: Columns, target: Float[np.ndarray, " time"]) -> Float[np.ndarray, " column"]:
    """Return the weights of a regression with a small penalty, so that constant columns do no harm."""
    products = inputs.T @ inputs + RIDGE * len(target) * np.eye(inputs.shape[1])
    return np.linalg.solve(products, inputs.T @ target)

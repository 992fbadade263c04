"""Lagged regressions from several series: no row reaches from one series into another, every column has deviation 1."""

from dataclasses import dataclass

import numpy as np
from benchmarks.existence.systems import Values
from jaxtyping import Float
from sklearn.linear_model import Ridge

LAGS = (1, 2, 3)  # numbers of lags to choose from
BLOCKS = 5
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)

Scores = Float[np.ndarray, "node node"]


@dataclass(frozen=True, eq=False)
class Design:
    """Inputs (row, lag, node), the newest lag first, and targets (row, node)."""

    inputs: Float[np.ndarray, "row lag node"]
    targets: Values

    @property
    def lags(self) -> int:
        """Number of lags."""
        return int(self.inputs.shape[1])

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return int(self.inputs.shape[2])

    @property
    def columns(self) -> Float[np.ndarray, "row lag_node"]:
        """The inputs as one matrix."""
        return self.inputs.reshape(len(self.inputs), -1)

    def scores(self, sizes: Float[np.ndarray, "node lag_node"]) -> Scores:
        """Return the root of the sum of squares over lags: how much a node reads of another."""
        blocks = sizes.reshape(len(sizes), self.lags, self.num_nodes)
        return np.asarray(np.sqrt((blocks**2).sum(1)))

    def newest(self, lags: int) -> "Design":
        """Return the same targets with fewer lags."""
        return Design(self.inputs[:, :lags], self.targets)


def standardised(series: tuple[Values, ...], centre: bool = False) -> tuple[Values, ...]:
    """Return the series with mean 0 and deviation 1 in each node, over all series; ``centre`` each at its own mean."""
    if centre:
        series = tuple(one - one.mean(0) for one in series)
    joined = np.concatenate(series)
    mean, deviation = joined.mean(0), joined.std(0)
    return tuple((one - mean) / np.where(deviation > 0, deviation, 1.0) for one in series)


def lagged(series: tuple[Values, ...], lags: int) -> Design:
    """Return the regression of each row on the rows before it, of the same series."""
    inputs = [np.stack([one[lags - lag : len(one) - lag] for lag in range(1, lags + 1)], 1) for one in series]
    return Design(np.concatenate(inputs), np.concatenate([one[lags:] for one in series]))


def chosen_design(series: tuple[Values, ...], centre: bool = False) -> Design:
    """Return the design with the number of lags that a ridge regression forecasts best with, on blocks left out."""
    series = standardised(series, centre)
    most = max(lags for lags in LAGS if lags < min(map(len, series)))
    longest = lagged(series, most)
    errors = {lags: _left_out_error(longest.newest(lags)) for lags in LAGS if lags <= most}
    return lagged(series, min(errors, key=lambda lags: errors[lags]))


def _left_out_error(design: Design) -> float:
    errors = np.zeros(len(PENALTIES))
    for block in np.array_split(np.arange(len(design.targets)), BLOCKS):
        kept = np.delete(np.arange(len(design.targets)), block)
        for number, penalty in enumerate(PENALTIES):
            model = Ridge(penalty * len(kept)).fit(design.columns[kept], design.targets[kept])
            errors[number] += ((model.predict(design.columns[block]) - design.targets[block]) ** 2).sum()
    return float(errors.min())

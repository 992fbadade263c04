"""Windows over a series: pairs of the recent past and a value to come, in parts that follow one another in time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int, Shaped

from tacit.data.pairs import Pairs, Split
from tacit.data.scaling import Scaling
from tacit.data.series import LARGEST, RESCALE, Series, Values
from tacit.errors import InputError, did_you_mean, require, require_whole

ROUNDING = 1e-12  # a spread below this part of the mean is what rounding leaves of a constant
Rows = Int[np.ndarray, " pair"]


@dataclass(frozen=True, eq=False)
class SeriesPairs:
    """Pairs made from a series, with all that is needed to read them.

    ``inputs`` have shape (pair, node, window * num_features), the lags one after another: column
    ``lag * num_features + feature``, lag 0 the oldest. Features are named in ``scaling.feature_names``.
    """

    split: Split
    scaling: Scaling
    window: int
    horizon: int
    train_times: Shaped[np.ndarray, " train"]
    validation_times: Shaped[np.ndarray, " validation"]
    test_times: Shaped[np.ndarray, " test"]

    @property
    def num_features(self) -> int:
        """Features of a node at one step."""
        return self.scaling.num_features

    @property
    def out_channels(self) -> int:
        """Variables that are predicted."""
        return self.scaling.out_channels

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features of one step, in their order."""
        return self.scaling.feature_names

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return self.scaling.nodes


@dataclass(frozen=True)
class Windows:
    r"""Pairs $(x_t, y_{t+h})$: ``window`` rows that end at row $t$, and the row ``horizon`` $= h$ steps after.

    Several series on the same nodes (experiments) are laid one after another; no window reaches from one into
    another. The pairs, in that order, are cut into the first ``fractions[0]`` for training, the next ``fractions[1]``
    for validation and the rest for test, so with several series the later ones are the test. Every target belongs to
    one part only; a window of a later part may look back into rows of an earlier one, as it will when it is used.
    Scaling uses the rows up to the last training target. A pair without any observed target is left out.

    >>> series = Series(np.arange(20.0).reshape(20, 1, 1), nodes=("a",))
    >>> made = Windows(window=3, horizon=2, fractions=(0.5, 0.25)).prepare(series)
    >>> made.train_times.tolist(), made.test_times.tolist()
    ([4, 5, 6, 7, 8, 9, 10, 11], [16, 17, 18, 19])
    >>> made.scaling.to_units(made.split.train.inputs[0].view(3, 1, 1)).flatten().tolist()
    [0.0, 1.0, 2.0]
    """

    window: int = 12
    horizon: int = 1
    fractions: tuple[float, float] = (0.7, 0.1)

    def __post_init__(self) -> None:
        require_whole("window", self.window)
        require_whole("horizon", self.horizon)
        require(
            len(self.fractions) == 2 and min(self.fractions) > 0 and sum(self.fractions) < 1,
            "fractions needs two positive numbers (training, validation) with a sum below 1, so that something is left "
            f"for the test, got {self.fractions}; pass for example (0.7, 0.1)",
        )

    def prepare(self, series: Series | Sequence[Series], *, targets: Sequence[str] | None = None) -> SeriesPairs:
        """Return the three parts of pairs; ``targets`` names the variables to predict, all unless given."""
        pieces = _pieces(series)
        channels = pieces[0].channels
        chosen = _chosen(channels, targets)
        variables = chosen + tuple(name for name in channels if name not in chosen)
        last = self._last_rows(pieces, ahead=self.horizon)
        values = np.concatenate([piece.values for piece in pieces])[:, :, [channels.index(name) for name in variables]]
        there = ~np.isnan(values[last + self.horizon, :, : len(chosen)])  # (pair, node, channel)
        last = last[there.any(axis=(1, 2))]
        cuts = self._cuts(len(last))
        scaling = _measured(pieces, variables, len(chosen), values, 1 + int(last[cuts[0] - 1]) + self.horizon)
        pairs = self._pairs(pieces, scaling, last)
        if there.all():
            pairs = Pairs(pairs.inputs, pairs.targets)
        times = np.concatenate([piece.row_times for piece in pieces])[last + self.horizon]
        bounds = list(zip((0, *cuts), (*cuts, len(last)), strict=True))
        return SeriesPairs(
            Split(*(pairs[start:stop] for start, stop in bounds)),
            scaling,
            self.window,
            self.horizon,
            *(times[start:stop] for start, stop in bounds),
        )

    def apply(self, series: Series | Sequence[Series], scaling: Scaling) -> Pairs:
        """Return a pair for every window of new data, oldest first; targets that are not known yet are missing."""
        pieces = _pieces(series)
        return self._pairs(pieces, scaling, self._last_rows(pieces, ahead=0))

    def target_times(self, series: Series | Sequence[Series]) -> Shaped[np.ndarray, " pair"]:
        """Return the time of each target of :meth:`apply`; times to come go on in steps of the last one."""
        return np.concatenate([self._target_times_of(piece) for piece in _pieces(series)])

    def _target_times_of(self, piece: Series) -> Shaped[np.ndarray, " pair"]:
        times = piece.row_times
        step = times[-1] - times[-2] if len(times) > 1 else (times[-1] - times[-1]) + 1
        coming = times[-1] + step * np.arange(1, self.horizon + 1)
        return np.concatenate([times, coming])[self.window - 1 + self.horizon :]

    def _last_rows(self, pieces: tuple[Series, ...], ahead: int) -> Rows:
        """Return the last row of every window that has ``ahead`` rows after it, counted over all pieces."""
        need = self.window + ahead
        starts = np.cumsum([0, *(len(piece) for piece in pieces[:-1])])
        for position, piece in enumerate(pieces):
            which = f"series {position + 1}" if len(pieces) > 1 else "the series"
            require(
                len(piece) >= need,
                f"{which} needs at least {need} rows for a window of {self.window}"
                + (f" and a horizon of {ahead}" if ahead else "")
                + f", got {len(piece)}; pass more rows, or a shorter window",
            )
        return np.concatenate(
            [
                start + np.arange(self.window - 1, len(piece) - ahead)
                for start, piece in zip(starts, pieces, strict=True)
            ]
        )

    def _cuts(self, num_pairs: int) -> tuple[int, int]:
        train, validation = (round(num_pairs * fraction) for fraction in self.fractions)
        require(
            min(train, validation, num_pairs - train - validation) >= 1,
            f"fractions {self.fractions} need at least one pair in each of training, validation and test, but windows "
            f"of {self.window} rows and a horizon of {self.horizon} leave {num_pairs} pairs; "
            "pass more rows, a shorter window or other fractions",
        )
        return train, train + validation

    def _pairs(self, pieces: tuple[Series, ...], scaling: Scaling, last: Rows) -> Pairs:
        """Return the pairs whose windows end in rows ``last``."""
        features = np.concatenate([scaling.features(piece) for piece in pieces]).astype(np.float32)
        inputs = np.empty((len(last), features.shape[1], self.window, features.shape[2]), dtype=np.float32)
        for lag in range(self.window):  # one copy of the rows per lag, and no more memory than the result
            inputs[:, :, lag] = features[last - (self.window - 1 - lag)]
        ahead = [self._shifted(scaling.scaled(piece)[:, :, : scaling.out_channels]) for piece in pieces]
        targets = np.concatenate(ahead)[last].astype(np.float32)
        return Pairs.with_missing(torch.from_numpy(inputs).flatten(2), torch.from_numpy(targets))

    def _shifted(self, values: Values) -> Values:
        """Return for every row the one ``horizon`` later, NaN where there is none yet."""
        later = np.full_like(values, np.nan)
        later[: -self.horizon] = values[self.horizon :]
        return later


def _pieces(series: Series | Sequence[Series]) -> tuple[Series, ...]:
    pieces = (series,) if isinstance(series, Series) else tuple(series)
    require(len(pieces) > 0, "series needs at least one series, got an empty list")
    for position, piece in enumerate(pieces):
        for what in ("nodes", "channels", "covariate_names"):
            first, own = getattr(pieces[0], what), getattr(piece, what)
            require(
                first == own,
                f"series {position + 1} needs the {what} of series 1, {first}, got {own}; pass series of one kind",
            )
    return pieces


def _chosen(channels: tuple[str, ...], targets: Sequence[str] | None) -> tuple[str, ...]:
    if targets is None:
        return channels
    chosen = (targets,) if isinstance(targets, str) else tuple(targets)
    require(len(chosen) > 0, "targets needs at least one variable, got none; leave it out to predict them all")
    for position, name in enumerate(chosen):
        if name not in channels:
            raise InputError(
                f"targets names '{name}', which is no variable of the series{did_you_mean(name, channels)}"
            )
        require(name not in chosen[:position], f"targets names '{name}' twice; name it once")
    return chosen


def _measured(
    pieces: tuple[Series, ...], variables: tuple[str, ...], out_channels: int, values: Values, num_rows: int
) -> Scaling:
    """Return the scaling of the first ``num_rows`` rows of all pieces."""
    nodes, rows = pieces[0].nodes, values[:num_rows]
    there: Bool[np.ndarray, "time node channel"] = ~np.isnan(rows)
    for what, bad in (
        ("missing", ~there.any(axis=0)),
        ("constant", np.where(there, rows, -np.inf).max(axis=0) == np.where(there, rows, np.inf).min(axis=0)),
    ):
        for node, variable in np.argwhere(bad):
            raise InputError(
                f"node '{nodes[node]}' (variable '{variables[variable]}') is {what} throughout the training part, the "
                f"first {num_rows} rows, so it has no scale; leave it out, or train on a larger fraction"
            )
    mean, deviation = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
    for node, variable in np.argwhere(deviation < np.maximum(ROUNDING * np.abs(mean), 1 / LARGEST)):
        raise InputError(
            f"node '{nodes[node]}' (variable '{variables[variable]}') hardly moves in the training part: by "
            f"{deviation[node, variable]:.3g} around {mean[node, variable]:.6g}; leave it out, or {RESCALE}"
        )
    known = [piece.covariates for piece in pieces if piece.covariates is not None]
    covariates = np.concatenate(known)[:num_rows] if known else np.zeros((num_rows, 0))
    centre, spread = covariates.mean(axis=0), covariates.std(axis=0)
    still = spread <= np.maximum(ROUNDING * np.abs(centre), 1 / LARGEST)
    return Scaling(
        nodes,
        variables,
        out_channels,
        mean,
        deviation,
        flagged=bool(np.isnan(values).any()),
        covariate_names=pieces[0].covariate_names,
        covariate_mean=centre,
        covariate_deviation=np.where(still, 1.0, spread),  # a constant one becomes 0, or what rounding leaves of it
    )

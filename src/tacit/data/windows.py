"""Windows over one or several series: pairs of past values and a future value, and what is known beside them.

The known columns are what a node has at the time of a target beside its window. For the target in row $r$ and the
newest input in row $r - h$ these are, in this order:

- the covariates in row $r$,
- the covariates in row $r - 1$, without parts of the date and others that follow from the first,
- the columns of the :class:`~tacit.data.background.Background`: waves and categories of the time of row $r$, and levels
  of the node's own values up to row $r - h$; 0 for terms that the node does not use.

After the last row of a table, dates continue (:mod:`tacit.data.times`), so waves, categories and parts of the
date are known. Other covariates are not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Generator, Tensor

from tacit.data.background import NO_BACKGROUND, Background, Level, Numbers, calendar_columns
from tacit.data.conditions import UNKNOWN_AHEAD, chosen_rows, chosen_targets, known_ahead, require_some
from tacit.data.pairs import Pairs, Split
from tacit.data.scaling import ScaleBy, Scaling, forward_filled
from tacit.data.series import PerPair, Series, Times, Values, assign_parts, unseen_levels
from tacit.data.times import extended_times
from tacit.errors import InputError, did_you_mean, require, require_int

Known = Float[np.ndarray, "row node known"]


def num_known(scaling: Scaling, background: Background) -> int:
    """Return the number of known columns of a node."""
    return len(scaling.covariate_names) + len(scaling.lagged_covariates) + background.size


def unknown_ahead(scaling: Scaling, part: Series) -> tuple[str, ...]:
    """Return the covariates that are not known after the last row, by the names of their columns in the table."""
    computed = calendar_columns(part.row_times[-1:], scaling.covariate_names)
    names = [name for name in scaling.covariate_names if name not in computed]
    plain = [name.split("=")[0] for name in names]  # of an indicator
    return tuple(dict.fromkeys(one if one in part.levels else name for one, name in zip(plain, names, strict=True)))


def covariates_ahead(scaling: Scaling, part: Series, ahead: int) -> Float[np.ndarray, "row covariate"]:
    """Return the scaled covariates of all rows and of ``ahead`` rows after them; NaN where one is not known."""
    known, names = scaling.covariates(part), scaling.covariate_names
    if not names or not ahead:
        return np.concatenate([known, np.full((ahead, known.shape[1]), np.nan)])
    coming = calendar_columns(extended_times(part.row_times, ahead)[len(part) :], names)
    later = np.stack([coming.get(name, np.full(ahead, np.nan)) for name in names], axis=1)
    return np.concatenate([known, (later - scaling.covariate_mean) / scaling.covariate_deviation])


def columns_at_targets(
    scaling: Scaling,
    background: Background,
    covariates: Float[np.ndarray, "row covariate"],
    times: Numbers,
) -> Known:
    """Return the known columns of targets in these rows, with 0 in place of the levels.

    ``times`` are the times of the rows as numbers. The first row has no row before it: its lagged covariates are NaN.
    """
    nodes = len(scaling.nodes)
    lagged = [scaling.covariate_names.index(name) for name in scaling.lagged_covariates]
    before = np.concatenate([np.full((1, len(lagged)), np.nan), covariates[:-1, lagged]])
    shared = np.concatenate([covariates, before], axis=1)[:, None]
    parts: list[Known] = [np.broadcast_to(shared, (len(times), nodes, shared.shape[2]))]
    for number, term in enumerate(background.terms):
        if isinstance(term, Level):
            parts.append(np.zeros((len(times), nodes, term.size)))
        else:
            parts.append(term.columns(times)[:, None] * background.used[:, number, None])
    return np.concatenate(parts, axis=2)


def level_places(scaling: Scaling, background: Background) -> list[int]:
    """Return the positions of the levels among the known columns."""
    first = len(scaling.covariate_names) + len(scaling.lagged_covariates)
    sizes = np.cumsum([first, *(term.size for term in background.terms)])
    return [int(sizes[number]) for number in level_terms(background)]


def level_terms(background: Background) -> list[int]:
    """Return the positions of the levels among the terms."""
    return [number for number, term in enumerate(background.terms) if isinstance(term, Level)]


def level_values(background: Background, values: Values) -> Float[np.ndarray, "row node level"]:
    """Return each level up to every row from scaled values, of the first variable; 0 before the first value.

    A level starts at the first value and is the plain mean of the first rows. A missing value is the previous value.

    >>> background = Background((Level(1.0),), np.array([[True], [False]]))
    >>> series = np.array([[np.nan, 1.0], [2.0, 1.0], [4.0, 1.0]])[..., None]
    >>> level_values(background, series)[..., 0].tolist()
    [[0.0, 0.0], [2.0, 0.0], [3.0, 0.0]]
    """
    from scipy.signal import lfilter

    terms = level_terms(background)
    found = np.zeros((*values.shape[:2], len(terms)))
    filled = forward_filled(values[:, :, :1])[..., 0] if terms else values[..., 0]
    for place, number in enumerate(terms):
        term = background.terms[number]
        assert isinstance(term, Level)
        for node in background.used[:, number].nonzero()[0]:
            first = int(np.isnan(filled[:, node]).sum())  # filled values are missing at the start only
            known = filled[first:, node]
            plain = min(len(known), max(1, int(1 / term.rate)))  # rows of which the level is the plain mean
            level = known[:plain].cumsum() / np.arange(1, plain + 1)
            if len(known) > plain:
                later, _ = lfilter([term.rate], [1, term.rate - 1], known[plain:], zi=(1 - term.rate) * level[-1:])
                level = np.concatenate([level, later])
            found[first:, node, place] = level
    return found


@dataclass(frozen=True, eq=False)
class SeriesPairs:
    """Pairs made from a series, and what is needed to interpret them.

    ``inputs`` have shape (pair, node, window * num_features + known), the lags one after another: column
    ``lag * num_features + feature``, lag 0 the oldest. Features are named in ``scaling.feature_names``. After the lags
    come the columns of :mod:`tacit.data.windows`: covariates and background at the time of the target.

    ``used``        the series that the pairs come from: those given, without the ones that were too short
    ``train_ends``  for each series of ``used``, the number of rows up to its last training target, used for scaling
    ``levelled``    if each series has its own level: the test pairs with levels over all rows. The fit test uses these,
                    so that the error of a level from few rows does not count as misfit
    ``notes``       what was left out, and how several series were split
    """

    split: Split
    scaling: Scaling
    window: int
    horizon: int
    train_times: Shaped[np.ndarray, " train"]
    validation_times: Shaped[np.ndarray, " validation"]
    test_times: Shaped[np.ndarray, " test"]
    used: Series
    train_ends: tuple[int, ...]
    levelled: Pairs | None = None
    notes: tuple[str, ...] = ()
    background: Background = NO_BACKGROUND

    @property
    def series_names(self) -> tuple[str, ...]:
        """Names of the series in the order of ``Pairs.series``; empty for one series without a name."""
        return self.used.series_names

    @property
    def num_features(self) -> int:
        """Number of features of a node at one step."""
        return self.scaling.num_features

    @property
    def known(self) -> int:
        """Number of columns of a node after its window."""
        return num_known(self.scaling, self.background)

    @property
    def out_channels(self) -> int:
        """Number of predicted variables."""
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
class NewPairs:
    """Pairs made from new data, and the times of their targets (numbers of the pairs if there are no times).

    ``actual`` are the targets in the units of the data, NaN if one is not known. ``series`` is the name of the series
    of each pair, if series have names; ``notes`` list what was left out.
    """

    pairs: Pairs
    times: Shaped[np.ndarray, " pair"]
    actual: Float[np.ndarray, "pair node channel"]
    series: Shaped[np.ndarray, " pair"] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Windows:
    r"""Pairs $(x_t, y_{t+h})$: ``window`` rows that end at row $t$, and the row ``horizon`` $= h$ steps later.

    No window crosses from one series into another; a series that is too short for a window is left out with a note. The
    pairs of one series are split in time order: the first ``fractions[0]`` for training, the next ``fractions[1]`` for
    validation and the rest for the test. Five or more series are split by whole series, fewer are each split in time
    order; see :mod:`tacit.data.series`. Every target belongs to one part only; a window of a later part may
    contain rows of an earlier part, as in use. Scaling uses the rows of each series up to its last training target. A
    pair without any observed target is left out.

    If a series has a condition, only targets in rows that meet it are used, in all parts; their windows may contain
    other rows. Scaling then uses the rows that are in a training pair, as inputs or as targets.

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
        require_int("window", self.window)
        require_int("horizon", self.horizon)
        require(
            len(self.fractions) == 2 and min(self.fractions) > 0 and sum(self.fractions) < 1,
            f"fractions must be two positive numbers (training, validation) with a sum below 1, got {self.fractions}; "
            "pass for example (0.7, 0.1)",
        )

    def prepare(
        self,
        series: Series | Sequence[Series],
        *,
        targets: Sequence[str] | None = None,
        generator: Generator | None = None,
        by: ScaleBy = "all",
        from_zero: Sequence[str] = (),
        cut_series: bool = False,
        background: Background = NO_BACKGROUND,
    ) -> SeriesPairs:
        """Return the three parts of pairs; ``targets`` names the variables to predict, all unless given.

        ``by`` is the scaling of several series: one mean and deviation for ``"all"``, a ``"level"`` for each, or both
        for each ``"series"``. In the last two cases, and with ``cut_series``, each series is split in time order. Nodes
        in ``from_zero`` are not centred. With a ``generator``, whole series are assigned to the parts at random.
        The columns of the ``background`` follow the windows.
        """
        given = series if isinstance(series, Series) else Series.joined(series)
        shape = (given.num_nodes, len(background.terms))
        require(
            not background.terms or background.used.shape == shape,
            f"used of the background must have shape {shape}, a row per node and a column per term, got "
            f"{background.used.shape}; pass one for these nodes",
        )
        chosen = _chosen(given.channels, targets)
        used, notes = self._usable(given, ahead=self.horizon, targets=chosen)
        if given.where is not None:
            require_some(given, chosen_rows(given), "rows")
            everywhere = len(self.target_rows(replace(given, where=None), chosen))
            count = len(self.target_rows(given, chosen))
            notes = (f"where {given.where.text}: {count:,} of {everywhere:,} targets are used", *notes)
        rows = self.target_rows(used, chosen)
        of_pair = used.series_of_row[rows]
        part, split_notes = assign_parts(of_pair, self.fractions, generator, whole=by == "all" and not cut_series)
        length = given.settled.get("bin")
        bins = "" if length is None else f" and bins of {length}"
        remedy = "a shorter window" if length is None else "a shorter bin (--bin) or window"
        season = "" if used.where is None else f" where {used.where.text}"
        require(
            int(np.bincount(part, minlength=3).min()) >= 1,
            f"fractions {self.fractions} must leave at least one pair for each of training, validation and test, but "
            f"windows of {self.window} row{'s' * (self.window > 1)}{',' if bins else ' and'} a horizon of "
            f"{self.horizon}{bins} leave {len(part)} "
            f"pair{'s' * (len(part) != 1)}{season}; pass more rows, {remedy} or other fractions",
        )
        row_of_series = np.arange(len(used)) - used.starts[used.series_of_row]
        train_ends = np.zeros(used.num_series, dtype=np.int64)
        np.maximum.at(train_ends, of_pair[part == 0], 1 + row_of_series[rows[part == 0]])
        scaled_rows: Bool[np.ndarray, " time"] = row_of_series < train_ends[used.series_of_row]
        if used.where is not None:  # only the rows of training pairs
            scaled_rows[:] = False
            for back in (0, *range(self.horizon, self.horizon + self.window)):
                scaled_rows[rows[part == 0] - back] = True
        scaling = Scaling.measured(used, scaled_rows, chosen, by, from_zero).with_gaps(used, scaled_rows)
        unseen = unseen_levels(used, scaled_rows)
        if unseen:
            notes += (f"levels that do not occur in the training part have no effect: {', '.join(unseen)}",)
        pairs = self.pairs(used, scaling, rows - self.horizon, background)
        if pairs.observed is not None and bool(pairs.observed.all()):
            pairs = replace(pairs, observed=None)
        places = [_places(part == one) for one in range(3)]
        times = used.row_times[rows]
        train_times, validation_times, test_times = (times[place] for place in places)
        return SeriesPairs(
            Split(*(pairs[place if isinstance(place, slice) else torch.from_numpy(place)] for place in places)),
            scaling,
            self.window,
            self.horizon,
            train_times,
            validation_times,
            test_times,
            used=used,
            train_ends=tuple(train_ends.tolist()),
            levelled=None
            if scaling.by == "all"
            else self.pairs(used, scaling.with_levels_of(used), rows[part == 2] - self.horizon, background),
            notes=notes + split_notes + scaling.no_level_note(used),
            background=background,
        )

    def apply(
        self, series: Series | Sequence[Series], scaling: Scaling, background: Background = NO_BACKGROUND
    ) -> NewPairs:
        """Return a pair for every window of new data, oldest first; targets that are not known yet are missing.

        Future times follow the calendar (months, weekdays) if those of the series do, and otherwise continue in steps
        of the last size; see :mod:`tacit.data.times`. A target after the last row is left out if a covariate is
        not known there.
        """
        used, notes = self._usable(series if isinstance(series, Series) else Series.joined(series), ahead=0)
        notes += scaling.new_series_note(used)
        scaling = scaling.of_series(used)
        notes += scaling.no_level_note(used)
        last, left_out = self._where_covariates_are_known(used, scaling, _window_ends(used, self.window, ahead=0))
        notes += left_out
        if used.where is not None:
            inside = chosen_targets(used, self.horizon)[last]
            require_some(used, inside, "targets of windows")
            notes += (f"where {used.where.text}: {inside.sum():,} of {len(last):,} windows are used",)
            notes += () if known_ahead(used) else (UNKNOWN_AHEAD,)
            last = last[inside]
        names = np.array(used.series_names)[used.series_of_row[last]] if used.lengths else None
        ahead = [self._shifted(scaling.ordered(part)[:, :, : scaling.out_channels]) for part in used.parts]
        actual = np.concatenate(ahead)[last]
        pairs = self.pairs(used, scaling, last, background)
        return NewPairs(pairs, self._target_times(used)[last], actual, names, notes)

    def target_rows(self, series: Series, targets: tuple[str, ...]) -> PerPair:
        """Return the row of every target with a window before it that meets the condition and has a known value."""
        rows = _window_ends(series, self.window, self.horizon) + self.horizon
        chosen = [series.channels.index(name) for name in targets]
        rows = rows[chosen_rows(series)[rows]] if series.where is not None else rows
        known: PerPair = rows[~np.isnan(series.values[rows][:, :, chosen]).all(axis=(1, 2))]
        return known

    def pairs(self, series: Series, scaling: Scaling, last: PerPair, background: Background = NO_BACKGROUND) -> Pairs:
        """Return the pairs whose windows end in rows ``last``, counted over all series."""
        parts = series.parts
        features = np.concatenate(
            [scaling.features(part, number).astype(np.float32) for number, part in enumerate(parts)]
        )
        width, known = features.shape[2], num_known(scaling, background)
        inputs = np.empty((len(last), features.shape[1], self.window * width + known), dtype=np.float32)
        for lag in range(self.window):  # one copy of the rows per lag: no memory beyond the result
            inputs[:, :, lag * width : (lag + 1) * width] = features[last - (self.window - 1 - lag)]
        if known:
            each, places = list[Known](), level_places(scaling, background)
            for number, part in enumerate(parts):  # of the targets ``horizon`` steps after each row
                times = time_numbers(extended_times(part.row_times, self.horizon)).numpy()
                covariates = covariates_ahead(scaling, part, self.horizon)
                found = columns_at_targets(scaling, background, covariates, times)[self.horizon :].astype(np.float32)
                if places:
                    found[:, :, places] = level_values(background, scaling.scaled(part, number))
                each.append(found)
            inputs[:, :, self.window * width :] = np.concatenate(each)[last]
        ahead = [
            self._shifted(scaling.scaled(part, number)[:, :, : scaling.out_channels]).astype(np.float32)
            for number, part in enumerate(parts)
        ]
        targets = np.concatenate(ahead)[last]
        several = series.lengths or scaling.by != "all"
        numbers = torch.from_numpy(series.series_of_row[last]) if several else None
        newest = np.concatenate([scaling.covariates(part) for part in parts])[last].astype(np.float32)
        shared = torch.from_numpy(newest) if newest.shape[1] else None  # at the newest step, shared by nodes
        at = time_numbers(self._target_times(series)[last])
        pairs = Pairs.with_missing(torch.from_numpy(inputs), torch.from_numpy(targets), numbers, at, shared)
        return replace(pairs, units=scaling.units)

    def _usable(self, series: Series, ahead: int, targets: tuple[str, ...] = ()) -> tuple[Series, tuple[str, ...]]:
        """Return the series with a window (and a known target), and a note on the others."""
        need, wish = self.window + ahead, f"a window of {self.window}" + (f" and a horizon of {ahead}" if ahead else "")
        if not series.lengths:
            require(
                len(series) >= need,
                f"the series must have at least {need} rows for {wish}, got {len(series)}; pass more rows, or a "
                "shorter window",
            )
            return series, ()
        long = np.array(series.lengths) >= need
        require(
            bool(long.any()),
            f"a series must have at least {need} rows for {wish}, got at most {max(series.lengths)} in "
            f"{series.num_series} series; pass longer series, or a shorter window",
        )
        fits = long
        if ahead:
            fits = np.bincount(series.series_of_row[self.target_rows(series, targets)], minlength=len(long)) > 0
            require(
                bool(fits.any()),
                f"the data must have a known target, got none in {series.num_series} series; pass other rows",
            )
        if fits.all():
            return series, ()
        short, empty = int((~long).sum()), int((long & ~fits).sum())
        reasons = [f"{short} shorter than the {need} rows of {wish}"] if short else []
        reasons += [f"{empty} without a known target"] if empty else []
        note = f"{short + empty} of {series.num_series} series were left out: {', '.join(reasons)}"
        return series.selected(np.flatnonzero(fits).tolist()), (note,)

    def _where_covariates_are_known(
        self, series: Series, scaling: Scaling, last: PerPair
    ) -> tuple[Int[np.ndarray, " known"], tuple[str, ...]]:
        """Return the windows whose targets have known covariates, and a note if some have not."""
        unknown = unknown_ahead(scaling, series.parts[0])
        if not unknown:
            return last, ()
        ends = series.starts + np.array(series.lengths or (len(series),))
        inside = last[last + self.horizon < ends[series.series_of_row[last]]]
        what = f"covariate '{unknown[0]}'" if len(unknown) == 1 else f"covariates {', '.join(unknown)}"
        remedy = "add rows with the covariates and empty cells for the nodes"
        require(
            len(inside) > 0,
            f"{what} must be known at the time of a forecast, got no row after a window of {self.window}; {remedy}",
        )
        if np.isnan(series.values[ends - 1]).all():  # the table has rows of covariates only
            return inside, ()
        after = "the last row" if series.num_series == 1 else "the last row of each series"
        return inside, (
            f"no forecast after {after}, where {what} {'is' if len(unknown) == 1 else 'are'} not known; {remedy}",
        )

    def _target_times(self, series: Series) -> Times:
        """Return the time ``horizon`` steps after every row, also after the end of a series."""
        return np.concatenate([extended_times(part.row_times, self.horizon)[self.horizon :] for part in series.parts])

    def _shifted(self, values: Values) -> Values:
        """Return the values ``horizon`` steps after every row, NaN if there are none."""
        later = np.full_like(values, np.nan)
        later[: -self.horizon] = values[self.horizon :]
        return later


def _window_ends(series: Series, window: int, ahead: int) -> PerPair:
    """Return the last row of every window that has ``ahead`` rows after it in its series, counted over all series."""
    lengths = series.lengths or (len(series),)
    ends = [start + np.arange(window - 1, length - ahead) for start, length in zip(series.starts, lengths, strict=True)]
    return np.concatenate(ends)


def _places(chosen: Bool[np.ndarray, " pair"]) -> slice | Int[np.ndarray, " chosen"]:
    """Return the positions of the chosen pairs, as a slice if they are consecutive, to save memory."""
    places = np.flatnonzero(chosen)
    return slice(int(places[0]), int(places[-1]) + 1) if places[-1] - places[0] + 1 == len(places) else places


def time_numbers(times: Shaped[np.ndarray, "*any"]) -> Float[Tensor, "*any"]:
    """Return times as numbers: dates in seconds since 1970, durations in seconds."""
    if times.dtype.kind == "M":
        times = times - np.datetime64(0, "s")
    if times.dtype.kind == "m":
        times = times / np.timedelta64(1, "s")
    return torch.from_numpy(times.astype(np.float64))


def _chosen(channels: tuple[str, ...], targets: Sequence[str] | None) -> tuple[str, ...]:
    if targets is None:
        return channels
    chosen = (targets,) if isinstance(targets, str) else tuple(targets)
    require(len(chosen) > 0, "targets must have at least one variable, got none; leave it out to predict them all")
    for position, name in enumerate(chosen):
        if name not in channels:
            raise InputError(
                f"targets names '{name}', which is not a variable of the series{did_you_mean(name, channels)}"
            )
        require(name not in chosen[:position], f"targets names '{name}' twice; name it once")
    return chosen

r"""One or several time series on nodes, the form into which every table is read, and the split into parts.

A categorical covariate $c$, such as a regime, with levels $\ell_1, \dots, \ell_L$ has an indicator column for each
level but the first,

$$1[c_t = \ell_2], \dots, 1[c_t = \ell_L].$$

The first level is the reference: with a column for it as well,
the columns would sum to the intercept. Indicators are the last columns of the covariates of a series.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Generator

from tacit.data.resampling import FEWEST_SERIES  # with three or four series, a part would depend on a single one
from tacit.errors import InputError, require

if TYPE_CHECKING:
    from tacit.data.conditions import Condition


Values = Float[np.ndarray, "time node channel"]
Times = Shaped[np.ndarray, " time"]
PerPair = Int[np.ndarray, " pair"]
Levels = Mapping[str, tuple[str, ...]]
Indicators = Float[np.ndarray, "row level"]
MOST_LEVELS = 30  # each adds a column to the inputs of every node
MOST_NAMED = 5  # nodes in a note
LARGEST = 1e15  # of a number, and of the inverse of a spread: squares must fit in single precision
RESCALE = "write the numbers in another unit, and leave cells of missing values empty"


def level_names(name: str, levels: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the indicator columns.

    >>> level_names("regime", ("dry", "wet"))
    ('regime=wet',)
    """
    return tuple(f"{name}={level}" for level in levels[1:])


def indicators(codes: Int[np.ndarray, " row"], num_levels: int) -> Indicators:
    """Return the indicator columns of rows with these levels, counted from 0."""
    columns: Indicators = (codes[:, None] == np.arange(1, num_levels)).astype(np.float64)
    return columns


def coded(
    name: str, codes: Int[np.ndarray, " row"], words: Sequence[str], levels: Sequence[str] | None
) -> tuple[Int[np.ndarray, " row"], tuple[str, ...]]:
    """Return the level of each row, counted from 0, and the levels: those given, or the sorted words.

    >>> coded("regime", np.array([0, 1, 0]), ["wet", "dry"], None)
    (array([1, 0, 1]), ('dry', 'wet'))
    """
    known = tuple(sorted(set(words))) if levels is None else tuple(levels)
    require(
        len(known) <= MOST_LEVELS,
        f"covariate '{name}' must have at most {MOST_LEVELS} levels, got {len(known)} different words; leave it out",
    )
    place = {level: number for number, level in enumerate(known)}
    for number, word in enumerate(words):
        if word not in place:
            row = int(np.argmax(codes == number)) + 1
            raise InputError(
                f"covariate '{name}' must have the levels of the training data, {', '.join(known)}, got '{word}' in "
                f"row {row}; correct it, or leave the row out"
            )
    return np.array([place[word] for word in words], dtype=np.int64)[codes], known


def with_common_levels(parts: "Sequence[Series]") -> "list[Series]":
    """Return the series with the union of their levels."""
    if all(part.levels == parts[0].levels for part in parts):
        return list(parts)
    names = dict.fromkeys(name for part in parts for name in part.levels)
    common = {name: tuple(sorted({level for part in parts for level in part.levels.get(name, ())})) for name in names}
    made = []
    for part in parts:
        covariates = np.zeros((len(part), 0)) if part.covariates is None else part.covariates
        codes = _codes(covariates, part.levels)
        others = covariates.shape[1] - sum(len(own) - 1 for own in part.levels.values())
        columns, labels = [covariates[:, :others]], list(part.covariate_names[:others])
        for name, own in part.levels.items():
            place = np.array([common[name].index(level) for level in own])
            columns.append(indicators(place[codes[name]], len(common[name])))
            labels += level_names(name, common[name])
        known = np.concatenate(columns, axis=1) if labels else None
        made.append(replace(part, covariates=known, covariate_names=tuple(labels), levels=common))
    return made


def unseen_levels(series: "Series", rows: Bool[np.ndarray, " time"]) -> list[str]:
    """Return the levels that do not occur in some rows of a series, as name=level."""
    covariates = np.zeros((len(series), 0)) if series.covariates is None else series.covariates
    codes = _codes(covariates[rows], series.levels)
    return [
        f"{name}={level}"
        for name, levels in series.levels.items()
        for number, level in enumerate(levels)
        if not (codes[name] == number).any()
    ]


def _codes(covariates: Indicators, levels: Levels) -> dict[str, Int[np.ndarray, " row"]]:
    """Return the level of each row, counted from 0; indicators are the last columns of the covariates."""
    first, codes = covariates.shape[1] - sum(len(own) - 1 for own in levels.values()), {}
    for name, own in levels.items():
        columns = covariates[:, first : first + len(own) - 1]
        codes[name] = (columns @ np.arange(1.0, len(own))).astype(np.int64)
        first += len(own) - 1
    return codes


@dataclass(frozen=True, eq=False)
class Series:
    """Numbers per time, node and variable, one row per step of a regular grid; NaN where nothing was observed.

    ``covariates`` are known numbers that all nodes share, such as the hour of the day; they have no gaps.
    ``coordinates`` are two numbers per node, such as latitude and longitude. ``notes`` describe what a reader changed.
    A node that is never observed or constant is refused, unless the series is a ``piece``: one of several experiments,
    or new rows to predict from.

    Several series over the same nodes (experiments, patients, days) are stored one after another: ``lengths`` are their
    numbers of rows and ``series_names`` their names, both empty for one series. Names are ``counted`` if the user gave
    none: "1" in other data is then a different series.

    ``where`` is a condition that selects the targets by their rows, and ``labels`` are the columns that it uses; see
    :mod:`tacit.data.conditions`. ``levels`` are the levels of each categorical covariate.

    ``settled`` are options that a reader found itself (``time``, ``drop``, ``dayfirst``), so that new data is read in
    the same way. ``unused`` are names in ``columns`` and ``drop`` without a column in a piece.

    >>> series = Series(np.array([[[1.0], [2.0]], [[3.0], [np.nan]], [[2.0], [5.0]]]), nodes=("a", "b"))
    >>> len(series), series.channels
    (3, ('value',))
    >>> both = Series.joined([series, series])
    >>> len(both), both.lengths, both.series_names, len(both.parts[1])
    (6, (3, 3), ('1', '2'), 3)
    """

    values: Values
    nodes: tuple[str, ...]
    channels: tuple[str, ...] = ("value",)
    times: Times | None = None
    covariates: Float[np.ndarray, "time covariate"] | None = None
    covariate_names: tuple[str, ...] = ()
    coordinates: Float[np.ndarray, "node 2"] | None = None
    notes: tuple[str, ...] = ()
    piece: bool = False
    lengths: tuple[int, ...] = ()
    series_names: tuple[str, ...] = ()
    counted: bool = False
    settled: Mapping[str, Any] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    where: "Condition | None" = None
    labels: Mapping[str, Shaped[np.ndarray, " time"]] = field(default_factory=dict)
    levels: Levels = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Shapes.
        _require_floats("values", self.values, 3, "(time, node, channel)", "add the missing axis")
        time, node, channel = self.values.shape
        require(time > 0, "values must have at least one row, got none")
        for name, words, need in (("nodes", self.nodes, node), ("channels", self.channels, channel)):
            require(
                len(words) == need,
                f"{name} must have one name for each of the {need} in values, got {len(words)}; name them all",
            )
        if self.times is not None:
            require(
                self.times.shape == (time,),
                f"times must have one time for each of the {time} rows of values, got shape {self.times.shape}",
            )
            require(
                self.times.dtype.kind in "iufMm",
                f"times must be numbers or dates, got {self.times.dtype}; use np.array(times, dtype='datetime64[s]')",
            )
        if self.covariates is not None:
            _require_floats("covariates", self.covariates, 2, "(time, covariate)", "add the missing axis")
        got = None if self.covariates is None else self.covariates.shape
        require(
            got == ((time, len(self.covariate_names)) if self.covariate_names else None),
            f"covariates must have {time} rows and one column for each of covariate_names {self.covariate_names}, "
            f"got shape {got}; pass both or neither",
        )
        if self.coordinates is not None:
            _require_floats("coordinates", self.coordinates, 2, "(node, 2)", "pass two numbers per node")
            require(
                self.coordinates.shape == (node, 2),
                f"coordinates must have shape {(node, 2)}, two numbers per node, got {self.coordinates.shape}",
            )

        # Names, and lengths of several series.
        require(all(self.nodes), "every node must have a name, got an empty one; name every column and node")
        require_unique("nodes", self.nodes)
        require_unique("channels", self.channels)
        require_unique("series_names", self.series_names)
        require(
            len(self.lengths) == len(self.series_names),
            f"series_names must be one name for each of the {len(self.lengths)} lengths, got {len(self.series_names)}; "
            "name them all",
        )
        require(
            not self.lengths or (min(self.lengths) > 0 and sum(self.lengths) == time),
            f"lengths must be positive with a sum of {time}, the rows of values, got {self.lengths}; count them",
        )

        # Numbers; no mask is made in the usual case.
        high, low = (float(reduce.reduce(self.values, axis=None)) for reduce in (np.fmax, np.fmin))
        if high > LARGEST or low < -LARGEST:
            infinite = bool(np.isinf([high, low]).any())
            places = np.argwhere(np.isinf(self.values) if infinite else np.abs(self.values) > LARGEST)
            row, at, variable = places[0].tolist()
            usual = f"numbers of at most {LARGEST:g}", f"correct it, or {RESCALE}"
            need, remedy = ("finite numbers, or NaN for missing", "correct or remove it") if infinite else usual
            raise InputError(
                f"values must have {need}, got {self.values[row, at, variable]} for {self._name(at, variable)} "
                f"in row {row} ({len(places)} such values); {remedy}"
            )
        known = np.zeros((0, 0)) if self.covariates is None else self.covariates
        for row, column in np.argwhere(~(np.abs(known) <= LARGEST))[:1]:
            usual = f"numbers of at most {LARGEST:g}", RESCALE
            need, remedy = usual if np.isfinite(known[row, column]) else ("finite numbers", "fill it in")
            raise InputError(
                f"covariates must have {need}, got {known[row, column]} for '{self.covariate_names[column]}' in "
                f"row {row}; {remedy}"
            )
        if self.coordinates is not None:
            for at in np.flatnonzero(~np.isfinite(self.coordinates).all(axis=1))[:1]:
                raise InputError(f"coordinates must have two finite numbers for node '{self.nodes[at]}'; fill them in")

        # Movement: nothing can be learned about a node that is never observed or constant.
        if self.piece:
            return
        for at, variable in np.argwhere(np.isnan(self.values).all(axis=0)).tolist()[:1]:
            raise InputError(f"{self._name(at, variable)} is missing at every time; leave it out")
        for at, variable in np.argwhere(self.still).tolist()[:1]:
            there = self.values[~np.isnan(self.values[:, at, variable]), at, variable]
            how, remedy = "within every series", "leave it out, or set series or covariates to its column"
            if there.min() == there.max():
                how, remedy = f"({there[0]} wherever it is observed)", "leave it out"
            raise InputError(
                f"{self._name(at, variable)} is constant {how}, so nothing can be learned about it; {remedy}"
            )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    @property
    def row_times(self) -> Times:
        """The time of every row; without times, the rows of each series are counted from 0."""
        if self.times is not None:
            return self.times
        return np.concatenate([np.arange(length) for length in self.lengths or (len(self),)])

    @property
    def num_series(self) -> int:
        """Number of series."""
        return len(self.lengths) or 1

    @property
    def starts(self) -> Int[np.ndarray, " series"]:
        """The first row of each series."""
        return np.cumsum([0, *self.lengths[:-1]])

    @property
    def series_of_row(self) -> Int[np.ndarray, " time"]:
        """The number of the series of each row."""
        return np.repeat(np.arange(self.num_series), self.lengths or (len(self),))

    @cached_property
    def parts(self) -> "tuple[Series, ...]":
        """The series, one by one."""
        if not self.lengths:
            return (self,)
        times, known = self.row_times, self.covariates
        rows = [slice(start, start + length) for start, length in zip(self.starts.tolist(), self.lengths, strict=True)]
        return tuple(
            replace(
                self,
                values=self.values[part],
                times=times[part],
                covariates=None if known is None else known[part],
                labels={name: label[part] for name, label in self.labels.items()},
                piece=True,
                lengths=(),
                series_names=(),
                notes=(),
            )
            for part in rows
        )

    def selected(self, which: Sequence[int]) -> "Series":
        """Return some of the series by their numbers."""
        parts = self.parts
        chosen = Series.joined([parts[one] for one in which], [self.series_names[one] for one in which])
        return replace(chosen, notes=self.notes, piece=self.piece, counted=self.counted)

    @classmethod
    def joined(cls, parts: "Sequence[Series]", names: Sequence[str] | None = None) -> "Series":
        """Return several series as one object, named "1", "2", ... unless ``names`` are given.

        A node that some series lack is missing there, and a note lists these nodes.
        """
        require(len(parts) > 0, "series must be at least one series, got an empty list; pass some")
        notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
        settled = _settled_together(parts)
        unused = tuple(name for name in parts[0].unused if all(name in part.unused for part in parts))
        parts = with_common_levels([part for one in parts for part in one.parts])
        nodes = tuple(dict.fromkeys(node for part in parts for node in part.nodes))
        lacking = [node for node in nodes if any(node not in part.nodes for part in parts)]
        if lacking:
            count = sum(any(node not in part.nodes for node in lacking) for part in parts)
            named = ", ".join(lacking[:MOST_NAMED])
            named += f" and {len(lacking) - MOST_NAMED} more" if len(lacking) > MOST_NAMED else ""
            notes += (f"{count} of {len(parts)} series lack some nodes, which are missing values there: {named}",)
            parts = [part.over(nodes) for part in parts]
        first = parts[0]
        for position, part in enumerate(parts):
            for what in ("channels", "covariate_names"):
                need, own = getattr(first, what), getattr(part, what)
                require(
                    need == own,
                    f"series {position + 1} must have the {what} of series 1, {need}, got {own}; pass them alike",
                )
            kinds = first.row_times.dtype.kind, part.row_times.dtype.kind
            require(
                kinds[0] == kinds[1] or "M" not in kinds,
                f"series {position + 1} must have dates or numbers as times, as series 1 has, got the other; "
                "write all times alike",
            )
        known = [part.covariates for part in parts if part.covariates is not None]
        lengths = tuple(len(part) for part in parts)
        counted = not names
        names = tuple(names or (str(number) for number in range(1, len(parts) + 1)))
        labels = {name: np.concatenate([part.labels[name] for part in parts]) for name in first.labels}
        if first.where is not None:
            labels["series"] = np.repeat(np.array(names, dtype=object), lengths)
        return replace(
            first,
            values=np.concatenate([part.values for part in parts]),
            times=np.concatenate([part.row_times for part in parts]),
            covariates=np.concatenate(known) if known else None,
            notes=notes,
            settled=settled,
            unused=unused,
            piece=True,
            lengths=lengths,
            series_names=names,
            counted=counted,
            labels=labels,
        )

    def over(self, nodes: tuple[str, ...]) -> "Series":
        """Return the series over other nodes; nodes that it lacks are missing at all times."""
        if nodes == self.nodes:
            return self
        values = np.full((len(self), len(nodes), len(self.channels)), np.nan)
        place = {node: number for number, node in enumerate(self.nodes)}
        there = [number for number, node in enumerate(nodes) if node in place]
        values[:, there] = self.values[:, [place[nodes[number]] for number in there]]
        return replace(self, values=values, nodes=nodes, piece=True, coordinates=None)

    @property
    def still(self) -> Bool[np.ndarray, "node channel"]:
        """True for each node and variable that is empty or constant within every series."""
        high, low = (reduce.reduceat(self.values, self.starts) for reduce in (np.fmax, np.fmin))
        moves = high > low  # (series, node, channel); NaN where nothing was observed
        return np.logical_not(moves.any(axis=0))

    def _name(self, node: int, channel: int) -> str:
        variable = f" (variable '{self.channels[channel]}')" if len(self.channels) > 1 else ""
        return f"node '{self.nodes[node]}'{variable}"


def require_unique(name: str, words: tuple[str, ...]) -> None:
    """Raise :class:`InputError` if a name occurs twice.

    >>> require_unique("nodes", ("a", "b", "a"))
    Traceback (most recent call last):
    ...
    tacit.errors.InputError: nodes must have different names, got 'a' twice; rename one
    """
    seen: set[str] = set()
    for word in words:
        require(word not in seen, f"{name} must have different names, got '{word}' twice; rename one")
        seen.add(word)


def _settled_together(parts: "Sequence[Series]") -> dict[str, Any]:
    """Return the options that hold for all parts; names that are nodes of another part are kept."""
    nodes, found = {node for part in parts for node in part.nodes}, [part.settled for part in parts]
    settled = {key: value for key, value in found[0].items() if all(one.get(key) == value for one in found)}
    for position, one in enumerate(found):
        require(
            (one.get("time") is False) == (found[0].get("time") is False),
            f"all series must have the same column of times, or none, got other columns in series 1 than in series "
            f"{position + 1}; set time to its name, or to false",
        )
        if "dayfirst" in one:
            require(
                settled.setdefault("dayfirst", one["dayfirst"]) == one["dayfirst"],
                f"dates must have the same order in all series, got the day first in some (series {position + 1}); "
                "write YYYY-MM-DD",
            )
    drop = (name for one in found for name in one.get("drop", ()) if name not in nodes)
    return {**settled, "drop": tuple(dict.fromkeys(drop))} if any("drop" in one for one in found) else settled


def _require_floats(name: str, values: object, num_axes: int, shape: str, remedy: str) -> None:
    if not isinstance(values, np.ndarray) or values.dtype != np.float64:
        got = getattr(values, "dtype", type(values).__name__)
        raise InputError(f"{name} must be a numpy array of float64, got {got}; use np.asarray(values, dtype=float)")
    require(values.ndim == num_axes, f"{name} must have shape {shape}, got {values.shape}; {remedy}")


def assign_parts(
    series_of_pair: PerPair, fractions: tuple[float, float], generator: Generator | None = None, *, whole: bool = True
) -> tuple[PerPair, tuple[str, ...]]:
    """Return the part of every pair (0 training, 1 validation, 2 test), and a note if there are several series.

    Five or more series are split by whole series, so that the test uses series that were not trained on: the first ones
    are for training, or random ones with a ``generator``. Fewer series are each cut in time order, and so are all
    series unless ``whole``.

    >>> assign_parts(np.repeat(np.arange(10), 2), (0.7, 0.1))
    (array([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 2]), ('split by whole series: 7 for training, 1 for validation, 2 for the test',))
    >>> assign_parts(np.zeros(10, dtype=int), (0.7, 0.1))
    (array([0, 0, 0, 0, 0, 0, 0, 1, 2, 2]), ())
    """  # noqa: E501
    series, which, counts = np.unique(series_of_pair, return_inverse=True, return_counts=True)
    num_series = len(series)
    if num_series < FEWEST_SERIES or not whole:
        # Rounding errors carry over to the next series, so that the totals are right.
        ends = np.concatenate([[0], np.cumsum(counts)])
        shares = [np.diff([round(float(end * fraction)) for end in ends]) for fraction in fractions]
        first = np.minimum(shares[0], counts)
        second = np.minimum(shares[1], counts - first)
        sizes = np.stack([first, second, counts - first - second], axis=1)  # (series, part)
        note = f"split in time order within each of {num_series} series"
        return np.repeat(np.tile([0, 1, 2], num_series), sizes.flatten()), (note,) if num_series > 1 else ()
    validation = min(max(1, round(num_series * fractions[1])), num_series - 2)
    test = min(max(1, num_series - round(num_series * fractions[0]) - validation), num_series - validation - 1)
    train = num_series - validation - test
    part_of_series = np.repeat([0, 1, 2], [train, validation, test])
    if generator is not None:
        order = torch.randperm(num_series, generator=generator).numpy()
        part_of_series = part_of_series[np.argsort(order)]
    note = f"split by whole series: {train} for training, {validation} for validation, {test} for the test"
    return part_of_series[which], (note,)

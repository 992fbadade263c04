"""The columns of a table: roles, times, names and patterns, words for numbers, and what is left out."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from glob import escape
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float, Int

from tacit.data.conditions import Condition, require_names
from tacit.data.files import Table
from tacit.data.series import Levels, Series
from tacit.errors import did_you_mean, require

Layout = Literal["auto", "wide", "long"]
TimeName = str | Literal[False] | None
Duplicates = Literal["first", "last", "mean"]
TimeColumn = tuple[str | None, tuple[str, ...], dict[str, Any]]  # name, notes, and the options that select it

NODE_NAMES = ("node", "node_id", "station", "station_id", "sensor", "sensor_id", "site", "location", "series")
TIME_NAMES = ("time", "times", "date", "datetime", "timestamp")
UNIT_NAMES = (
    "second", "minute", "hour", "day", "week", "month", "quarter", "year", "step", "tick", "round", "wave", "visit",
    "timepoint", "time_point", "t",
)  # fmt: skip
INDEX_NAMES = ("id", "index", "idx", "row", "row_id", "rowid", "row_nr", "row_number", "rownumber", "nr")
ROWS = "no column of times was found: each row counts as one step; set time to the column of times if there is one"


INDEX = "index of rows"
MOSTLY = 0.9  # share of empty cells from which on a note has their number
WORDS = ({"yes": 1.0, "no": 0.0}, {"true": 1.0, "false": 0.0})
PICKED = (lambda node, _: node, lambda node, variable: f"{node}:{variable}", lambda _, variable: variable)


def is_unnamed(column: str) -> bool:
    """Return whether a column has no name, or the name that pandas writes instead.

    >>> [is_unnamed(name) for name in ("", "Unnamed: 0", "unnamed river")]
    [True, True, False]
    """
    return re.fullmatch(r"(unnamed: ?\d+)?", column.strip(), re.IGNORECASE) is not None


def find_time(
    table: Table, time: str | Literal[False] | None, columns: Sequence[str], *, long: bool = False
) -> TimeColumn:
    """Return the column of times among ``columns``: the named one, one with such a name, dates, an index, the first.

    The first column is used if it increases evenly or has integers, unless it is called id or the like. A wide table
    without a time column has one step per row (None); ``time=False`` selects this.
    """

    def used(column: str) -> TimeColumn:
        note = f"column '{column}' was used as the times; set time to use another column"
        return column, (note,), {"time": column}

    if time is not None and (time or not long):
        return time or None, (), {}
    for column in columns:
        if column.lower() in TIME_NAMES:
            return column, (), {}
    dates = [column for column in columns if table.is_dates(column)]
    if len(dates) > 1:
        shown = ", ".join(f"'{column}'" for column in dates)
        raise table.refuse(f"one column must contain the times, got dates in {shown}; set time to one of them")
    if dates:
        return (dates[0], (), {}) if is_unnamed(dates[0]) else used(dates[0])
    for column in columns:
        if is_unnamed(column) and table.is_numeric(column):
            return column, (), {}
    if not columns:
        raise table.refuse("the table must have a column of times, got none; add one, and set time to its name")
    first = columns[0]
    if table.is_numeric(first) and first.lower() not in INDEX_NAMES:
        steps = np.diff(table.numbers(first, largest=np.inf))
        if len(steps) and (steps > 0).all() and ((steps == steps[0]).all() or table.is_whole(first)):
            return used(first)
    if long and (unit := unit_time(table, columns)) is not None:
        return used(unit)
    if long:
        raise table.refuse(
            "a column must be called time, date or similar, or contain dates, got none; set time to the column of times"
        )
    return None, (ROWS,), {"time": False}


def unit_time(table: Table, columns: Sequence[str]) -> str | None:
    """Return the only column of numbers that is called day, hour, step or the like, or None.

    A wide table may have such a column beside its nodes, so that it is only used where times are expected.
    """
    found = [column for column in columns if column.lower() in UNIT_NAMES and table.is_numeric(column)]
    return found[0] if len(found) == 1 else None


def matching(name: str, columns: Sequence[str], sep: str | None = None) -> list[str]:
    """Return the columns that match a name or a shell pattern, [] if there are none.

    With a separator, a name can be a column, a node, ``node:variable`` or a variable. Patterns ignore case.

    >>> columns = ["north_pm", "north_rain", "south_pm", "south_rain"]
    >>> matching("north", columns, "_"), matching("south:pm", columns, "_"), matching("rain", columns, "_")
    (['north_pm', 'north_rain'], ['south_pm'], ['north_rain', 'south_rain'])
    >>> matching("*_PM", columns)
    ['north_pm', 'south_pm']
    """
    levels = [{column: column for column in columns}]
    if sep is not None:
        parts = {column: column.split(sep) for column in columns if column.count(sep) == 1}
        levels += [{column: pick(*part) for column, part in parts.items()} for pick in PICKED]
    found = [[column for column, word in known.items() if word == name] for known in levels]
    if is_pattern(name):
        found += [
            [column for column, word in known.items() if fnmatchcase(word.lower(), name.lower())] for known in levels
        ]
    return next(filter(None, found), [])


def is_pattern(name: str) -> bool:
    """Return whether a name has shell wildcards."""
    return any(letter in name for letter in "*?[")


def chosen(
    table: Table, names: Sequence[str] | None, columns: Sequence[str], sep: str | None, *, piece: bool
) -> list[str]:
    """Return the named ``columns`` in the order of the table; all of them without names.

    A ``piece`` may lack some: nodes of other series, or nodes whose absence is reported later.
    """
    if names is None:
        return list(columns)
    require(
        len(names) > 0, f"{table.path}: columns must name at least one column, got none; name some, or leave it out"
    )
    found: set[str] = set()
    for name in names:
        fitting = matching(name, columns, sep)
        if not fitting and name in table.columns:
            raise table.refuse(
                f"columns names '{name}', which has another meaning (time, node, series, covariate); leave it out"
            )
        if not fitting and not piece:
            raise table.refuse(not_there("columns", name, columns))
        found |= set(fitting)
    return [column for column in columns if column in found]


def not_there(argument: str, name: str, columns: Sequence[str]) -> str:
    """Return the message for a name or pattern that matches no column."""
    if is_pattern(name):
        return f"{argument} has the pattern '{name}', which matches no column{did_you_mean(name, columns)}"
    return f"{argument} names the column '{name}', which does not exist{did_you_mean(name, columns)}"


def merged(
    values: Float[np.ndarray, "row *cell"], key: Int[np.ndarray, " row"], how: Duplicates
) -> tuple[Float[np.ndarray, "kept *cell"], Int[np.ndarray, " kept"]]:
    """Return one row for each key, in the order of the keys, and the row of the table from which its other cells come.

    A mean is over the values that are not missing; the other cells then come from the first row.

    >>> values = np.array([1.0, 5.0, np.nan, 7.0])
    >>> merged(values, np.array([0, 1, 1, 2]), "mean"), merged(values, np.array([0, 1, 1, 2]), "last")[0]
    ((array([1., 5., 7.]), array([0, 1, 3])), array([ 1., nan,  7.]))
    """
    import pandas as pd

    rows = pd.Series(np.arange(len(key))).groupby(key)
    kept = (rows.last() if how == "last" else rows.first()).to_numpy()
    if how != "mean":
        return values[kept], kept
    means = pd.DataFrame(values.reshape(len(values), -1)).groupby(key).mean().to_numpy()
    return means.reshape(len(kept), *values.shape[1:]), kept


def merged_note(rows: int, kept: int, how: Duplicates, what: str) -> tuple[str, ...]:
    """Return a note on rows that were merged, if there are some."""
    used = {"first": "the first row is used", "last": "the last row is used", "mean": "their mean is used"}[how]
    repeat = "row repeats" if rows - kept == 1 else "rows repeat"
    return (f"{rows - kept:,} {repeat} {what}: {used} (duplicates = {how})",) if kept < rows else ()


@dataclass(frozen=True)
class Columns:
    """The roles of the columns of a table, for files and DataFrames."""

    layout: Layout = "auto"
    time: TimeName = None
    node: str | None = None
    value: str | Sequence[str] | None = None
    covariates: Sequence[str] = ()
    sep: str | None = None
    series: str | None = None
    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()
    dayfirst: bool | None = None
    also_asked: Sequence[str] = ()
    where: str | None = None
    calendar: Sequence[str] = ()
    levels: Levels = field(default_factory=dict)
    labels: Sequence[str] = ()  # columns that the condition names
    duplicates: Duplicates | None = None  # rows with the same time; None: refused

    def __post_init__(self) -> None:
        for name, value, choices in (
            ("layout", self.layout, get_args(Layout)),
            ("duplicates", self.duplicates or "first", get_args(Duplicates)),
        ):
            require(value in choices, f"{name} must be one of {', '.join(choices)}, got {value!r}; pick one")
        for name in ("covariates", "columns", "drop"):
            names = getattr(self, name)
            require(not isinstance(names, str), f"{name} must be a list of column names, got {names!r}; put it in [ ]")

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Columns":
        """Return the roles of keyword arguments; ``asked`` are names to keep, and ``levels`` may be None."""
        renamed = {"also_asked": options.get("asked", ()), "levels": options.get("levels") or {}}
        return cls(**{name: value for name, value in options.items() if name != "asked"} | renamed)

    @property
    def values(self) -> list[str]:
        """The columns of values that ``value`` names, for a long table."""
        return [] if self.value is None else [self.value] if isinstance(self.value, str) else list(self.value)

    @property
    def asked(self) -> frozenset[str]:
        """Names of columns, nodes and variables that must be kept because the user named them."""
        names = (name for name in self.columns or () if not is_pattern(name))
        return frozenset((*names, *self.values, *self.also_asked))

    @property
    def named(self) -> dict[str, list[str]]:
        """The columns that have a role, by the name of the option."""
        one = {"time": self.time or None, "node": self.node, "series": self.series}
        roles = {role: [] if name is None else [name] for role, name in one.items()}
        return {**roles, "value": self.values, "covariates": [*self.covariates]}

    def uses(self, column: str, others: Sequence[str | None] = ()) -> bool:
        """Return whether a column is named by an option or a condition, or is one of ``others``."""
        named = [name for names in self.named.values() for name in names]
        return column in (*named, *(self.columns or ()), *self.labels, *others)

    def require_there(self, table: Table) -> None:
        """Refuse columns that do not exist or that have two roles."""
        for argument, names in self.named.items():
            for name in names:
                table.require_column(argument, name)
            require(
                argument == "series" or self.series not in names,
                f"{table.path}: series must name its own column, got '{self.series}', which is also {argument}; "
                "name another",
            )

    def with_labels(self, table: Table) -> "tuple[Columns, Condition | None]":
        """Return the roles with the columns that the condition names, and the condition."""
        if self.where is None:
            return self, None
        condition = Condition.read(self.where)
        return replace(self, labels=require_names(condition, table.columns, str(table.path))), condition

    def without_dropped(self, table: Table) -> tuple[Table, tuple[str, ...], set[str]]:
        """Return the table without the dropped columns, the names that are not columns, and the dropped columns.

        Labels of a condition are kept. A name that is not a column may be a node of a long table.
        """
        fitting = {name: matching(name, table.columns, self.sep) for name in self.drop}
        dropped = {column for columns in fitting.values() for column in columns}
        for argument, names in {**self.named, "columns": self.columns or ()}.items():
            for name in names:
                if name in dropped or name in self.drop:
                    raise table.refuse(f"drop names '{name}', which {argument} names too; keep one of them")
        left = [column for column in table.columns if column not in dropped]
        if not left:
            raise table.refuse("drop must leave columns to read, got the names of all; leave some out of drop")
        times = [column for column in table.columns if column.lower() in TIME_NAMES]
        if self.time is None and times and not set(times) & set(left):
            raise table.refuse(
                f"drop names '{times[0]}', the column of times; keep it, set time to another column, or set time to "
                "false to count rows"
            )
        return (
            table.without(dropped - {*self.labels}),
            tuple(name for name, columns in fitting.items() if not columns),
            dropped,
        )


def leave_out(
    series: Series, columns: Mapping[str, str], asked: Collection[str] = (), *, piece: bool = False
) -> Series:
    """Return a series without nodes and variables that are empty or constant, with a note.

    ``columns``  columns that were left out of the table before, by name, with the reason
    ``asked``    names given by the user; they are kept, and :class:`Series` refuses them
    ``piece``    a few new rows, in which nodes may be constant: they are kept

    A variable is left out if it is constant at every node, and a node if all its variables are constant. The same names
    are left out of new data; they are ``drop`` in ``Series.settled``.

    >>> values = np.stack([np.arange(3.0), np.ones(3), np.arange(3.0) ** 2], axis=1)[:, :, None]
    >>> series = leave_out(Series(values, ("a", "id", "b"), piece=True), {"city": "text"})
    >>> series.nodes, series.notes, series.settled["drop"]
    (('a', 'b'), ("left out: 'city' (text), 'id' (constant)",), ('city', 'id'))
    """
    reasons = dict(columns)
    if not piece:
        still = series.still
        variables = still.all(axis=0) & ~np.isin(series.channels, [*asked])
        variables &= not variables.all()
        nodes = still[:, ~variables].all(axis=1) & ~np.isin(series.nodes, [*asked])
        for names, out, axis in ((series.channels, variables, 2), (series.nodes, nodes, 1)):
            for place in np.flatnonzero(out):
                values = np.take(series.values, place, axis)
                there = values[~np.isnan(values)]
                moves = len(there) > 0 and series.lengths and there.min() < there.max()
                constant = "constant within every series" if moves else "constant"
                missing = values.size - len(there)
                if missing >= MOSTLY * values.size:
                    constant = f"{missing:,} of {values.size:,} cells are empty, {constant} in the others"
                reasons[names[place]] = constant if len(there) else "empty"
        left = series.num_nodes - int(nodes.sum())
        require(
            left > 1 or not reasons or set(reasons.values()) == {INDEX},
            f"two nodes or more must remain, got {left or 'none'}; {words(reasons)}",
        )
        if nodes.any() or variables.any():
            series = replace(
                series,
                values=series.values[:, ~nodes][:, :, ~variables],
                nodes=tuple(np.array(series.nodes, dtype=object)[~nodes]),
                channels=tuple(np.array(series.channels, dtype=object)[~variables]),
                coordinates=None if series.coordinates is None else series.coordinates[~nodes],
                piece=True,
            )
    if reasons:
        again = (escape(name) for name, reason in reasons.items() if reason != INDEX)
        drop = tuple(dict.fromkeys((*series.settled.get("drop", ()), *again)))
        settled = {**series.settled, "drop": drop} if drop else series.settled
        series = replace(series, notes=(*series.notes, words(reasons)), settled=settled)
    return series if piece else replace(series, piece=False)


def words(reasons: Mapping[str, str]) -> str:
    """Return the note that names what was left out, and why."""
    named = {f"'{name}'" if name else "the column without a name": reason for name, reason in reasons.items()}
    return "left out: " + ", ".join(f"{name} ({reason})" for name, reason in named.items())


def with_yes_no(table: Table, columns: Sequence[str]) -> Table:
    """Return the table with 1 and 0 in the columns that contain only two such words and empty cells.

    The notes of the table list the changed columns.

    >>> import pandas as pd
    >>> from tacit.data.files import Table
    >>> frame = pd.DataFrame([["yes", "1.5"], ["No", "2"], [None, "3"]], dtype="str")
    >>> table = with_yes_no(Table("alarms.csv", ("alarm", "level"), frame), ["alarm", "level"])
    >>> table.numbers("alarm").tolist(), table.notes
    ([1.0, 0.0, nan], ("yes and no were read as 1 and 0: 'alarm'",))
    """
    import pandas as pd

    frame, notes, firsts = table.frame, [], {}
    for column in columns:
        cells = table.cells(column)
        known = cells.notna().to_numpy()
        if known.any():
            firsts[column] = str(cells.iloc[known.argmax()]).strip().lower()
    for words in WORDS:
        changed = []
        for column, first in firsts.items():
            if first not in words:  # most columns are numbers, and end here
                continue
            cells = table.cells(column)
            said = cells.astype("str").where(cells.notna()).str.strip().str.lower()
            if (said.isin(words) | cells.isna()).all():
                place = table.columns.index(column)
                frame = frame.copy(deep=False) if frame is table.frame else frame
                frame[place] = pd.to_numeric(said.map(words).astype("float64"))
                changed.append(f"'{column}'")
        if changed:
            notes.append(f"{' and '.join(words)} were read as 1 and 0: {', '.join(changed)}")
    return replace(table, frame=frame, notes=(*table.notes, *notes)) if notes else table

"""Tables of a user, wide or long, as a series on nodes.

Wide: a column of times and one column per node (or per node and variable, ``station:variable``). Long: columns of
times, of node names and of one or several values. Either may contain several series, distinguished by a column of
names; in a wide table it is enough that time starts again. Files are read and never written.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from jaxtyping import Int

from tacit.data.calendar_features import with_calendar
from tacit.data.cells import Table, open_table
from tacit.data.conditions import Condition
from tacit.data.grid import Grid
from tacit.data.levels import Levels
from tacit.data.row_groups import RowGroups, require_other
from tacit.data.seasons import require_names
from tacit.data.series import Series, Times, Values
from tacit.data.shared_columns import SharedColumns
from tacit.errors import InputError, require

Layout = Literal["auto", "wide", "long"]
TIME_NAMES = ("time", "times", "date", "datetime", "timestamp", "")
NODE_NAMES = ("node", "node_id", "station", "station_id", "sensor", "sensor_id", "site", "location", "series")
SELECTED = "where selects rows by column '{name}', which is also a node; list it in covariates if it is not one"


def read_series(
    path: str | Path,
    *,
    layout: Layout = "auto",
    time: str | None = None,
    node: str | None = None,
    value: str | Sequence[str] | None = None,
    covariates: Sequence[str] = (),
    sep: str | None = None,
    series: str | None = None,
    where: str | None = None,
    calendar: Sequence[str] = (),
    levels: Levels | None = None,
    piece: bool = False,
) -> Series:
    """Read a table (.csv, .tsv, both also as .gz, .txt, .parquet) as a series, or as several over the same nodes.

    ``time``, ``node``, ``value`` and ``covariates`` name columns; those left out are found by their names: the time
    column is called time, date or the like (or comes first and holds times), and a table with a column called node,
    station, sensor or the like is long, with every other column a value. ``sep`` parts the node from the variable in
    the column names of a wide table. Times must ascend; steps left out of an even grid are put in as missing rows, and
    ``Series.notes`` says so. Pass ``piece=True`` for a few new rows, in which a node may be constant or missing.

    ``series`` names the column that tells several series apart. In a wide table without one, a time that starts again
    begins a new series, and ``Series.notes`` says so; see :func:`tacit.data.row_groups.restarts`.

    ``where`` is a condition on the rows whose targets count (:mod:`tacit.data.conditions`). ``calendar`` adds sines and
    cosines of the date to the covariates (:func:`calendar_features`). A covariate that is a column of words becomes
    indicators of its ``levels``, those of the table unless given.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "levels.csv"
    ...     _ = file.write_text("time,upstream,downstream\\n0,1.5,3\\n1,2.5,\\n3,0.5,4\\n")
    ...     levels = read_series(file)
    >>> levels.nodes, levels.times.tolist(), levels.values[:, 1, 0].tolist()
    (('upstream', 'downstream'), [0, 1, 2, 3], [3.0, nan, nan, 4.0])
    """
    columns = Columns(layout, time, node, value, covariates, sep, series, where, calendar, levels or {})
    return columns.series_of(open_table(path), piece=piece)


@dataclass(frozen=True)
class Columns:
    """The roles of the columns of a table, for files and DataFrames."""

    layout: Layout = "auto"
    time: str | None = None
    node: str | None = None
    value: str | Sequence[str] | None = None
    covariates: Sequence[str] = ()
    sep: str | None = None
    series: str | None = None
    where: str | None = None
    calendar: Sequence[str] = ()
    levels: Levels = field(default_factory=dict)

    def __post_init__(self) -> None:
        require(
            self.layout in get_args(Layout),
            f"layout must be one of {', '.join(get_args(Layout))}, got {self.layout!r}; pick one",
        )
        require(
            not isinstance(self.covariates, str),
            f"covariates must be a list of column names, got {self.covariates!r}; put it in [ ]",
        )

    def series_of(self, table: Table, *, piece: bool) -> Series:
        """Return the series of a table."""
        condition = None if self.where is None else Condition.read(self.where)
        node, covariates, sep, series = self.node, self.covariates, self.sep, self.series
        values = None if self.value is None else ([self.value] if isinstance(self.value, str) else list(self.value))
        named: dict[str, list[str | None]] = {
            "time": [self.time],
            "node": [node],
            "value": [*(values or [])],
            "covariates": [*covariates],
        }
        for argument, names in {**named, "series": [series]}.items():
            for name in names:
                if name is not None:
                    table.require_column(argument, name)
        require_other(table, series, named)
        time, notes = _time_column(table, self.time, [column for column in table.columns if column != series])
        labels = () if condition is None else require_names(condition, table.columns, (time, series), str(table.path))
        named_nodes = {node, *(column for column in table.columns if column.lower() in NODE_NAMES)}
        words = [name for name in labels if name not in named_nodes and not table.is_numeric(name)]  # no nodes
        others = [column for column in table.columns if column not in (time, series, *covariates, *words)]
        known = SharedColumns.of(table, covariates, labels, self.levels)
        called = [column for column in others if column.lower() in NODE_NAMES]
        if self.layout == "long" or (self.layout == "auto" and (node or values or called)):
            require(sep is None, f"{table.path}: sep is for wide tables, got {sep!r} for a long one; leave it out")
            found = _long(table, time, node or _node_column(table, others, called), values or others, known, series)
        else:
            require(
                node is None and values is None,
                f"{table.path}: node and value are for long tables, but layout is 'wide'; leave them out, or use "
                "'long'",
            )
            found = _wide(table, time, others, known, sep, series)
        try:
            condition = condition and condition.renamed({time: "time", series or "series": "series"})
            notes += tuple(SELECTED.format(name=name) for name in labels if name in others)
            return with_calendar(replace(found, notes=notes + found.notes, piece=piece, where=condition), self.calendar)
        except InputError as error:
            raise table.refuse(str(error)) from None


def _time_column(table: Table, time: str | None, columns: list[str]) -> tuple[str, tuple[str, ...]]:
    """Return the column of times: the one named, one called so, or the first when it holds times."""
    if time is not None:
        return time, ()
    called = [column for column in columns if column.lower() in TIME_NAMES]
    if called:
        return called[0], ()
    if not columns:
        raise table.refuse("the table must have a column of times, got none; add one, and set time to its name")
    first = columns[0]
    steps = np.diff(table.numbers(first, largest=np.inf)) if table.is_numeric(first) else np.ones(1)
    if len(steps) and (steps > 0).all() and (steps == steps[0]).all():
        return first, (f"column '{first}' was used as the times; set time to use another column",)
    raise table.refuse(
        f"no column is called time, date or the like, and the first, '{first}', does not increase in even steps; "
        "set time to the column of times"
    )


def _node_column(table: Table, others: list[str], named: list[str]) -> str:
    """Return the column of node names: one called so, or the only one that holds no numbers."""
    words = named or [column for column in others if not table.is_numeric(column)]
    if len(words) != 1:
        found = f"got {', '.join(words)}" if words else "got none"
        raise table.refuse(f"a long table must have one column of node names, {found}; set node to its name")
    return words[0]


def _wide(
    table: Table, time: str, columns: list[str], known: SharedColumns, sep: str | None, series: str | None
) -> Series:
    if not columns:
        raise table.refuse(f"a wide table must have a column per node besides '{time}', got none")
    times, notes = table.times(time)
    groups = RowGroups.recognised(table, time, times) if series is None else RowGroups.named(table, series)
    groups.require_ascending(table, time, times)
    nodes, channels = _nodes_and_variables(table, columns, sep)
    remedy = "correct it, leave the column out, set series to it, or use layout='long'"
    place = {column: number for number, column in enumerate(columns)}
    order = [place[node if sep is None else node + sep + channel] for node in nodes for channel in channels]
    values = table.many_numbers(columns, remedy)[:, order].reshape(len(times), len(nodes), len(channels))
    rows = np.argsort(groups.series_of_row, kind="stable")
    made = _Steps(values[rows], nodes, channels, times[rows], groups.series_of_row[rows], groups.names)
    return made.on_grid(table, notes + groups.notes, known.rows(rows))


def _nodes_and_variables(table: Table, columns: list[str], sep: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Take the column names apart; every node needs every variable."""
    if sep is None:
        return tuple(columns), ("value",)
    for column in columns:
        if column.count(sep) != 1 or not all(column.split(sep)):
            raise table.refuse(
                f"column '{column}' must have the form node{sep}variable; rename it, or leave the separator out"
            )
    parts = [column.split(sep) for column in columns]
    nodes, channels = (tuple(dict.fromkeys(part)) for part in zip(*parts, strict=True))
    there = {(node, channel) for node, channel in parts}
    for node in nodes:
        for channel in channels:
            if (node, channel) not in there:
                raise table.refuse(
                    f"node '{node}' has no column '{node}{sep}{channel}'; every node must have every variable: "
                    "add it (empty cells are missing values)"
                )
    return nodes, channels


def _long(table: Table, time: str, node: str, values: list[str], known: SharedColumns, series: str | None) -> Series:
    import pandas as pd

    values = [column for column in values if column != node]
    if not values:
        raise table.refuse(
            f"a long table must have a column of values besides '{time}' and '{node}'; set value to its name"
        )
    times, notes = table.times(time)
    groups = RowGroups.named(table, series)
    place_of_row, nodes = pd.factorize(np.array(table.names(node), dtype=object))  # nodes in the order of the file
    groups.require_ascending(table, time, times, place_of_row, tuple(nodes))
    moments, moment_of_row = np.unique(times, return_inverse=True)
    steps, step_of_row = np.unique(groups.series_of_row * len(moments) + moment_of_row, return_inverse=True)
    step_times = moments[steps % len(moments)]
    remedy = "correct it, or list the columns to use in value"
    cells = np.full((len(steps), len(nodes), len(values)), np.nan)
    cells[step_of_row, place_of_row] = np.stack([table.numbers(column, remedy) for column in values], axis=-1)
    made = _Steps(cells, tuple(nodes), tuple(values), step_times, steps // len(moments), groups.names)
    return made.on_grid(table, notes, known.per_step(table, step_times, step_of_row))


@dataclass(frozen=True)
class _Steps:
    """The steps of all series, one series after another, as they are in the table."""

    values: Values
    nodes: tuple[str, ...]
    channels: tuple[str, ...]
    times: Times
    series: Int[np.ndarray, " time"]
    names: tuple[str, ...]

    def on_grid(self, table: Table, notes: tuple[str, ...], known: SharedColumns) -> Series:
        """Put steps on an even grid of times; steps put in are missing, their covariates those of the step before."""
        lengths, what = tuple(np.bincount(self.series).tolist()), f"{table.path}: times"
        several = bool(self.names)
        grid = Grid.around_each(self.times, lengths, self.names, what) if several else Grid.around(self.times, what)
        even = np.full((len(grid.times), *self.values.shape[1:]), np.nan)
        even[grid.places] = self.values
        notes += grid.notes
        if known.covariates and len(grid.times) > len(self.times):
            notes += ("covariates of the added steps are copied from the previous row",)
        known = known.on_grid(grid.places, len(grid.times))
        labels = dict(known.labels)
        if several:
            labels["series"] = np.repeat(np.array(self.names, dtype=object), grid.lengths)
        return Series(
            even,
            self.nodes,
            self.channels,
            grid.times,
            known.numbers,
            known.names,
            notes=notes,
            piece=True,
            lengths=grid.lengths,
            series_names=self.names,
            labels=labels,
            levels=known.levels,
        )

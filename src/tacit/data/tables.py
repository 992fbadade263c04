"""Series from wide and long tables, with the columns that all nodes share, and coordinates of nodes.

A wide table has a column of times and one column per node (or per node and variable, ``station:variable``). A long
table has columns of times, of node names and of one or several values. Both may contain several series, distinguished
by a column of names; in a wide table it is enough that time starts again. Files are never changed.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped

from tacit.data.background import with_calendar
from tacit.data.columns import (
    INDEX,
    NODE_NAMES,
    Columns,
    chosen,
    find_time,
    is_unnamed,
    leave_out,
    matching,
    merged,
    merged_note,
    not_there,
    with_yes_no,
)
from tacit.data.conditions import missing
from tacit.data.events import require_not_events
from tacit.data.files import Table, open_table
from tacit.data.recognition import RowGroups, RowNumbers, called_nodes, identifiers, recognise, require_not_long
from tacit.data.series import Levels, Series, Times, Values, coded, indicators, level_names
from tacit.data.times import Grid
from tacit.errors import InputError, require

Column = Shaped[np.ndarray, " row"]
FOLDERS = "name of a folder"
SELECTED = (
    "where selects rows by column '{name}', which is also a node: its forecasts are valid for the selected rows only; "
    "if it is not a node, drop it or list it in covariates"
)


@dataclass(frozen=True)
class SharedColumns:
    """One value per row: ``covariates`` are numbers, or the levels of words; ``labels`` may be missing."""

    covariates: Mapping[str, Column] = field(default_factory=dict)
    levels: Levels = field(default_factory=dict)
    labels: Mapping[str, Column] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table, covariates: Sequence[str], labels: Sequence[str], given: Levels) -> "SharedColumns":
        """Read the columns; ``given`` are the levels of earlier data."""
        columns, levels = dict[str, Column](), dict[str, tuple[str, ...]]()
        for name in given:
            if name not in covariates:
                raise table.refuse(f"levels must be of covariates, got '{name}'; add it to covariates, or leave it out")
        for name in covariates:
            if name in given or table.is_text(name):
                which, words = table.distinct_names(name)
                try:
                    columns[name], levels[name] = coded(name, which, words, given.get(name))
                except InputError as error:
                    raise table.refuse(str(error)) from None
                continue
            columns[name] = table.numbers(name)
            empty = np.flatnonzero(np.isnan(columns[name]))
            rows = ", ".join(str(row + 1) for row in empty[:3])
            rows += f" and {len(empty) - 3} others" if len(empty) > 3 else ""
            if len(empty):
                raise table.refuse(
                    f"covariate '{name}' must have a number in every row, got none in row{'s' * (len(empty) > 1)} "
                    f"{rows}; fill it in"
                )
        # Labels are numbers with NaN, or words with None, for empty cells.
        found = dict[str, Column]()
        for name in labels:
            if table.is_numeric(name):
                found[name] = table.numbers(name)
                continue
            cells: Any = table.cells(name)
            found[name] = cells.astype("str").str.strip().to_numpy(dtype=object)
            found[name][cells.isna().to_numpy(dtype=bool)] = None
        return cls(columns, levels, found)

    def rows(self, places: RowNumbers) -> "SharedColumns":
        """Return some of the rows."""
        covariates, labels = ({name: column[places] for name, column in one.items()} for one in self._both)
        return replace(self, covariates=covariates, labels=labels)

    def per_step(self, table: Table, steps: Times, step_of_row: RowNumbers) -> "SharedColumns":
        """Return the columns of a long table by step; each must have one value per time, the same for all nodes."""
        first = np.zeros(len(steps), dtype=np.int64)
        first[step_of_row] = np.arange(len(step_of_row))  # a row of each step
        for kind, columns in zip(("covariate", "where: column"), self._both, strict=True):
            for name, column in columns.items():
                same = (column[first[step_of_row]] == column) | (missing(column) & missing(column[first[step_of_row]]))
                for row in np.flatnonzero(~same)[:1]:
                    word = "value" if name in self.levels or kind != "covariate" else "number"
                    remedy = "list it in value, as a variable of each node" if kind == "covariate" else "name another"
                    raise table.refuse(
                        f"{kind} '{name}' must have one {word} per time, got several at {steps[step_of_row[row]]} "
                        f"(one in row {row + 1}); {remedy}"
                    )
        return self.rows(first)

    def on_grid(self, places: RowNumbers, length: int) -> "SharedColumns":
        """Return the columns on a grid: covariates of added steps are copied from the previous row, labels missing."""
        before = np.searchsorted(places, np.arange(length), side="right") - 1
        labels = {}
        for name, column in self.labels.items():
            labels[name] = np.full(length, None if column.dtype == object else np.nan, dtype=column.dtype)
            labels[name][places] = column
        return replace(self, covariates={name: one[before] for name, one in self.covariates.items()}, labels=labels)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numeric columns of the covariates; indicators of levels come last."""
        indicated = [column for name, levels in self.levels.items() for column in level_names(name, levels)]
        return (*(name for name in self.covariates if name not in self.levels), *indicated)

    @property
    def numbers(self) -> Float[np.ndarray, "row covariate"] | None:
        """The covariates as numbers, words as indicators; None if there are none."""
        plain = [column[:, None] for name, column in self.covariates.items() if name not in self.levels]
        indicated = [indicators(self.covariates[name], len(levels)) for name, levels in self.levels.items()]
        return np.concatenate(plain + indicated, axis=1) if self.names else None

    @property
    def _both(self) -> tuple[Mapping[str, Column], Mapping[str, Column]]:
        return self.covariates, self.labels


def read_wide(
    table: Table, roles: Columns, time: str | None, others: list[str], left: dict[str, str], *, piece: bool
) -> Series:
    """Return the series of a table with a column per node; text columns are added to ``left``."""
    import pandas as pd

    columns, sep = chosen(table, roles.columns, others, roles.sep, piece=piece), roles.sep
    beside = f" besides '{time}'" if time else ""
    if not columns:
        raise table.refuse(f"a wide table must have a column per node{beside}, got none")
    groups = RowGroups.named(table, roles.series)
    if time is None:  # the rows of each series are counted
        times = pd.Series(groups.series_of_row).groupby(groups.series_of_row).cumcount().to_numpy()
        dayfirst, notes = None, tuple[str, ...]()
    else:
        times, dayfirst, notes = table.times(time, roles.dayfirst)
        if roles.series is None and roles.layout == "auto":
            require_not_long(table, roles, time, times, others)
        if roles.series is None:
            groups = RowGroups.recognised(table, time, times)
        groups.require_ascending(table, time, times, may_repeat=roles.duplicates is not None)
    numbers = table.numbers_at_once(columns)
    columns = columns if numbers is not None else _numeric(table, columns, left, roles.asked, sep)
    if not columns:
        raise table.refuse(f"a wide table must have a column of numbers per node{beside}, got only text")
    parts = [(column, "value") if sep is None else tuple(column.split(sep)) for column in columns]
    for column, part in zip(columns, parts, strict=True):
        if sep is not None and (len(part) != 2 or not all(part)):
            raise table.refuse(
                f"column '{column}' must have the form node{sep}variable; rename it, or leave the separator out"
            )
    nodes, channels, order = nodes_and_channels(
        table, parts, lambda node, variable: f"'{node}{sep}{variable}'; every node must have every variable"
    )
    if numbers is None:
        numbers = table.many_numbers(columns)
    numbers = numbers if order == sorted(order) else numbers[:, order]
    values = numbers.reshape(len(table.frame), len(nodes), len(channels))
    known = SharedColumns.of(table, roles.covariates, roles.labels, roles.levels)
    rows = np.argsort(groups.series_of_row, kind="stable")
    values = values[rows] if (np.diff(rows) != 1).any() else values  # no copy if the rows are in order
    times, series, notes = times[rows], groups.series_of_row[rows], notes + groups.notes
    if roles.duplicates is not None:
        moments, moment = np.unique(times, return_inverse=True)
        values, kept = merged(values, series * len(moments) + moment, roles.duplicates)
        notes += merged_note(len(rows), len(kept), roles.duplicates, "a time")
        rows, times, series = rows[kept], times[kept], series[kept]
    return _on_grid(table, values, nodes, channels, times, series, groups, known.rows(rows), notes, dayfirst)


def read_long(
    table: Table,
    roles: Columns,
    time: str,
    others: list[str],
    called: list[str],
    left: dict[str, str],
    drop: Sequence[str],
    *,
    piece: bool,
) -> Series:
    """Return the series of a table with a row per time and node, without the nodes that ``drop`` names."""
    import pandas as pd

    words = called or [column for column in others if roles.node is None and not table.is_numeric(column)]
    if roles.node is None and len(words) != 1:  # a column with the name of nodes, or the only one without numbers
        found = f"got {', '.join(words)}" if words else "got none"
        raise table.refuse(f"a long table must have one column of node names, {found}; set node to its name")
    node = roles.node or words[0]
    require(
        not roles.values or roles.columns is None,
        f"{table.path}: the columns of values must be named by columns or value, got both; keep one of them",
    )
    free = [column for column in others if column != node]
    values = roles.values or _numeric(
        table, chosen(table, roles.columns, free, None, piece=piece), left, roles.asked, None
    )
    if not values:
        raise table.refuse(
            f"a long table must have a column of values besides '{time}' and '{node}'; set value to its name"
        )
    table, unused = _without_nodes(table, node, drop, piece=piece)
    times, dayfirst, notes = table.times(time, roles.dayfirst)
    groups = RowGroups.named(table, roles.series)
    place_of_row, nodes = pd.factorize(np.array(table.names(node), dtype=object))  # nodes in the order of the file
    groups.require_ascending(table, time, times, place_of_row, tuple(nodes), may_repeat=roles.duplicates is not None)
    moments, moment_of_row = np.unique(times, return_inverse=True)
    steps, step_of_row = np.unique(groups.series_of_row * len(moments) + moment_of_row, return_inverse=True)
    step_times = moments[steps % len(moments)]
    remedy = "correct it, or list the columns to use in value"
    numbers = np.full((len(steps), len(nodes), len(values)), np.nan)
    cell_values, kept = table.many_numbers(values, remedy), np.arange(len(times))
    if roles.duplicates is not None:
        cell_values, kept = merged(cell_values, step_of_row * len(nodes) + place_of_row, roles.duplicates)
        notes += merged_note(len(times), len(kept), roles.duplicates, "the time of a node")
    numbers[step_of_row[kept], place_of_row[kept]] = cell_values
    known = SharedColumns.of(table, roles.covariates, roles.labels, roles.levels)
    known, series = known.per_step(table, step_times, step_of_row), steps // len(moments)
    names = tuple(nodes), tuple(values)
    return replace(_on_grid(table, numbers, *names, step_times, series, groups, known, notes, dayfirst), unused=unused)


def _numeric(
    table: Table, columns: list[str], left: dict[str, str], asked: Collection[str], sep: str | None
) -> list[str]:
    """Return the columns of numbers; text columns are added to ``left`` unless the user named them."""
    wanted = {column for name in asked for column in matching(name, columns, sep)}
    text = {
        column: "dates" if table.is_dates(column) else "text"
        for column in table.with_others(columns)
        if column not in wanted and table.is_text(column)
    }
    left.update(text)
    return [column for column in columns if column not in text]


def _without_nodes(table: Table, node: str, drop: Sequence[str], *, piece: bool) -> tuple[Table, tuple[str, ...]]:
    """Return a long table without the rows of some nodes, and the names that match no node."""
    if not drop:
        return table, ()
    which, names = table.distinct_names(node)
    fitting = {name: matching(name, names) for name in drop}
    for name, found in fitting.items():
        if not found and not piece:
            raise table.refuse(not_there("drop", name, (*table.columns, *names)).replace("column", "column or node"))
    dropped = {name for found in fitting.values() for name in found}
    kept = ~np.array([name in dropped for name in names])[which]
    if not kept.any():
        raise table.refuse("drop must leave a node, got the names of all; leave one out")
    unused = tuple(name for name, found in fitting.items() if not found)
    return replace(table, frame=table.frame[kept].reset_index(drop=True)), unused


def nodes_and_channels(
    table: Table, parts: Sequence[tuple[str, ...]], absent: Callable[[str, str], str]
) -> tuple[tuple[str, ...], tuple[str, ...], list[int]]:
    """Return the nodes and channels of columns, and the place of each pair; every node must have every channel."""
    nodes, channels = (tuple(dict.fromkeys(part)) for part in zip(*parts, strict=True))
    place = {part: number for number, part in enumerate(parts)}
    for node, channel in product(nodes, channels):
        if (node, channel) not in place:
            what = absent(node, channel)
            raise table.refuse(f"node '{node}' has no column {what}: add it (empty cells are missing values)")
    return nodes, channels, [place[pair] for pair in product(nodes, channels)]


def _on_grid(
    table: Table,
    values: Values,
    nodes: tuple[str, ...],
    channels: tuple[str, ...],
    times: Times,
    series: Int[np.ndarray, " time"],
    groups: RowGroups,
    known: SharedColumns,
    notes: tuple[str, ...],
    dayfirst: bool | None,
) -> Series:
    """Place the steps of all series on grids; added steps are missing values with the covariates of the step before."""
    lengths = tuple(np.bincount(series).tolist()) if groups.names else ()
    grid = Grid.around(times, lengths, groups.names, f"{table.path}: times")
    notes += grid.notes
    if len(grid.times) > len(values):
        even = np.full((len(grid.times), *values.shape[1:]), np.nan)
        even[grid.places] = values
        values = even
        notes += ("covariates of the added steps are copied from the previous row",) if known.covariates else ()
    known = known.on_grid(grid.places, len(grid.times))
    labels = dict(known.labels)
    if groups.names:
        labels["series"] = np.repeat(np.array(groups.names, dtype=object), grid.lengths)
    return Series(
        values,
        nodes,
        channels,
        grid.times,
        known.numbers,
        known.names,
        notes=notes,
        piece=True,
        lengths=grid.lengths,
        series_names=groups.names,
        counted=groups.counted,
        settled={} if dayfirst is None else {"dayfirst": dayfirst},
        labels=labels,
        levels=known.levels,
    )


def read_series(path: str | Path | Table, *, decimal: str = ".", piece: bool = False, **options: Any) -> Series:
    """Read a table as a series, or as several over the same nodes.

    Files end in .csv, .tsv (both also as .gz), .txt, .parquet, .feather or .xlsx; a folder of Parquet files is one
    table if its name ends in .parquet, or if it has files part-*.parquet or folders key=value.

    The path may also be a table that was opened with :func:`tacit.data.open_table`. The ``options`` are ``layout``,
    ``time``, ``node``, ``value``, ``covariates``, ``sep``, ``series``, ``columns``, ``drop``, ``dayfirst``, ``asked``,
    ``where``, ``calendar``, ``levels`` and ``duplicates``; see :class:`tacit.data.columns.Columns` for their defaults.

    ``time``, ``node``, ``value`` and ``covariates`` name columns. If they are left out, columns are found by their
    names: the time column is called time, date or similar (or contains dates, or is the first and increases). A table
    with a column called node, station, sensor or similar is long, and every other column is a value. ``sep`` separates
    node and variable in the column names of a wide table. Times must increase; missing steps of a regular grid are
    added as missing rows, with a note in ``Series.notes``. Pass ``piece=True`` for a few new rows, in which a node may
    be constant or missing.

    ``series`` names the column that distinguishes several series. In a wide table without it, a time that starts again
    begins a new series, with a note in ``Series.notes``; see :func:`tacit.data.recognition.restarts`.

    ``columns`` are the columns of values to use and ``drop`` those to ignore, by name or shell pattern; see
    :func:`tacit.data.columns.matching`. Columns that are text, empty or constant are left out with a note, unless
    ``columns``, ``value`` or ``asked`` (columns, nodes or variables) name them. ``decimal`` is the decimal point of
    text files, and ``dayfirst`` the order in dates such as 03/04/2021; see :func:`tacit.data.times.parse_dates`.

    ``where`` is a condition that selects targets by their rows (:mod:`tacit.data.conditions`). ``calendar`` adds sines
    and cosines of the date to the covariates (:func:`calendar_features`). A categorical covariate becomes indicators of
    its ``levels``, which default to those of the table.

    ``duplicates`` says which row is used if times repeat (in a long table: those of a node): the first, the last or the
    mean. Without it, times that repeat are refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "levels.csv"
    ...     _ = file.write_text("time,upstream,downstream\\n0,1.5,3\\n1,2.5,\\n3,0.5,4\\n")
    ...     levels = read_series(file)
    >>> levels.nodes, levels.times.tolist(), levels.values[:, 1, 0].tolist()
    (('upstream', 'downstream'), [0, 1, 2, 3], [3.0, nan, nan, 4.0])
    """
    roles = Columns.of(options)
    return series_of(path if isinstance(path, Table) else open_table(path, decimal), roles, piece=piece)


def series_of(table: Table, roles: Columns, *, piece: bool) -> Series:
    """Return the series of a table."""
    roles.require_there(table)
    roles, condition = roles.with_labels(table)
    table, unknown, dropped = roles.without_dropped(table)
    free = [column for column in table.columns if column not in (roles.series, *roles.covariates, *dropped)]
    called = [column for column in free if column.lower() in NODE_NAMES and column != roles.time]
    noted: tuple[str, ...] = ()
    selected_by: dict[str, Any] = {}
    if roles.layout == "auto" and roles.node is None and not roles.values:
        if not piece:
            require_not_events(table, roles)
        called = called if piece else called_nodes(table, roles, free, called)
        if not called:
            roles, noted, selected_by = recognise(table, roles, free)
            free = [column for column in free if column != roles.series]
    long = roles.layout == "long" or (roles.layout == "auto" and bool(roles.node or roles.values or called))
    taken = (*called, roles.node, *roles.values)
    time, time_notes, time_settled = find_time(
        table, roles.time, [column for column in free if column not in taken], long=long
    )
    unnamed = [column for column in free if is_unnamed(column) and column not in (time, roles.node)]
    left = {column: INDEX for column in unnamed if table.is_whole(column)}
    left |= {column: FOLDERS for column in table.keys if column in free and not roles.uses(column, (time, *taken))}
    own = [column for column in free if column not in (time, *taken, *roles.asked) and not roles.uses(column)]
    left |= identifiers(table, own)
    if time is not None and table.unordered:
        table = table.in_order(table.times(time, roles.dayfirst)[0])
    roles = replace(roles, labels=[name for name in roles.labels if name not in (time, roles.series)])
    words = [name for name in roles.labels if name not in taken and table.is_text(name)]  # labels are not nodes
    others = [column for column in free if column not in (time, *words) and column not in left]
    table = with_yes_no(table, [column for column in others if column not in (*called, roles.node)])
    if long:
        require(
            roles.sep is None,
            f"{table.path}: sep must be used with a wide table, got {roles.sep!r} for a long one; leave it out",
        )
        assert time is not None
        found = read_long(table, roles, time, others, called, left, unknown, piece=piece)
    else:
        require(
            roles.node is None and not roles.values,
            f"{table.path}: node and value are for long tables, but layout is 'wide'; leave them out, or use 'long'",
        )
        for name in () if piece else unknown:
            raise table.refuse(not_there("drop", name, table.columns))
        found = replace(read_wide(table, roles, time, others, left, piece=piece), unused=unknown)
    absent = tuple(name for name in roles.columns or () if not matching(name, others, roles.sep))
    selected = tuple(SELECTED.format(name=name) for name in roles.labels if name in others)
    names = {time or "time": "time", roles.series or "series": "series"}
    found = replace(
        found,
        where=condition and condition.renamed(names),
        unused=(*found.unused, *absent),
        notes=table.notes + noted + time_notes + selected + found.notes,
        settled={**time_settled, **selected_by, **found.settled},
    )
    try:
        made = replace(leave_out(found, left, roles.asked, piece=piece), piece=piece)
        return with_calendar(made, roles.calendar)
    except InputError as error:
        raise table.refuse(str(error)) from None


def read_coordinates(path: str | Path, nodes: tuple[str, ...]) -> Float[np.ndarray, "node 2"]:
    """Return two numbers per node, in the order of ``nodes``, from a table.

    The first column contains the names, the last two the numbers, such as latitude and longitude. Names that are not
    in ``nodes`` are ignored.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "places.csv"
    ...     _ = file.write_text("node,latitude,longitude\\na,46.0,8.9\\nb,46.2,9.0\\n")
    ...     read_coordinates(file, ("b", "a")).tolist()
    [[46.2, 9.0], [46.0, 8.9]]
    """
    table = open_table(path)
    if len(table.columns) < 3:
        raise table.refuse(f"must have a column of node names and two of numbers, got {', '.join(table.columns)}")
    names = table.names(table.columns[0])
    places = np.stack([table.numbers(column) for column in table.columns[-2:]], axis=-1)
    for row, name in enumerate(names):
        if name in names[:row]:
            raise table.refuse(f"node '{name}' occurs twice, again in row {row + 1}; keep one of them")
        if name in nodes and np.isnan(places[row]).any():
            raise table.refuse(f"node '{name}' in row {row + 1} must have two numbers, got an empty cell; fill it in")
    missing = [node for node in nodes if node not in names]
    if missing:
        raise table.refuse(f"node '{missing[0]}' has no row ({len(missing)} such nodes); add it")
    return places[[names.index(node) for node in nodes]]

"""Series from wide tables (a column per node) and long tables (a row per time and node)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int

from tacit.data.cells import Table, TimeCells
from tacit.data.columns import Columns
from tacit.data.duplicates import merged, merged_note
from tacit.data.grid import Grid
from tacit.data.recognition import require_not_long
from tacit.data.row_groups import RowGroups
from tacit.data.selection import chosen, matching, not_there
from tacit.data.series import Series, Times, Values
from tacit.data.shared_columns import SharedColumns
from tacit.errors import require


def read_wide(
    table: Table, roles: Columns, time: str | None, others: list[str], left: dict[str, str], *, piece: bool
) -> Series:
    """Return the series of a table with a column per node; text columns are added to ``left``."""
    columns, sep = chosen(table, roles.columns, others, roles.sep, piece=piece), roles.sep
    beside = f" besides '{time}'" if time else ""
    if not columns:
        raise table.refuse(f"a wide table must have a column per node{beside}, got none")
    cells = _counted(table, roles.series) if time is None else table.times(time, roles.dayfirst)
    if time is None or roles.series is not None:
        groups = RowGroups.named(table, roles.series)
    else:
        if roles.layout == "auto":
            require_not_long(table, roles, time, cells.times, others)
        groups = RowGroups.recognised(table, time, cells.times)
    groups.require_ascending(table, time or "", cells.times, may_repeat=roles.duplicates is not None)
    numbers = table.numbers_at_once(columns)
    columns = columns if numbers is not None else _numeric(table, columns, left, roles.asked, sep)
    if not columns:
        raise table.refuse(f"a wide table must have a column of numbers per node{beside}, got only text")
    nodes, channels = _nodes_and_variables(table, columns, sep)
    remedy = "correct it, or leave the column out with --drop"
    ordered = [node if sep is None else node + sep + channel for node in nodes for channel in channels]
    if numbers is None or ordered != columns:
        numbers = table.many_numbers(ordered, remedy)
    values = numbers.reshape(len(table.frame), len(nodes), len(channels))
    known = SharedColumns.of(table, roles.covariates, roles.labels, roles.levels)
    rows = np.argsort(groups.series_of_row, kind="stable")
    values = values[rows] if (np.diff(rows) != 1).any() else values  # no copy if the rows are in order
    times, series, notes = cells.times[rows], groups.series_of_row[rows], cells.notes + groups.notes
    if roles.duplicates is not None:
        moments, moment = np.unique(times, return_inverse=True)
        values, kept = merged(values, series * len(moments) + moment, roles.duplicates)
        notes += merged_note(len(rows), len(kept), roles.duplicates, "a time")
        rows, times, series = rows[kept], times[kept], series[kept]
    made = _Steps(values, nodes, channels, times, series, groups.names, groups.counted)
    found = made.on_grid(table, notes, known.rows(rows))
    return replace(found, settled=_settled(cells))


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

    node = roles.node or _node_column(table, others, called)
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
    cells = table.times(time, roles.dayfirst)
    times, groups = cells.times, RowGroups.named(table, roles.series)
    place_of_row, nodes = pd.factorize(np.array(table.names(node), dtype=object))  # nodes in the order of the file
    groups.require_ascending(table, time, times, place_of_row, tuple(nodes), may_repeat=roles.duplicates is not None)
    moments, moment_of_row = np.unique(times, return_inverse=True)
    steps, step_of_row = np.unique(groups.series_of_row * len(moments) + moment_of_row, return_inverse=True)
    step_times = moments[steps % len(moments)]
    remedy = "correct it, or list the columns to use in value"
    numbers = np.full((len(steps), len(nodes), len(values)), np.nan)
    cell_values, kept, notes = table.many_numbers(values, remedy), np.arange(len(times)), cells.notes
    if roles.duplicates is not None:
        cell_values, kept = merged(cell_values, step_of_row * len(nodes) + place_of_row, roles.duplicates)
        notes += merged_note(len(times), len(kept), roles.duplicates, "the time of a node")
    numbers[step_of_row[kept], place_of_row[kept]] = cell_values
    known = SharedColumns.of(table, roles.covariates, roles.labels, roles.levels)
    made = _Steps(numbers, tuple(nodes), tuple(values), step_times, steps // len(moments), groups.names)
    found = made.on_grid(table, notes, known.per_step(table, step_times, step_of_row))
    return replace(found, settled=_settled(cells), unused=unused)


def _settled(cells: TimeCells) -> dict[str, bool]:
    return {} if cells.dayfirst is None else {"dayfirst": cells.dayfirst}


def _counted(table: Table, series: str | None) -> TimeCells:
    """Return times that count the rows of each series."""
    groups = RowGroups.named(table, series).series_of_row
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], groups[order])
    times = np.empty(len(groups), dtype=np.int64)
    times[order] = np.arange(len(groups)) - starts
    return TimeCells(times)


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


def _node_column(table: Table, others: list[str], named: list[str]) -> str:
    """Return the column of node names: one with such a name, or the only one that has no numbers."""
    words = named or [column for column in others if not table.is_numeric(column)]
    if len(words) != 1:
        found = f"got {', '.join(words)}" if words else "got none"
        raise table.refuse(f"a long table must have one column of node names, {found}; set node to its name")
    return words[0]


def _nodes_and_variables(table: Table, columns: list[str], sep: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split the column names into nodes and variables; every node must have every variable."""
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


@dataclass(frozen=True)
class _Steps:
    """The steps of all series, one series after another, in the order of the table."""

    values: Values
    nodes: tuple[str, ...]
    channels: tuple[str, ...]
    times: Times
    series: Int[np.ndarray, " time"]
    names: tuple[str, ...]
    counted: bool = False

    def on_grid(self, table: Table, notes: tuple[str, ...], known: SharedColumns) -> Series:
        """Place steps on a grid of times; added steps are missing values with the covariates of the previous step."""
        lengths, what = tuple(np.bincount(self.series).tolist()), f"{table.path}: times"
        several = bool(self.names)
        grid = Grid.around_each(self.times, lengths, self.names, what) if several else Grid.around(self.times, what)
        even = self.values
        if len(grid.times) > len(even):
            even = np.full((len(grid.times), *even.shape[1:]), np.nan)
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
            counted=self.counted,
            labels=labels,
            levels=known.levels,
        )

"""Series from wide and long tables.

A wide table has a column of times and one column per node (or per node and variable, ``station:variable``). A long
table has columns of times, of node names and of one or several values. Both may contain several series, distinguished
by a column of names; in a wide table it is enough that time starts again. Files are never changed.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tacit.data.calendar_features import with_calendar
from tacit.data.cells import Table, open_table
from tacit.data.columns import NODE_NAMES, Columns, Layout, TimeName
from tacit.data.duplicates import Duplicates
from tacit.data.layouts import read_long, read_wide
from tacit.data.left_out import INDEX, leave_out
from tacit.data.levels import Levels
from tacit.data.recognition import called_nodes, identifiers, recognise
from tacit.data.selection import matching, not_there
from tacit.data.series import Series
from tacit.data.time_column import find_time, is_unnamed
from tacit.data.yes_no import with_yes_no
from tacit.errors import InputError, require

FOLDERS = "name of a folder"
SELECTED = (
    "where selects rows by column '{name}', which is also a node: its forecasts are valid for the selected rows only; "
    "if it is not a node, drop it or list it in covariates"
)


def read_series(
    path: str | Path | Table,
    *,
    layout: Layout = "auto",
    time: TimeName = None,
    node: str | None = None,
    value: str | Sequence[str] | None = None,
    covariates: Sequence[str] = (),
    sep: str | None = None,
    series: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    decimal: str = ".",
    dayfirst: bool | None = None,
    asked: Sequence[str] = (),
    where: str | None = None,
    calendar: Sequence[str] = (),
    levels: Levels | None = None,
    duplicates: Duplicates | None = None,
    piece: bool = False,
) -> Series:
    """Read a table as a series, or as several over the same nodes.

    Files end in .csv, .tsv (both also as .gz), .txt, .parquet, .feather or .xlsx; a folder of Parquet files is one
    table if its name ends in .parquet, or if it has files part-*.parquet or folders key=value.

    The path may also be a table that was opened with :func:`tacit.data.open_table`.

    ``time``, ``node``, ``value`` and ``covariates`` name columns. If they are left out, columns are found by their
    names: the time column is called time, date or similar (or contains dates, or is the first and increases). A table
    with a column called node, station, sensor or similar is long, and every other column is a value. ``sep`` separates
    node and variable in the column names of a wide table. Times must increase; missing steps of a regular grid are
    added as missing rows, with a note in ``Series.notes``. Pass ``piece=True`` for a few new rows, in which a node may
    be constant or missing.

    ``series`` names the column that distinguishes several series. In a wide table without it, a time that starts again
    begins a new series, with a note in ``Series.notes``; see :func:`tacit.data.row_groups.restarts`.

    ``columns`` are the columns of values to use and ``drop`` those to ignore, by name or shell pattern; see
    :func:`tacit.data.selection.matching`. Columns that are text, empty or constant are left out with a note, unless
    ``columns``, ``value`` or ``asked`` (columns, nodes or variables) name them. ``decimal`` is the decimal point of
    text files, and ``dayfirst`` the order in dates such as 03/04/2021; see :func:`tacit.data.dates.parse_dates`.

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
    roles = Columns(layout, time, node, value, covariates, sep, series, columns, drop, dayfirst, asked)
    roles = replace(roles, where=where, calendar=calendar, levels=levels or {}, duplicates=duplicates)
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
        called = called if piece else called_nodes(table, roles, free, called)
        if not called:
            roles, noted, selected_by = recognise(table, roles, free)
            free = [column for column in free if column != roles.series]
    long = roles.layout == "long" or (roles.layout == "auto" and bool(roles.node or roles.values or called))
    taken = (*called, roles.node, *roles.values)
    time = find_time(table, roles.time, [column for column in free if column not in taken], long=long)
    unnamed = [column for column in free if is_unnamed(column) and column not in (time.name, roles.node)]
    left = {column: INDEX for column in unnamed if table.is_whole(column)}
    left |= {column: FOLDERS for column in table.keys if column in free and not roles.uses(column, (time.name, *taken))}
    own = [column for column in free if column not in (time.name, *taken, *roles.asked) and not roles.uses(column)]
    left |= identifiers(table, own)
    if time.name is not None and table.unordered:
        table = table.in_order(table.times(time.name, roles.dayfirst).times)
    roles = replace(roles, labels=[name for name in roles.labels if name not in (time.name, roles.series)])
    words = [name for name in roles.labels if name not in taken and table.is_text(name)]  # labels are not nodes
    others = [column for column in free if column not in (time.name, *words) and column not in left]
    table = with_yes_no(table, [column for column in others if column not in (*called, roles.node)])
    if long:
        require(
            roles.sep is None,
            f"{table.path}: sep must be used with a wide table, got {roles.sep!r} for a long one; leave it out",
        )
        assert time.name is not None
        found = read_long(table, roles, time.name, others, called, left, unknown, piece=piece)
    else:
        require(
            roles.node is None and not roles.values,
            f"{table.path}: node and value are for long tables, but layout is 'wide'; leave them out, or use 'long'",
        )
        for name in () if piece else unknown:
            raise table.refuse(not_there("drop", name, table.columns))
        found = replace(read_wide(table, roles, time.name, others, left, piece=piece), unused=unknown)
    absent = tuple(name for name in roles.columns or () if not matching(name, others, roles.sep))
    selected = tuple(SELECTED.format(name=name) for name in roles.labels if name in others)
    names = {time.name or "time": "time", roles.series or "series": "series"}
    found = replace(
        found,
        where=condition and condition.renamed(names),
        unused=(*found.unused, *absent),
        notes=table.notes + noted + time.notes + selected + found.notes,
        settled={**time.settled, **selected_by, **found.settled},
    )
    try:
        made = replace(leave_out(found, left, roles.asked, piece=piece), piece=piece)
        return with_calendar(made, roles.calendar)
    except InputError as error:
        raise table.refuse(str(error)) from None

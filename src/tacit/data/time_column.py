"""Find the column of times in a table: one with such a name, one with dates, an index of rows, or none."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tacit.data.cells import Table

TIME_NAMES = ("time", "times", "date", "datetime", "timestamp")
UNIT_NAMES = (
    "second", "minute", "hour", "day", "week", "month", "quarter", "year", "step", "tick", "round", "wave", "visit",
    "timepoint", "time_point", "t",
)  # fmt: skip
INDEX_NAMES = ("id", "index", "idx", "row", "row_id", "rowid", "row_nr", "row_number", "rownumber", "nr")
ROWS = "no column of times was found: each row counts as one step; set time to the column of times if there is one"


@dataclass(frozen=True)
class TimeColumn:
    """The name of the column of times; None if each row is one step. ``settled`` is the option that selects it."""

    name: str | None
    notes: tuple[str, ...] = ()
    settled: dict[str, Any] = field(default_factory=dict)


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
    without a time column has one step per row; ``time=False`` selects this.
    """
    if time is not None and time is not False:
        return TimeColumn(time)
    if time is False and not long:
        return TimeColumn(None)
    called = [column for column in columns if column.lower() in TIME_NAMES]
    if called:
        return TimeColumn(called[0])
    dates = [column for column in columns if table.is_dates(column)]
    if len(dates) > 1:
        shown = ", ".join(f"'{column}'" for column in dates)
        raise table.refuse(f"one column must contain the times, got dates in {shown}; set time to one of them")
    if dates:
        return TimeColumn(dates[0]) if is_unnamed(dates[0]) else _used(dates[0])
    index = [column for column in columns if is_unnamed(column) and table.is_numeric(column)]
    if index:
        return TimeColumn(index[0])
    if not columns:
        raise table.refuse("the table must have a column of times, got none; add one, and set time to its name")
    first = columns[0]
    if table.is_numeric(first) and first.lower() not in INDEX_NAMES:
        steps = np.diff(table.numbers(first, largest=np.inf))
        if len(steps) and (steps > 0).all() and ((steps == steps[0]).all() or table.is_whole(first)):
            return _used(first)
    if long and (unit := unit_time(table, columns)) is not None:
        return _used(unit)
    if long:
        raise table.refuse(
            "a column must be called time, date or similar, or contain dates, got none; set time to the column of times"
        )
    return TimeColumn(None, (ROWS,), {"time": False})


def unit_time(table: Table, columns: Sequence[str]) -> str | None:
    """Return the only column of numbers that is called day, hour, step or the like, or None.

    A wide table may have such a column beside its nodes, so that it is only used where times are expected.
    """
    found = [column for column in columns if column.lower() in UNIT_NAMES and table.is_numeric(column)]
    return found[0] if len(found) == 1 else None


def _used(column: str) -> TimeColumn:
    note = f"column '{column}' was used as the times; set time to use another column"
    return TimeColumn(column, (note,), {"time": column})

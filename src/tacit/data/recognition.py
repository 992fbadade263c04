"""Recognise several series in one table, long tables with other names, and columns of names that are no nodes.

A long table has few columns: times and names that repeat, and one column of values. It is read as such if only one
reading is possible; otherwise it is refused with the options to choose from.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Int

from tacit.data.columns import INDEX_NAMES, TIME_NAMES, Columns, unit_time
from tacit.data.files import Table
from tacit.data.series import Times

RowNumbers = Int[np.ndarray, " row"]
FEW_TIMES = 0.75  # largest ratio of times to rows of a long table; two nodes with missing rows are close to it
MOST_COLUMNS = 8  # of a long table with other names
SERIES_NAMES = (
    "patient", "subject", "participant", "person", "animal", "individual", "id", "case", "run", "trial", "experiment",
    "replicate", "session", "batch", "patient_id", "subject_id", "participant_id", "person_id", "run_id", "trial_id",
    "experiment_id",
)  # fmt: skip
MEASURE_NAMES = (
    "measure", "measurement", "variable", "parameter", "item", "feature", "metric", "quantity", "analyte", "tag",
    "signal", "channel", "indicator", "gene", "symbol",
)  # fmt: skip
COUNTED, IDENTIFIERS = "row numbers", "unique integers, as identifiers have"
AUTUMN, SUNDAY, LATEST_HOUR = (3, 4, 10, 11), 6, 3  # months, weekday and hour in which clocks are set back
REPEATED = "; or use --duplicates first, last or mean"


@dataclass(frozen=True)
class RowGroups:
    """The number of the series of each row, and the names of the series; no names if the table is one series.

    ``counted``  the names are numbers, not given by the user
    """

    series_of_row: RowNumbers
    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    counted: bool = False

    @classmethod
    def named(cls, table: Table, column: str | None) -> "RowGroups":
        """Return the groups that a column names, in the order of the table; one group without a column."""
        import pandas as pd

        if column is None:
            return cls(np.zeros(len(table.frame), dtype=np.int64))
        which, names = pd.factorize(np.array(table.names(column), dtype=object))
        return cls(which, tuple(names))

    @classmethod
    def recognised(cls, table: Table, time: str, times: Times) -> "RowGroups":
        """Return a group for each run of times if time starts again, and one group otherwise."""
        lengths = restarts(times)
        if not lengths:
            return cls.named(table, None)
        again, count = len(lengths) - 1, len(lengths)
        note = f"column '{time}' starts again {again} time{'s' * (again > 1)}: read as {count} series"
        names = tuple(str(number) for number in range(1, count + 1))
        return cls(np.repeat(np.arange(count), lengths), names, (note,), counted=True)

    def require_ascending(
        self,
        table: Table,
        time: str,
        times: Times,
        place_of_row: RowNumbers | None = None,
        nodes: tuple[str, ...] = (),
        *,
        may_repeat: bool = False,
    ) -> None:
        """Refuse times that decrease (or repeat, unless they may) within the rows of one series (and of one node)."""
        places = np.zeros(len(times), dtype=np.int64) if place_of_row is None else place_of_row
        key = self.series_of_row * max(1, len(nodes)) + places
        order = np.argsort(key, kind="stable")
        together = np.diff(key[order]) == 0
        later, earlier = order[1:][together], order[:-1][together]
        repeats = times[later] == times[earlier]
        bad = np.flatnonzero((times[later] < times[earlier]) | (repeats & (not may_repeat)))
        if not len(bad):
            return
        first = bad[later[bad].argmin()]
        row, before = int(later[first]), int(earlier[first])
        whose = f" for node '{nodes[places[row]]}'" if nodes else ""
        whose += f" in series '{self.names[self.series_of_row[row]]}'" if self.names else ""
        if times[row] != times[before]:
            what = f"in row {row + 1} comes before that of row {before + 1}{whose}"
            remedy = f"sort the rows{' of each series' if self.names else ''} by time"
        else:
            more = f" ({repeats.sum():,} such rows)" if repeats.sum() > 1 else ""
            what = f"comes twice{whose}, in rows {before + 1} and {row + 1}{more}"
            same = table.frame.iloc[row].equals(table.frame.iloc[before])
            remedy = "remove one of these equal rows" if same else "correct one of the times"
        if not self.names:
            remedy += ", or set series to the column that separates several series"
            remedy += "" if nodes else ", or node to that of several nodes"
        remedy += REPEATED if times[row] == times[before] else ""
        if clock_set_back(times[before], times[row]):
            remedy = "clocks were set back: write times in UTC, or with an offset as in 2026-10-25T02:00+01:00"
            remedy += REPEATED if times[row] == times[before] else ""
        raise table.refuse(f"column '{time}' must have ascending times, but {times[row]} {what}; {remedy}")


def clock_set_back(before: np.generic, time: np.generic) -> bool:
    """Return whether times repeat an hour of a Sunday night in autumn, when daylight saving time ends.

    >>> clock_set_back(np.datetime64("2026-10-25T02:30"), np.datetime64("2026-10-25T02:00"))
    True
    >>> clock_set_back(np.datetime64("2026-10-26T02:30"), np.datetime64("2026-10-26T02:00"))
    False
    """
    if not isinstance(before, np.datetime64) or not isinstance(time, np.datetime64):
        return False
    import pandas as pd

    moment, back = pd.Timestamp(time), (before - time) / np.timedelta64(1, "h")
    night = moment.day_of_week == SUNDAY and moment.hour <= LATEST_HOUR
    return night and moment.month in AUTUMN and bool(0 <= back < 1)


def restarts(times: Times) -> tuple[int, ...]:
    """Return the lengths of the runs if time starts again, and () otherwise.

    A run ends where time does not increase. Time starts again if there are at least two runs of at least two rows, and
    all runs begin within half a (median) step of the first. Times that are out of order by mistake, or repeated, do not
    meet this condition.

    >>> restarts(np.array([0, 1, 2, 0, 1, 2, 3])), restarts(np.array([0, 1, 3, 2, 4])), restarts(np.array([0, 1, 1, 2]))
    ((3, 4), (), ())
    """
    steps = np.diff(times)
    zero = steps[:1] - steps[:1]
    starts = np.concatenate([[0], 1 + np.flatnonzero(steps <= zero)]) if len(steps) else np.zeros(1, dtype=np.int64)
    lengths = np.diff([*starts, len(times)])
    if len(starts) < 2 or lengths.min() < 2:
        return ()
    step = np.sort(steps[steps > zero])[(int((steps > zero).sum()) - 1) // 2]
    if (2 * np.abs(times[starts] - times[0]) >= step).any():
        return ()
    return tuple(lengths.tolist())


def recognise(table: Table, roles: Columns, free: Sequence[str]) -> tuple[Columns, tuple[str, ...], dict[str, Any]]:
    """Return the roles of a long table whose columns have other names, a note, and the options that select them.

    ``free`` are the columns without a role. The roles are unchanged if the table is not long. With several columns of
    values a table may also be several series, one per name; it is refused if its time has the name of a unit.
    """
    import pandas as pd

    if roles.columns is not None or roles.sep is not None or roles.time is False or len(free) > MOST_COLUMNS:
        return roles, (), {}
    time = _time_of(table, roles, free)
    if time is None:
        return roles, (), {}
    names = [column for column in free if column not in (time, *roles.labels) and _repeats(table, column)]
    values = [column for column in free if column not in (time, *names) and table.is_numeric(column)]
    given = [] if roles.series is None else [roles.series]
    if not (names or given) or len(values) + len(names) + 1 < len(free):
        return roles, (), {}
    labels = {column: pd.factorize(table.cells(column).astype("str"))[0] for column in (*given, *names)}
    moments = np.unique(table.times(time, roles.dayfirst)[0], return_inverse=True)[1]
    names = [column for column in names if not _described(labels, column)]
    key = _joint([moments, *(labels[column] for column in (*given, *names))])
    repeats = len(np.unique(key)) < len(key)
    if not 0 < moments.max() < FEW_TIMES * len(moments) or (repeats and roles.duplicates is None):
        return roles, (), {}
    if not names:
        if not given or time in TIME_NAMES or roles.time is not None:
            return roles, (), {}
        note = f"column '{time}' was used as the times; set time to use another column"
        return replace(roles, time=time), (note,), {"time": time}
    if len(values) == 1:
        return _with_roles(table, roles, time, names, values[0])
    if unit_time(table, free) == time and roles.time is None and not given:
        known, name = f"--set data.time={shlex.quote(time)}", shlex.quote(names[0])
        raise table.refuse(
            f"looks like a long table with a row per '{time}' and '{names[0]}'; use {known} --series {name} if each "
            f"'{names[0]}' is a separate series, {known} --set data.node={name} if it is a node, or --drop {name}"
        )
    return roles, (), {}


def _with_roles(
    table: Table, roles: Columns, time: str, names: list[str], value: str
) -> tuple[Columns, tuple[str, ...], dict[str, Any]]:
    """Return the roles of a long table with one column of values, if the names of its columns leave one reading."""
    others = [name for name in names if name.lower() not in SERIES_NAMES]
    measures = [name for name in names if name.lower() in MEASURE_NAMES]
    (node, *_), unclear = names, len(names) > 1
    if len(names) == 2 and roles.series is None and (len(others) == 1 or len(measures) == 1):
        (node,), unclear = (others if len(others) == 1 else measures), False
    series = next((name for name in names if name != node), roles.series)
    if unclear:
        rest = " and ".join(f"'{name}'" for name in names)
        choice = f"--set data.node={shlex.quote(names[-1])}"
        choice += "" if roles.series is not None else f" --series {shlex.quote(names[0])}"
        raise table.refuse(
            f"looks like a long table with a row per '{time}', {rest}; name the column of nodes"
            f"{'' if roles.series is not None else ' and that of the series'}, such as {choice}"
            f"{', and --drop the others' if len(names) > 2 else ''}"
        )
    found = {"time": time, "node": node, "value": value} | ({} if series is None else {"series": series})
    shown = ", ".join(f"{role} = {column}" for role, column in found.items())
    note = f"read as a long table: {shown}; set node, series or layout to read it in another way"
    return replace(roles, time=time, node=node, value=value, series=series), (note,), found


def called_nodes(table: Table, roles: Columns, free: Sequence[str], called: list[str]) -> list[str]:
    """Return the columns that are called like columns of nodes and may be some.

    In a long table several rows have the same time. If each time has one row, and there are several columns of numbers,
    a column with one name describes the table, and one with several names is refused.
    """
    if not called:
        return called
    time = _time_of(table, roles, free)
    values = [column for column in free if column not in (time, *called) and table.is_numeric(column)]
    if time is None or len(values) < 2 or len(table.frame) < 2:
        return called
    if len(np.unique(table.times(time, roles.dayfirst)[0])) < len(table.frame):
        return called
    for column in called:
        if table.cells(column).dropna().astype("str").nunique() > 1:
            name = shlex.quote(column)
            raise table.refuse(
                f"column '{column}' is called like a column of nodes, but each '{time}' has one row; use --drop {name} "
                f"if the other columns are the nodes, --series {name} if each '{column}' is a separate series, or "
                "--set data.layout=long"
            )
    return []


def identifiers(table: Table, columns: Sequence[str]) -> dict[str, str]:
    """Return the columns of unique integers that are called id, index, row or the like, each with the reason.

    >>> import pandas as pd
    >>> table = Table("levels.csv", ("id", "nr", "a"), pd.DataFrame([[7, 1, 0.5], [3, 2, 0.1], [9, 3, 0.4]]))
    >>> identifiers(table, table.columns)
    {'id': 'unique integers, as identifiers have', 'nr': 'row numbers'}
    """
    found = {}
    for column in columns:
        if column.lower() in INDEX_NAMES and table.is_whole(column) and not table.cells(column).isna().any():
            numbers = table.numbers(column, largest=np.inf)
            if len(np.unique(numbers)) == len(numbers) > 1:
                found[column] = COUNTED if (np.diff(numbers) == 1).all() else IDENTIFIERS
    return found


def _time_of(table: Table, roles: Columns, free: Sequence[str]) -> str | None:
    """Return the column of times by its name, its dates or the name of a unit; None if there is not one of them."""
    if roles.time is not None:
        return roles.time or None
    called = [column for column in free if column.lower() in TIME_NAMES]
    dates = [] if called else [column for column in free if table.is_dates(column)]
    return called[0] if called else unit_time(table, free) if not dates else dates[0] if len(dates) == 1 else None


def _repeats(table: Table, column: str) -> bool:
    """Return whether a column has names that repeat: text, or integers if it is called patient, run or the like."""
    cells = table.cells(column)
    distinct = cells.astype("str").nunique()
    if cells.isna().any() or 2 * distinct > len(cells):
        return False
    if column.lower() in SERIES_NAMES and table.is_whole(column):
        return bool(distinct > 1)
    return table.is_text(column) and not table.is_dates(column)


def _described(labels: dict[str, RowNumbers], column: str) -> bool:
    """Return whether a column has one name for each name of another: the unit of a measure, the sex of a patient."""
    place = list(labels).index(column)
    for other, (name, label) in enumerate(labels.items()):
        if name != column and len(np.unique(_joint([label, labels[column]]))) == label.max() + 1:
            same = label.max() == labels[column].max()  # of two columns with the same meaning the first is used
            if not same or other < place:
                return True
    return bool(labels[column].max() == 0)


def _joint(labels: list[RowNumbers]) -> RowNumbers:
    """Return a number for each combination of labels."""
    joint = np.zeros(len(labels[0]), dtype=np.int64)
    for label in labels:
        joint = np.unique(joint * (label.max() + 1) + label, return_inverse=True)[1]
    return joint


def require_not_long(table: Table, roles: Columns, time: str, times: Times, columns: Sequence[str]) -> None:
    """Refuse a long table: one whose times repeat and in which one of ``columns`` distinguishes the rows of a time.

    In a table whose time starts again, only a column that names each run is considered.
    """
    import pandas as pd

    steps = np.diff(times)
    if not len(steps) or (steps > steps[:1] - steps[:1]).all():
        return
    lengths = restarts(times)
    run_of_row = np.repeat(np.arange(len(lengths)), lengths)
    moments, found = np.unique(times, return_inverse=True)[1], []
    if moments.max() + 1 > FEW_TIMES * len(times):
        return
    for column in columns:
        if column.lower() in TIME_NAMES:
            raise table.refuse(
                f"times must be in one column, got '{time}' with several rows per time and '{column}'; join the two "
                "into one column, or set time to another"
            )
        cells = table.cells(column)
        if cells.isna().any():
            continue
        label = pd.factorize(cells.astype("str"))[0]
        distinct = int(label.max()) + 1
        if lengths:  # a name for each run, and another for the next
            apart = distinct == len(lengths) == len(np.unique(run_of_row * distinct + label))
        else:
            apart = 1 < distinct <= len(label) / 2 and len(np.unique(moments * distinct + label)) == len(label)
        whole = roles.duplicates is None and table.is_whole(column)  # else the user knows that times repeat
        if apart and (whole or table.is_text(column)):
            found.append((not table.is_text(column), distinct, column))
    if found:
        column = min(found)[2]
        node, series = shlex.quote(f"data.node={column}"), shlex.quote(column)
        others = f", or --series {series} if each '{column}' is a separate series"
        others += f", or --drop {series} to ignore it"
        others += "" if lengths else " with --duplicates mean"
        raise table.refuse(
            f"looks like a long table with a row per '{time}' and '{column}'; use --set {node}"
            f"{others if len(columns) > 2 else ''}"  # with one column of values it would be the only node
        )

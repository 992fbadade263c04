"""The series of each row of a table, given by a column of names or by times that start again."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from tacit.data.calendar_features import calendar_number
from tacit.data.cells import Table
from tacit.data.series import Times

RowNumbers = Int[np.ndarray, " row"]
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
    moment = np.array([time])
    month, weekday, hour = (int(calendar_number(moment, name)[0]) for name in ("month", "weekday", "hour"))
    back = (before - time) / np.timedelta64(1, "h")
    return month in AUTUMN and weekday == SUNDAY and hour <= LATEST_HOUR and bool(0 <= back < 1)


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

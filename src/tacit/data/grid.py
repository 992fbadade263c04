"""A regular grid of times, evenly spaced or by the calendar: missing steps become rows of missing values."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int

from tacit.data.frequency import Frequency
from tacit.data.series import Times
from tacit.errors import InputError

MOST_ROWS_ADDED = 9  # times the number of rows: beyond it a wrong time is more likely than a gap


@dataclass(frozen=True)
class Grid:
    """Times of all rows of the grid, the position of every given row, and notes."""

    times: Times
    places: Int[np.ndarray, " row"]
    notes: tuple[str, ...] = ()
    lengths: tuple[int, ...] = ()
    uneven: bool = False

    @classmethod
    def around_each(cls, times: Times, lengths: tuple[int, ...], names: tuple[str, ...], what: str = "times") -> "Grid":
        """Return the grids of several series, one after another, all with the median step.

        >>> grid = Grid.around_each(np.array([0, 1, 3, 0, 1, 2]), (3, 3), ("a", "b"))
        >>> grid.times.tolist(), grid.lengths
        ([0, 1, 2, 3, 0, 1, 2], (4, 3))
        >>> grid.notes
        ('1 steps without a row were added as missing values, in 1 of 2 series, one every 1',)
        """
        parts = np.split(times, np.cumsum(lengths)[:-1])
        step = Frequency.of(parts) or _median(np.concatenate([np.diff(part) for part in parts]))
        grids = [cls.around(part, f"{what} of series '{name}'", step) for part, name in zip(parts, names, strict=True)]
        added = [len(grid.times) - length for grid, length in zip(grids, lengths, strict=True)]
        uneven = sum(grid.uneven for grid in grids)
        gaps, notes = sum(new > 0 for new in added), []
        often = _often(step)
        if gaps:
            where = f"in {gaps} of {len(grids)} series, one {often}"
            notes.append(f"{sum(added)} steps without a row were added as missing values, {where}")
        elif isinstance(step, Frequency):
            notes.append(f"times are {often}")
        if uneven:
            notes.append(f"times are not evenly spaced in {uneven} of {len(grids)} series; each row counts as one step")
        new_lengths = tuple(len(grid.times) for grid in grids)
        starts = np.cumsum([0, *new_lengths[:-1]])
        places = np.concatenate([start + grid.places for start, grid in zip(starts, grids, strict=True)])
        return cls(np.concatenate([grid.times for grid in grids]), places, tuple(notes), new_lengths)

    @classmethod
    def around(cls, times: Times, what: str = "times", step: Any = None) -> "Grid":
        r"""Return the grid that contains ``times``, which are strictly ascending.

        Times that follow a calendar (:class:`Frequency`) are on the grid of that calendar. Otherwise the step $s$ is
        the (lower) median of the differences $d_k$. If every $d_k$ is a multiple of the step, the grid is
        $t_0, t_0 + s, \dots$; otherwise the times are kept, and a note says that they are not evenly spaced. ``step``
        is the frequency or the duration, if it is known.

        >>> grid = Grid.around(np.array([0, 1, 2, 5]))
        >>> grid.times.tolist(), grid.places.tolist()
        ([0, 1, 2, 3, 4, 5], [0, 1, 2, 5])
        >>> grid.notes
        ('2 steps without a row were added as missing values: 6 rows from 0 to 5, one every 1',)
        >>> days = np.array(["2026-01-01", "2026-01-02", "2026-01-05", "2026-01-07"], dtype="datetime64[D]")
        >>> Grid.around(days).places.tolist()  # business days
        [0, 1, 2, 4]
        """
        rows = np.arange(len(times))
        if len(times) < (3 if step is None else 2):
            return cls(times, rows)
        if step is None:
            step = Frequency.of([times]) or _median(np.diff(times))
        steps = _whole_steps(times, step)
        if steps is None:
            differences = np.diff(times)
            note = (
                f"times are not evenly spaced (steps from {differences.min()} to {differences.max()}); each row counts"
            )
            return cls(times, rows, (f"{note} as one step",), uneven=True)
        places, calendar = np.concatenate([[0], steps.cumsum()]), isinstance(step, Frequency)
        missing = int(places[-1]) + 1 - len(times)
        if missing == 0:
            return cls(times, rows, (f"times are {_often(step)}",) if calendar else ())
        if missing > MOST_ROWS_ADDED * len(times):
            widest, size = int(steps.argmax()), f"({_often(step)})" if calendar else f"of {step}"
            raise InputError(
                f"{what} must form a regular grid with few gaps, got {steps[widest]} steps {size} between "
                f"{times[widest]} and {times[widest + 1]}; correct that time, or cut the table there"
            )
        ahead = np.arange(places[-1] + 1)
        even = step.after(times[0], ahead) if isinstance(step, Frequency) else times[0] + ahead * step
        even[places] = times  # given times are not changed
        note = (
            f"{missing} steps without a row were added as missing values: {len(even)} rows from {even[0]} to {even[-1]}"
        )
        return cls(even, places, (f"{note}, one {_often(step)}",))


def _whole_steps(times: Times, step: Any) -> Int[np.ndarray, " step"] | None:
    """Return the number of steps between neighbours, or None if one is not an integer.

    Steps of days may be an hour longer or shorter, as in local times when clocks change.
    """
    if isinstance(step, Frequency):
        return step.steps(times)
    ratios = np.diff(times) / step
    steps = np.rint(ratios).astype(np.int64)
    allowed = 1e-6 * np.maximum(steps, 1)
    if times.dtype.kind == "M" and step % np.timedelta64(1, "D") == np.timedelta64(0, "s"):
        allowed = np.maximum(allowed, np.timedelta64(1, "h") / step)
    return None if (np.abs(ratios - steps) > allowed).any() or steps.min() < 1 else steps


def _often(step: Any) -> str:
    return step.words if isinstance(step, Frequency) else f"every {step}"


def _median(differences: Times) -> Any:
    """Return the lower median, or None."""
    return np.sort(differences)[(len(differences) - 1) // 2] if len(differences) else None

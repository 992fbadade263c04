"""An even grid of times: where steps were left out, rows of missing values are put in."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from tacit.data.series import Times
from tacit.errors import InputError

MOST_ROWS_ADDED = 9  # times the rows that are there: beyond it a wrong time is likelier than a gap


@dataclass(frozen=True)
class Grid:
    """Times of all rows, the place of every given row among them, and what there is to say about it."""

    times: Times
    places: Int[np.ndarray, " row"]
    notes: tuple[str, ...] = ()

    @classmethod
    def around(cls, times: Times, what: str = "times") -> "Grid":
        r"""Return the even grid that holds ``times``, which are strictly ascending.

        The step is the (lower) median $s$ of the differences $d_k$. When every $d_k$ is a whole number of steps, the
        grid is $t_0, t_0 + s, \dots$; otherwise the times are kept, and the note says that they are uneven.

        >>> grid = Grid.around(np.array([0, 1, 2, 5]))
        >>> grid.times.tolist(), grid.places.tolist()
        ([0, 1, 2, 3, 4, 5], [0, 1, 2, 5])
        >>> grid.notes
        ('2 steps without a row were put in as missing: 6 rows from 0 to 5, one every 1',)
        """
        rows = np.arange(len(times))
        if len(times) < 3:
            return cls(times, rows)
        differences = np.diff(times)
        step = np.sort(differences)[(len(differences) - 1) // 2]
        ratios = differences / step
        steps = np.rint(ratios).astype(np.int64)
        if (np.abs(ratios - steps) > 1e-6 * np.maximum(steps, 1)).any() or steps.min() < 1:
            note = f"times are not even (steps from {differences.min()} to {differences.max()}); rows count as one step"
            return cls(times, rows, (f"{note} each",))
        places = np.concatenate([[0], steps.cumsum()])
        missing = int(places[-1]) + 1 - len(times)
        if missing == 0:
            return cls(times, rows)
        if missing > MOST_ROWS_ADDED * len(times):
            widest = int(steps.argmax())
            raise InputError(
                f"{what} need an even grid with few gaps, got {steps[widest]} steps of {step} between "
                f"{times[widest]} and {times[widest + 1]}; correct that time, or cut the table there"
            )
        even = times[0] + np.arange(places[-1] + 1) * step
        even[places] = times  # what was given stays as it was
        note = f"{missing} steps without a row were put in as missing: {len(even)} rows from {even[0]} to {even[-1]}"
        return cls(even, places, (f"{note}, one every {step}",))

"""Times after the end of a series: by the calendar if its times follow one, otherwise in steps of the last size."""

import numpy as np
from jaxtyping import Shaped

from tacit.data.frequency import Frequency
from tacit.data.series import Times

Coming = Shaped[np.ndarray, " coming"]

LATEST_TIMES = 12  # times that must follow the calendar if older ones do not


def coming_times(times: Times, count: int) -> Coming:
    """Return the ``count`` times that follow the given ones.

    >>> coming_times(np.array(["2019-10-01", "2019-11-01", "2019-12-01"], dtype="datetime64[D]"), 2)
    array(['2020-01-01', '2020-02-01'], dtype='datetime64[D]')
    >>> coming_times(np.array([3, 5, 9]), 2).tolist()
    [13, 17]
    """
    ahead = np.arange(1, count + 1)
    calendar = Frequency.of([times]) or Frequency.of([times[-LATEST_TIMES:]])
    if calendar is not None:
        return calendar.after(times[-1], ahead)
    step = times[-1] - times[-2] if len(times) > 1 else (times[-1] - times[-1]) + 1
    even: Coming = times[-1] + step * ahead
    return even


def extended_times(times: Times, count: int) -> Shaped[np.ndarray, " longer"]:
    """Return the times of a series, followed by those of the next ``count`` rows."""
    return np.concatenate([times, coming_times(times, count)]) if count else times

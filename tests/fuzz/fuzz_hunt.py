"""Run one surface: quick, always the same and up to the first failure; or long, with a seed and over all failures."""

import traceback
from collections.abc import Callable
from typing import Any

import jaxtyping
from fuzz_judge import Tally, judge
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st


def hunt(
    cases: st.SearchStrategy[Any], count: int, number: int | None = None, how: Callable[[Any, Tally], Any] = judge
) -> Tally:
    """Judge ``count`` cases. Without the number of a seed they are the same every time, and a failure is raised."""
    tally = Tally()

    def tolerant(case: Any) -> None:
        try:
            how(case, tally)
        except Exception as error:
            tally.cases += 1
            tally.failures.setdefault(_origin(error), f"{error!s:.600} in {case!r:.1500}")

    @settings(
        max_examples=count,
        derandomize=number is None,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases)
    def each(case: Any) -> None:
        if number is None:
            how(case, tally)
        else:
            tolerant(case)

    jaxtyping.config.update("jaxtyping_disable", True)  # the checks draw random numbers, which strategies must not
    try:
        (each if number is None else seed(number)(each))()
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
    return tally


def _origin(error: Exception) -> str:
    """Return the kind of a failure, and the last lines of the package on its way."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/tacit/" in frame.filename]
    places = " < ".join(f"{frame.filename.rsplit('/tacit/')[-1]}:{frame.lineno}" for frame in frames[:-3:-1])
    return f"{type(error).__name__} {places or str(error)[:40]}"

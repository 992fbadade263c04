"""Targets of edges that depend on the situation, and of regimes."""

from collections.abc import Iterator

from benchmarks.situations.records import RESULTS, read
from benchmarks.situations.step import TARGET
from benchmarks.targets import Target, at_most

TOPIC = "situations"
NULL = 0.1  # share of data sets


def targets() -> Iterator[Target]:
    """Yield each target with what was measured."""
    for row in read(RESULTS / "likelihood.json"):
        if row["kind"] == "none":
            what = f"linear filters, {row['noise']}, no edge varies: sets with one called varying"
            yield at_most(TOPIC, what, row["sets_with_a_wrong_edge"], NULL, "{:.1%}")
    for name, found in read(RESULTS / "step.json").items():
        yield at_most(TOPIC, f"largest ratio of a step, {name}", max(found["ratios"].values()), TARGET, "{:.2f}")

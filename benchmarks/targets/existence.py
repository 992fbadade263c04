"""Targets of the evidence and of full fits."""

from collections.abc import Iterator

from benchmarks.existence.fit_tables import measured
from benchmarks.existence.page import KNOWN, paired
from benchmarks.existence.records import RESULTS, speed
from benchmarks.targets import Target, at_most

TOPIC = "existence"
SECONDS = {10: 5, 100: 60, 10_000: float("inf")}  # of one core; the largest has to run through


def targets() -> Iterator[Target]:
    """Yield each target with what was measured."""
    for on, score, ours, best, mean, error in paired(RESULTS):
        what = f"{KNOWN[on]}, {score}, {ours} less {best}"
        yield Target(TOPIC, what, f"{mean:+.3f} ± {error:.3f}", "not below by more than one error", mean >= -error)
    for seeds in ("choose", "test"):
        for row in measured(RESULTS, seeds):
            if row.value is not None:
                met = row.low <= row.value <= row.high
                yield Target(TOPIC, f"{row.data}, {row.what} ({seeds})", f"{row.value:.3f}", row.wanted, met)
    for record in speed(RESULTS):
        what = f"seconds of the evidence, {record['nodes']:,} nodes"
        yield at_most(TOPIC, what, record["core_seconds"], SECONDS[record["nodes"]], "{:.1f}")

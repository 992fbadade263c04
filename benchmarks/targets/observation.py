"""Targets of the observation models."""

import statistics
from collections.abc import Iterator

from benchmarks.observation.records import RESULTS, read
from benchmarks.observation.rejections import KINDS as TESTED
from benchmarks.targets import Target, at_least, at_most, between

TOPIC = "observation"
THETA = {"poisson, psi known": 0.02, "bernoulli, psi known": 0.03}


def targets() -> Iterator[Target]:
    """Yield each target with what was measured."""
    theta = read(RESULTS / "theta.json")
    for name, bound in THETA.items():
        yield at_most(TOPIC, f"error of theta, {name}", statistics.mean(r["error"] for r in theta[name]["runs"]), bound)
    for kind, found in read(RESULTS / "rejections.json").items():
        if kind in TESTED:
            yield between(TOPIC, f"the right model is rejected, {kind}", found["rejected"], 0.035, 0.065)
        else:
            yield at_least(TOPIC, f"rejected on counts: {kind}", found["rejected"], 0.95, "{:.1%}")
    for name, found in read(RESULTS / "test-intervals.json").items():
        if "student_t" in name:
            for part in ("gated", "all"):
                yield between(TOPIC, f"coverage, {name}, {part} edges", found[part]["held"], 0.92, 0.98)

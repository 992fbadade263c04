"""Targets of the observation models."""

import statistics
from collections.abc import Iterator

import numpy as np
from benchmarks.observation.methods import GLM, TACIT
from benchmarks.observation.page import read_methods
from benchmarks.observation.records import RESULTS, read
from benchmarks.observation.rejections import KINDS as TESTED
from benchmarks.targets import Target, at_least, at_most, between

TOPIC = "observation"
ERRORS, BELOW = 2.0, 0.01  # by which another method may rank better
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
    records = read_methods()[1]
    for kind, found in records[TACIT].items():
        theirs = {row["seed"]: row for row in records[GLM].get(kind, {}).get("systems", [])}
        for key, score in (("auroc", "AUROC"), ("aupr", "average precision")):
            both = [(row[key], theirs[row["seed"]][key]) for row in found["systems"] if row["seed"] in theirs]
            over = np.array([mine - other for mine, other in both if mine is not None and other is not None])
            if len(over) > 1:
                error = float(over.std(ddof=1)) / len(over) ** 0.5
                reached = float(over.mean()) >= -max(ERRORS * error, BELOW)
                what, wanted = f"{kind}, {score} less {GLM}", f"not below by more than {ERRORS:.0f} errors or {BELOW}"
                yield Target(TOPIC, what, f"{over.mean():+.4f} ± {error:.4f}", wanted, reached)

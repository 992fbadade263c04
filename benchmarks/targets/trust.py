"""Targets of intervals, flags, the fit test and their cost."""

import statistics
from collections.abc import Iterator

from benchmarks.targets import Target, at_least, at_most, between
from benchmarks.trust_page import RESULTS, read, rejected

TOPIC = "trust"
COVERAGE = {("known", 0.95): (0.92, 0.98), ("known", 0.8): (0.76, 0.84), ("learned", 0.95): (0.90, 0.98)}
COST = {"cuda": 4, "cpu": 12}  # fits


def targets() -> Iterator[Target]:
    """Yield each target with what was measured."""
    rows = read(RESULTS, "coverage")["rows"]
    for (psi, level), (low, high) in COVERAGE.items():
        share = statistics.mean(row[f"held_{level}"] / 50 for row in rows if row["psi"] == psi)
        yield between(TOPIC, f"coverage of {level:.0%} intervals, psi {psi}", share, low, high)
    level = read(RESULTS, "level")["p_values"]
    yield between(TOPIC, f"the true model is rejected, of {len(level):,}", rejected(level), 0.035, 0.065)
    for name, found in read(RESULTS, "power")["p_values"].items():
        yield at_least(TOPIC, f"rejected, of {len(found)}: {name}", rejected(found), 0.95, "{:.1%}")
    for row in read(RESULTS, "flags")["rows"]:
        flags = row["diagonal"], row["elsewhere"]
        what = f"flags on the diagonal and elsewhere, widths {row['widths']}, data set {row['set']}"
        yield Target(TOPIC, what, f"{flags[0]}, {flags[1]}", "12, 0", flags == (12, 0))
    for kind, most in COST.items():
        worst = max(row["bootstrap"] / row["fit"] for row in read(RESULTS, f"cost_{kind}")["rows"])
        yield at_most(TOPIC, f"time of 32 bootstrap replicas on {kind}, in fits", worst, most, "{:.1f}")

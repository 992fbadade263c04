"""Targets of speed, accuracy and scale."""

import statistics
from collections.abc import Iterator

from benchmarks.speed_page import PYG, RESULTS, read
from benchmarks.targets import Target, at_least, at_most

TOPIC = "speed"
SECOND_SHARE = 0.6  # of the target: what a second run may take
BUSY = {"1": 2.5, "3": 4}  # times as long beside so many busy loops
PYG_LEAST = {"PyG, usual": 100, "PyG, careful": 10}  # times slower than tacit, for graphs that the batch shares
STEP_RATIO = 1.5  # of a step with another observation model, to Gaussian noise


def targets() -> Iterator[Target]:
    """Yield each target with what was measured."""
    yield from _waiting()
    yield from _beside()
    yield from _accuracy()
    yield from _scale()


def _waiting() -> Iterator[Target]:
    for name, row in read(RESULTS, "waiting")["rows"].items():
        first, second = (run["seconds"] for run in row["runs"])
        yield at_most(TOPIC, f"seconds of a fit, {name}", first, row["target"], "{:.1f}")
        yield at_most(TOPIC, f"seconds of a second fit, {name}", second, SECOND_SHARE * row["target"], "{:.1f}")
    for name, job in read(RESULTS, "busy")["jobs"].items():
        for loops, ratio in job["ratio"].items():
            yield at_most(TOPIC, f"{name} beside {loops} busy loops, times as long", ratio, BUSY[loops], "{:.2f}")


def _beside() -> Iterator[Target]:
    for row in read(RESULTS, "step_vs_pyg")["results"]:
        least = PYG_LEAST.get(row["implementation"])
        if (row["theta"], row["graphs"]) == ("true", "shared") and least is not None:
            what = f"step against PyG, {PYG[row['implementation']]}, psi {row['psi']}"
            yield at_least(TOPIC, what, row["ratio"], least, "{:.1f}")
    for run in read(RESULTS, "observation_step")["runs"]:
        for compiled in (True, False):
            ratios = [max(step["ratios"].values()) for step in run["steps"] if step["compiled"] == compiled]
            if ratios:
                how = "compiled" if compiled else "not compiled"
                what = f"largest step ratio of the observation models, {run['machine']}, {how}"
                yield at_most(TOPIC, what, max(ratios), STEP_RATIO, "{:.2f}")


def _accuracy() -> Iterator[Target]:
    best, quick = read(RESULTS, "best_h200"), read(RESULTS, "best_cpu")["quick"]
    yield at_most(TOPIC, "12 nodes, two cores: largest error of theta", max(quick["errors"]), 0.01)
    yield at_most(TOPIC, "12 nodes, two cores: slowest training, s", max(quick["seconds"]), 3, "{:.2f}")
    yield at_most(TOPIC, "12 nodes, H200: mean error of theta", statistics.mean(best["best"]["errors"]), 0.0015)
    yield at_most(TOPIC, "12 nodes, H200: slowest training, s", max(best["best"]["seconds"]), 20, "{:.2f}")
    yield at_most(TOPIC, "120 nodes, H200: mean error of theta", statistics.mean(best["larger"]["errors"]), 0.0006)
    limit = read(RESULTS, "limit_h200")["known"]
    yield at_most(TOPIC, "8 replicas, 10 epochs, H200, psi known, s", limit["fit_seconds"], 0.3, "{:.3f}")


def _scale() -> Iterator[Target]:
    large, gpu = read(RESULTS, "scale_cpu")["results"][-1], read(RESULTS, "scale_h200")["results"][-1]
    yield at_least(TOPIC, "two cores: candidates", large["candidates"], 500_000, "{:,.0f}")
    yield at_least(TOPIC, "two cores: AUROC with the most candidates", large["auroc"], 0.99, "{:.4f}")
    yield at_most(TOPIC, "two cores: GB with the most candidates", large["gigabytes"], 8, "{:.1f}")
    yield at_most(TOPIC, "two cores: time of an epoch over linear", large["of_linear"], 1, "{:.2f}")
    yield at_least(TOPIC, "H200: candidates", gpu["candidates"], 5_000_000, "{:,.0f}")

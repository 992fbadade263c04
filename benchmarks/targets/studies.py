"""Targets of the studies of graphs of others."""

import json
import statistics
from collections.abc import Iterator
from pathlib import Path

from benchmarks.targets import Target, at_least

RESULTS = Path(__file__).parents[2] / "docs" / "results"
TOPIC = "studies"
DREAM4 = {"auroc": 0.82, "aupr": 0.65}  # ten genes, the mean of the starts


def targets() -> Iterator[Target]:
    """Yield each target with what was measured."""
    record = json.loads((RESULTS / "dream4" / "records" / "size10.json").read_text(encoding="utf-8"))
    for key, bound in DREAM4.items():
        mean = statistics.mean(one["mean_of_starts"][key] for one in record["networks"])
        yield at_least(TOPIC, f"DREAM4, 10 genes, {key.upper()}", mean, bound, "{:.3f}")

"""Many short series of one system, each with levels of its own, beside one long series and the same rows glued.

    python -m benchmarks.panels --sets 20

20 VAR series of 60 rows and 10 nodes (``benchmarks.existence.systems.panels``), through the whole fit. Writes
``benchmarks/results/panels.json`` and prints the table of docs/results/PANELS.md.
"""

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.existence.scores import off_diagonal, ranking
from benchmarks.existence.systems import TEST, System, panels

from tacit import LatentGraphForecaster
from tacit.config import AssessmentOptions, DataOptions

RESULTS = Path(__file__).parent / "results" / "panels.json"
NODES, ROWS, COUNT, DENSITY = 10, 1_200, 20, 0.12
ARMS = {
    "20 series, scale chosen": (COUNT, "auto"),
    "20 series, one scale": (COUNT, "all"),
    "20 series, level of each": (COUNT, "level"),
    "20 series, level and deviation of each": (COUNT, "series"),
    "the same rows glued together": (COUNT, None),
    "one series of 1,200 rows": (1, "auto"),
}
Figures = dict[str, Any]


def one(system: System, scale: str | None) -> Figures:
    """Return the figures of one fit; without a ``scale`` the series are glued together."""
    names = [f"n{node}" for node in range(system.num_nodes)]
    tables: Any = [pd.DataFrame(values, columns=names) for values in system.series]
    if scale is None or len(tables) == 1:
        tables = pd.concat(tables, ignore_index=True)
    began = time.perf_counter()
    model = LatentGraphForecaster(
        data=DataOptions(scale_by=scale or "auto"), assessment=AssessmentOptions(controls=False)
    ).fit(tables)
    listed = model.listed_edges()
    pairs = listed[["source", "target"]].apply(lambda column: column.str[1:].astype(int)).to_numpy()
    record = model.record_
    return {
        **ranking(off_diagonal(model.exists_), off_diagonal(system.truth)),
        "listed": len(listed),
        "false": int(sum(not system.truth[target, source] for source, target in pairs)),
        "true": int(system.truth.sum()),
        "crps": record.metrics["crps"],
        "coverage_0.8": record.metrics["coverage_0.8"],
        "misfit": bool(record.goodness.get("p_value", 1.0) < 0.05),
        "seconds": time.perf_counter() - began,
    }


def large(series: int = 1_000, rows: int = 200, nodes: int = 15) -> Figures:
    """Return time and memory of a fit of a thousand series."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    found = one(panels(TEST[0], nodes, series * rows, DENSITY, series), "auto")
    return {**found, "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, "before": before}


def row(name: str, found: list[Figures]) -> str:
    """Return a line of the table: means over data sets, with the standard error of the AUROC."""
    auroc = np.array([figures["auroc"] for figures in found])
    error = auroc.std(ddof=1) / len(auroc) ** 0.5
    means = {key: np.mean([figures[key] for figures in found]) for key in ("aupr", "crps", "coverage_0.8", "misfit")}
    false = sum(figures["false"] for figures in found) / max(1, sum(figures["listed"] for figures in found))
    hits = sum(figures["listed"] - figures["false"] for figures in found) / sum(figures["true"] for figures in found)
    return (
        f"| {name} | {auroc.mean():.3f} ± {error:.3f} | {means['aupr']:.3f} | {hits:.3f} | {false:.1%} | "
        f"{means['crps']:.4f} | {means['coverage_0.8']:.1%} | {means['misfit']:.0%} |"
    )


def main() -> None:
    """Run all arms on the same test seeds, or one large panel."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--first", type=int, default=TEST[0] + 700)
    parser.add_argument("--large", action="store_true", help="1,000 series of 200 rows instead")
    chosen = parser.parse_args()
    record = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    if chosen.large:
        record["large"] = large()
        print(record["large"])
    else:
        seeds = range(chosen.first, chosen.first + chosen.sets)
        print("| data | AUROC | AUPR | listed of the true | false of the listed | CRPS | in 80% | misfit found |")
        print("|---|---|---|---|---|---|---|---|")
        record["first"], record["arms"] = chosen.first, {}
        for name, (count, scale) in ARMS.items():
            record["arms"][name] = [one(panels(seed, NODES, ROWS, DENSITY, count), scale) for seed in seeds]
            print(row(name, record["arms"][name]), flush=True)
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

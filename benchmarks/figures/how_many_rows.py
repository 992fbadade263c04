"""The chart and tables of docs/concepts/how-many-rows.md, from records: ``python -m benchmarks.figures.how_many_rows``.

Left: the share of the true edges that are listed, in the 200 systems of
``benchmarks/results/existence/sweep-test-evidence.json``. Right: the error of edge probabilities in
``docs/results/sample-size/records``.
"""

import json
import statistics
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

from tacit.report import COLOURS, STYLE

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "images" / "how-many-rows.png"
PAGE = ROOT / "docs" / "concepts" / "how-many-rows.md"
SWEEP = ROOT / "benchmarks" / "results" / "existence" / "sweep-test-evidence.json"
PAIRS = ROOT / "docs" / "results" / "sample-size" / "records"
ROWS = (100, 200, 400, 800, 1_600, 5_001)  # bins
SOURCES = ((0.0, 1.0, "up to 1"), (1.0, 3.0, "1 to 3"), (3.0, 99.0, "more than 3"))  # true sources per node
Systems = list[dict[str, Any]]


def systems() -> Systems:
    """Return the systems that have an edge."""
    found: Systems = json.loads(SWEEP.read_text(encoding="utf-8"))["systems"]
    return [one for one in found if one["edges"]]


def share(found: Systems) -> tuple[float, float]:
    """Return the share of the true edges that are listed, and its standard error over systems."""
    hits = np.array([one["listed"] - one["false"] for one in found], float)
    edges = np.array([one["edges"] for one in found], float)
    ratio = hits.sum() / edges.sum()
    error = np.sqrt(((hits - ratio * edges) ** 2).sum()) / edges.sum()
    return float(ratio), float(error)


def bins(found: Systems) -> Iterator[tuple[str, Systems]]:
    """Yield the systems of each bin of rows, with its name."""
    for low, high in pairwise(ROWS):
        inside = [one for one in found if low <= one["rows"] < high]
        yield f"{low:,} to {min(high, 5_000):,}", inside


def group(found: Systems, low: float, high: float) -> Systems:
    """Return the systems with so many true sources per node."""
    return [one for one in found if low < one["edges"] / one["nodes"] <= high]


def table() -> str:
    """Return the table of the left panel."""
    heads = ["rows", *(f"{words} source{'' if high == 1 else 's'} per node" for _, high, words in SOURCES)]
    lines = [f"| {' | '.join([*heads, 'false among the listed'])} |", "|" + "---|" * (len(heads) + 1)]
    for name, inside in bins(systems()):
        cells = []
        for low, high, _ in SOURCES:
            part = group(inside, low, high)
            ratio, error = share(part)
            cells.append(f"{ratio:.2f} ± {error:.2f} ({len(part)})")
        false = sum(one["false"] for one in inside) / sum(one["listed"] for one in inside)
        lines.append(f"| {' | '.join([name, *cells, f'{false:.1%}'])} |")
    return "\n".join(lines)


def errors() -> dict[str, dict[int, list[float]]]:
    """Return the mean absolute errors of the true edges of each run, by psi and number of pairs."""
    found: dict[str, dict[int, list[float]]] = {}
    for path in sorted(PAIRS.glob("*.json")):
        values = json.loads(path.read_text(encoding="utf-8"))
        psi = "known" if "known" in path.stem else "learned"
        best = min(run["validation_loss"] for run in values["runs"])
        runs = [run for run in values["runs"] if run["validation_loss"] - best <= 0.05 * abs(best)]
        found.setdefault(psi, {})[values["pairs"]] = [run["true_edge_mae"] for run in runs]
    return found


def draw() -> Figure:
    """Return the chart."""
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    found = systems()
    for colour, (low, high, words) in zip(COLOURS, SOURCES, strict=False):
        points = [(name, group(inside, low, high)) for name, inside in bins(found)]
        places = [float(np.exp(np.mean(np.log([one["rows"] for one in part])))) for _, part in points]
        values = [share(part) for _, part in points]
        left.errorbar(places, *zip(*values, strict=True), color=colour, marker="o", capsize=2, label=words)
    left.set(xscale="log", ylim=(0, 1.05), xlabel="rows", ylabel="share of the true edges that are listed")
    left.set_title("which edges exist")
    left.legend(title="true sources per node", loc="lower right")
    for colour, (psi, by_pairs) in zip(COLOURS, errors().items(), strict=False):
        _errors(right, psi, dict(sorted(by_pairs.items())), colour)
    right.set(xscale="log", yscale="log", xlabel="pairs", ylabel="mean error of edge probabilities")
    right.set_title("how often edges act")
    right.legend(loc="upper right")
    _ticks(left.xaxis, (100, 200, 500, 1_000, 2_000, 5_000))
    _ticks(right.xaxis, (1_000, 10_000, 100_000))
    _ticks(right.yaxis, (0.003, 0.005, 0.01, 0.02, 0.04))
    for axis in (left, right):
        axis.grid(alpha=0.3)
    return figure


def _errors(axis: Axes, psi: str, by_pairs: dict[int, list[float]], colour: str) -> None:
    means = [statistics.mean(found) for found in by_pairs.values()]
    spread = [statistics.stdev(found) for found in by_pairs.values()]
    words = "predictor known" if psi == "known" else "predictor learned"
    axis.errorbar(list(by_pairs), means, spread, color=colour, marker="o", capsize=2, label=words)


def _ticks(axis: Axis, values: tuple[float, ...]) -> None:
    axis.set_major_locator(FixedLocator(values))
    axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axis.set_minor_locator(NullLocator())


if __name__ == "__main__":
    with mpl.rc_context(STYLE):
        draw().savefig(PICTURE, dpi=150, facecolor="white")
    print(PICTURE)
    print(table())

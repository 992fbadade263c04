"""Figures of the assessment: reliability of edge probabilities, ranks of the targets, coverage of intervals."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.assessment.uncertainty import reliability
from tacit.edges import FLAGS
from tacit.records import Run
from tacit.report.shared import BLUE, LABELS, VERMILION

BINS = 10
MOST_NODES = 60  # lines of more could not be distinguished


def reliability_points(run: Run) -> tuple[list[float], list[float], list[int]] | None:
    """Return mean learned and mean true probability, and number of edges, of each bin; None without a truth."""
    columns = run.edges.each_once()
    if "truth" not in columns:
        return None
    counts = (
        np.ones(len(columns), dtype=bool)
        if "identifiable" not in columns
        else columns["identifiable"] == FLAGS.index("yes")
    )
    if not counts.any():
        return None
    nodes = len(run.record.node_names)

    def matrix(values: np.ndarray) -> torch.Tensor:
        placed = np.zeros((nodes, nodes), dtype=values.dtype)
        placed[columns.index.target, columns.index.source] = values
        return torch.from_numpy(placed)

    probs, truth = matrix(columns.acts.astype(np.float32)), matrix(columns["truth"].astype(np.float32))
    found = reliability(probs, truth, num_bins=BINS, learned=matrix(counts))
    return found.predicted.tolist(), found.true.tolist(), found.count.tolist()


def rank_shares(goodness: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return for each node the share of targets in each bin of ranks over what is expected; 1 is right everywhere.

    ``goodness``  the fit test, as ``record.json`` has it
    """
    names = goodness.get("names", [])[:MOST_NODES]
    tests = goodness.get("ranks", [])
    return {
        name: [count / expected for count, expected in zip(test["counts"], test["expected"], strict=True)]
        for name, test in zip(names, tests, strict=False)
        if test["counts"] and all(test["expected"])
    }


def draw_reliability(run: Run) -> Figure | None:
    """Return the reliability diagram for a paper."""
    points = reliability_points(run)
    if points is None:
        return None
    figure = Figure(figsize=(3.4, 3.2), layout="constrained")
    reliability_on(figure.subplots(), points)
    return figure


def reliability_on(axes: Axes, points: tuple[list[float], list[float], list[int]]) -> None:
    """Draw the bins of learned against true probabilities; the area of a point grows with its number of edges."""
    predicted, true, count = points
    axes.plot([0, 1], [0, 1], color=VERMILION, ls="--", lw=1)
    axes.scatter(predicted, true, s=20 + 8 * np.sqrt(count), color=BLUE, zorder=3)
    labels = LABELS["reliability"]
    axes.set(xlabel=labels["x"], ylabel=labels["y"], title=labels["title"], xlim=(-0.03, 1.03))


def draw_ranks(run: Run) -> Figure | None:
    """Return ranks of targets among samples, a line per node, for a paper."""
    shares = rank_shares(run.record.goodness)
    if not shares:
        return None
    figure = Figure(figsize=(4.2, 3.0), layout="constrained")
    ranks_on(figure.subplots(), shares)
    return figure


def ranks_on(axes: Axes, shares: Mapping[str, Sequence[float]]) -> None:
    """Draw a line per node: 1 everywhere for a model whose distribution is right."""
    axes.axhline(1, color=VERMILION, ls="--", lw=1)
    for values in shares.values():
        axes.step(np.linspace(0, 1, len(values) + 1), [*values, values[-1]], where="post", color=BLUE, lw=0.8)
    labels = LABELS["ranks"]
    axes.set(xlabel=labels["x"], ylabel=labels["y"], title=labels["title"])


def coverage_on(axes: Axes, points: Sequence[Mapping[str, float]]) -> None:
    """Draw the observed coverage at each nominal level; bars are the range over the nodes."""
    nominal, covered, low, high = (
        np.array([point[name] for point in points]) for name in ("nominal", "covered", "low", "high")
    )
    axes.plot([0, 1], [0, 1], color=VERMILION, ls="--", lw=1)
    axes.errorbar(nominal, covered, [covered - low, high - covered], color=BLUE, fmt="o", capsize=4, zorder=3)
    labels = LABELS["coverage"]
    axes.set(xlabel=labels["x"], ylabel=labels["y"], title=labels["title"], xlim=(0, 1.03), ylim=(0, 1.03))
    axes.set_xticks(nominal)


def coverage_points(run: Run) -> list[dict[str, float]]:
    """Return nominal and observed coverage of each interval level, and the range of the latter over the nodes."""
    found = []
    for one in run.record.goodness.get("coverage", []):
        shares = [share for share in one["by_number"] if share is not None]
        if one["overall"] is not None and shares:
            found.append(
                {"nominal": one["nominal"], "covered": one["overall"], "low": min(shares), "high": max(shares)}
            )
    return found

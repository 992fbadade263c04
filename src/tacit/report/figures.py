"""Figures for papers: heatmaps, the graph, edges by situation, losses, reliability, ranks and coverage."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.assessment.uncertainty import reliability
from tacit.atomic_files import made, write_together
from tacit.edges import FLAGS
from tacit.records import Run
from tacit.report.matrix import draw_histogram, draw_matrix, figure_files
from tacit.report.network import draw_run_network
from tacit.report.places import Places
from tacit.report.shared import BLUE, ERROR_COLOURS, LABELS, PROBABILITY_COLOURS, VERMILION, panel_titles
from tacit.report.situations import draw_situations

TITLES = {
    "train_loss": "training loss",
    "validation_loss": "validation loss",
    "edge_prob_mae": "edge probability error",
}


class Curve(NamedTuple):
    """A number after each epoch: ``lines`` has one list per replica, None once it was dropped."""

    key: str
    title: str
    epochs: list[int]
    lines: list[list[float | None]]
    optimal: float | None


def training_curves(run: Run) -> list[Curve]:
    """Return the curves of a run; none where it was fitted in closed form."""
    epochs = [line["epoch"] for line in run.history]
    found = []
    for key, title in TITLES.items():
        if run.history and key in run.history[0]:
            lines = [list(values) for values in zip(*(line[key] for line in run.history), strict=True)]
            found.append(Curve(key, title, epochs, lines, run.record.optimal.get(key)))
    return found


def draw_curve(axes: Axes, curve: Curve, best: int) -> None:
    """Draw a line for each replica, that of the ``best`` on top, and the optimal value where it is known."""
    for replica, line in enumerate(curve.lines):
        kept = replica == best
        values = [np.nan if value is None else value for value in line]
        style: dict[str, Any] = (
            {"color": BLUE, "lw": 1.8, "zorder": 3} if kept else {"color": "0.7", "lw": 0.8, "zorder": 2}
        )
        axes.plot(curve.epochs, values, marker=".", markersize=3, **style)  # a replica may have one epoch only
    if curve.optimal is not None:
        axes.axhline(curve.optimal, color=VERMILION, ls="--", lw=1, label=LABELS["training"]["optimal"])
        axes.legend(frameon=False)
    axes.set(title=curve.title, xlabel=LABELS["training"]["x"])


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


HEIGHT = 3.0  # inches
STYLE: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}


def draw_figures(run: Run, directory: Path, places: Places | None = None) -> list[Path]:
    """Draw the figures of a run into ``directory`` as PNG, PDF and SVG, and return their paths."""
    with mpl.rc_context(STYLE):
        if run.edges.index.has_all_pairs:
            shown = panels(run)
            probs, row = _side_by_side(len(shown), 3.4)
            for axes, (title, matrix, colours, top) in zip(row, shown, strict=True):
                draw_matrix(axes, matrix, title=title, colours=colours, limits=(0.0, top))
        else:
            probs = draw_histogram(run.edges.each_once())
        figures: dict[str, Figure | None] = {"edge_probs": probs, "network": draw_run_network(run, places)}
        if curves := training_curves(run):  # none if fitted in closed form
            figures["losses"], row = _side_by_side(len(curves), 4.2)
            for axes, curve in zip(row, curves, strict=True):
                draw_curve(axes, curve, run.record.best_replica)
        figures |= {"reliability": draw_reliability(run), "ranks": draw_ranks(run), "edges_by": draw_situations(run)}
        drawn = [figure_files(figure, name) for name, figure in figures.items() if figure is not None]
    files = {name: data for one in drawn for name, data in one.items()}
    with made(directory, parents=False):
        write_together(directory, files)
    return [directory / name for name in files]


def panels(run: Run) -> list[tuple[str, np.ndarray, str, float]]:
    """Return title, matrix, colours and top of the scale of each heatmap: learned, and where known true and error.

    With evidence the first shows which edges exist; the second is empty where an edge is not kept.
    """
    has_evidence = "exists" in run.edges
    names = ["exists", "probability"] if has_evidence else ["probability"]
    shown = {name: (run.edges.matrix(name), PROBABILITY_COLOURS, 1.0) for name in names}
    if run.record.true_edge_probs is not None:
        truth = np.array(run.record.true_edge_probs)
        error = run.edges.matrix("error")
        shown["truth"] = (truth, PROBABILITY_COLOURS, 1.0)
        shown["error"] = (error, ERROR_COLOURS, max(float(error.max()), 1e-3))
    titles = panel_titles(has_evidence=has_evidence)
    return [(titles[name], *panel) for name, panel in shown.items()]


def _side_by_side(count: int, width: float) -> tuple[Figure, list[Any]]:
    """Return a figure and its axes in a row, with fixed space for labels: measuring them takes as long as drawing."""
    figure = Figure(figsize=(width * count, HEIGHT))
    left, right, between = (inches / (width * count) for inches in (0.7, 0.25, 0.75))
    wide = (1 - left - right - (count - 1) * between) / count
    row = figure.subplots(1, count, squeeze=False)[0]
    figure.subplots_adjust(left, 0.5 / HEIGHT, 1 - right, 1 - 0.35 / HEIGHT, wspace=between / wide)
    return figure, list(row)

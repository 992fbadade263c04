"""Figures for papers: heatmaps of the edge probabilities, the graph, edges by situation, training losses, trust."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from tacit.atomic_files import made, write_together
from tacit.records import Run
from tacit.report.listed import draw_histogram
from tacit.report.matrix import draw_matrix
from tacit.report.network import draw_run_network
from tacit.report.places import Places
from tacit.report.saving import figure_files
from tacit.report.shared import ERROR_COLOURS, PROBABILITY_COLOURS, panel_titles
from tacit.report.situation_figure import draw_situations
from tacit.report.training import draw_curve, training_curves
from tacit.report.trust import draw_ranks, draw_reliability

HEIGHT = 3.0  # inches
STYLE: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}


def draw_figures(run: Run, directory: Path, places: Places | None = None) -> list[Path]:
    """Draw the figures of a run into ``directory`` as PNG, PDF and SVG, and return their paths."""
    with mpl.rc_context(STYLE):
        probs = draw_histogram(run.edges.each_once()) if not run.edges.index.has_all_pairs else _matrices(run)
        figures: dict[str, Figure | None] = {"edge_probs": probs, "network": draw_run_network(run, places)}
        figures |= {"losses": _losses(run), "reliability": draw_reliability(run), "ranks": draw_ranks(run)}
        figures |= {"edges_by": draw_situations(run)}
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


def _matrices(run: Run) -> Figure:
    shown = panels(run)
    figure, row = _side_by_side(len(shown), 3.4)
    for axes, (title, matrix, colours, top) in zip(row, shown, strict=True):
        draw_matrix(axes, matrix, title=title, colours=colours, limits=(0.0, top))
    return figure


def _losses(run: Run) -> Figure | None:
    shown = training_curves(run)
    if not shown:  # fitted in closed form
        return None
    figure, row = _side_by_side(len(shown), 4.2)
    for axes, curve in zip(row, shown, strict=True):
        draw_curve(axes, curve, run.record.best_replica)
    return figure

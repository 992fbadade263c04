"""Pieces of the figures that studies are made of: heatmaps side by side, curves with a band."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from tacit.report.matrix import draw_matrix
from tacit.report.shared import BLUE, ERROR_COLOURS, PROBABILITY_COLOURS, VERMILION

COLOURS = (BLUE, VERMILION, "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


def heatmap_pair(rows: Mapping[str, Any], truth: Any) -> Figure:
    """Draw learned probabilities and absolute errors, a row for each name."""
    figure = Figure(figsize=(6.4, 2.9 * len(rows)), layout="constrained")
    axes = figure.subplots(len(rows), 2, squeeze=False)
    for (name, learned), (left, right) in zip(rows.items(), axes, strict=True):
        matrix = np.asarray(learned)
        error = np.abs(matrix - np.asarray(truth))
        for axis, values, colours, top, title in (
            (left, matrix, PROBABILITY_COLOURS, 1.0, f"{name}: learned"),
            (right, error, ERROR_COLOURS, max(float(error.max()), 1e-3), "absolute error"),
        ):
            draw_matrix(axis, values, title=title, colours=colours, limits=(0.0, top))
    return figure


def bands(
    panels: Mapping[str, Mapping[str, Any]], x: Sequence[float], optimal: Mapping[str, float], xlabel: str
) -> Figure:
    """Draw mean and one deviation of lines (run, x) by name, a panel for each title."""
    figure = Figure(figsize=(3.6 * len(panels), 3.0), layout="constrained")
    for axis, (title, lines) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        for (name, values), colour in zip(lines.items(), COLOURS, strict=False):
            matrix = np.asarray(values, dtype=float)
            mean, deviation = matrix.mean(0), matrix.std(0, ddof=1 if len(matrix) > 1 else 0)
            axis.plot(x, mean, color=colour, label=name)
            axis.fill_between(x, mean - deviation, mean + deviation, color=colour, alpha=0.2, linewidth=0)
        if title in optimal:
            axis.axhline(optimal[title], color="black", linestyle="--", linewidth=0.8)
        axis.set(title=title, xlabel=xlabel)
    figure.axes[0].legend(fontsize=7)
    return figure

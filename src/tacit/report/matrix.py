"""Heatmaps and histograms of numbers of edges, and the formats of figures.

Pieces of the figures that studies are made of: heatmaps side by side, curves with a band.

A figure in the formats that papers take: PNG, PDF and SVG, the same bytes for the same figure.
"""

import warnings
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

import matplotlib as mpl
import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tacit.edges import EdgeTable
from tacit.report.shared import BLUE, ERROR_COLOURS, LABELS, PROBABILITY_COLOURS, VERMILION, short

# No date in any file, and names inside an SVG that do not change from one drawing to the next.
METADATA: dict[str, dict[str, Any]] = {
    "png": {},
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
}
STEADY: Any = {"svg.hashsalt": "tacit"}
DOTS_PER_INCH = 150


def figure_files(
    figure: Figure, name: str, suffixes: Sequence[str] = tuple(METADATA), *, dots_per_inch: int = DOTS_PER_INCH
) -> dict[str, bytes]:
    """Return the file of each format by its name."""
    files = {}
    with mpl.rc_context(STEADY), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # a name in letters that the font lacks
        engine = figure.get_layout_engine()
        if engine is not None:  # the layout of labels and titles is computed once for all formats
            engine.execute(figure)
            figure.set_layout_engine(None)
        for suffix in suffixes:
            drawn = BytesIO()
            figure.savefig(drawn, format=suffix, dpi=dots_per_inch, metadata=METADATA[suffix])
            files[f"{name}.{suffix}"] = drawn.getvalue()
    return files


HISTOGRAM_BINS = 20


def histogram(columns: EdgeTable) -> tuple[Int[np.ndarray, " bin"], np.ndarray]:
    """Return how many candidates are in each bin of ``exists``, or without it of probability, and the bins' edges."""
    counts, edges = np.histogram(columns.decides, bins=HISTOGRAM_BINS, range=(0, 1))
    return counts, edges


def histogram_title(columns: EdgeTable) -> str:
    """Return what the histogram shows."""
    return (
        "learned probability of the candidates" if "exists" not in columns else "probability that the candidates exist"
    )


def draw_histogram(columns: EdgeTable) -> Figure:
    """Return the histogram for a paper."""
    counts, edges = histogram(columns)
    figure = Figure(figsize=(4.2, 3.0), layout="constrained")
    axes = figure.subplots()
    axes.bar(edges[:-1], counts, width=np.diff(edges), align="edge", color=BLUE)
    labels = LABELS["histogram"]
    axes.set(xlabel=labels["x"], ylabel=labels["y"], title=histogram_title(columns))
    return figure


MOST_TICKS = 40  # names along a side; of more nodes every second, third, ... is named
LONGEST_NAME = 18  # letters
NOT_KNOWN = "#e4e6e9"  # of cells without a number


def draw_matrix(
    axes: Axes,
    matrix: Float[np.ndarray, "target source"],
    *,
    title: str = "",
    colours: str = PROBABILITY_COLOURS,
    limits: tuple[float, float] = (0.0, 1.0),
    names: Sequence[str] | None = None,
    label: str = "",
) -> None:
    """Draw a matrix with its colour bar; without ``names`` the sides have the numbers of the nodes."""
    low, top = limits
    axes.set_facecolor(NOT_KNOWN)
    image = axes.imshow(matrix, cmap=colours, vmin=low, vmax=top, interpolation="nearest")
    axes.set(xlabel=LABELS["matrix"]["x"], ylabel=LABELS["matrix"]["y"])
    axes.set_title(title, parse_math=False)
    if names is None:
        for side in (axes.xaxis, axes.yaxis):
            side.set_major_locator(MaxNLocator(integer=True, nbins=6))
    else:
        shown = np.arange(0, len(names), -(-len(names) // MOST_TICKS) if names else 1)
        texts = [short(names[int(place)], LONGEST_NAME) for place in shown]
        size = float(np.clip(180 / max(1, len(texts)), 4.5, 9))  # as large as they fit
        upright = len(texts) > 5 or max(map(len, texts), default=0) > 8
        axes.set_xticks(shown, texts, rotation=90 if upright else 0, fontsize=size, parse_math=False)
        axes.set_yticks(shown, texts, fontsize=size, parse_math=False)
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.8)
    bar.set_label(label, parse_math=False)


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

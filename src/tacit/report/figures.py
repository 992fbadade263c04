"""Figures for papers: heatmaps of the edge probabilities and losses during training (PNG and PDF)."""

from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from tacit.records import Run
from tacit.report.listed import draw_histogram
from tacit.report.network import draw_run_network
from tacit.report.trust import draw_ranks, draw_reliability
from tacit.whole_files import made, write_whole

# Readable for colour-blind people and in grey: probability from light to dark, error likewise in another hue.
PROBABILITY_COLOURS, ERROR_COLOURS = "viridis", "magma"
STYLE: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}


def draw_figures(run: Run, directory: Path) -> list[Path]:
    """Draw the figures of a run into ``directory`` and return their paths."""
    with mpl.rc_context(STYLE):
        probs = _matrices(run) if run.listed is None else draw_histogram(run.listed)
        figures = {"edge_probs": probs, "losses": _losses(run)}
        if run.record.preparation:  # of a person's own data, whose nodes have names and perhaps places
            figures["network"] = draw_run_network(run)
        found = {"reliability": draw_reliability(run), "ranks": draw_ranks(run)}
        figures |= {name: figure for name, figure in found.items() if figure is not None}
    paths = []
    for name, figure in figures.items():
        for suffix in ("png", "pdf"):
            paths.append(directory / f"{name}.{suffix}")
            with made(directory, parents=False):
                write_whole(paths[-1], figure_file(figure, suffix, dpi=150))
    return paths


def figure_file(figure: Figure, suffix: str, dpi: int) -> bytes:
    """Return a figure as a PNG or PDF file, whose bytes depend on what is drawn and not on when."""
    drawn = BytesIO()
    undated: Any = {"CreationDate": None} if suffix == "pdf" else None
    figure.savefig(drawn, format=suffix, dpi=dpi, bbox_inches="tight", metadata=undated)
    return drawn.getvalue()


def panels(run: Run) -> list[tuple[str, np.ndarray, str, float]]:
    """Return title, matrix, colours and top of the scale of each heatmap: learned, and where known true and error."""
    learned = np.array(run.edge_probs)
    if run.record.true_edge_probs is None:
        return [("learned edge probability", learned, PROBABILITY_COLOURS, 1.0)]
    truth = np.array(run.record.true_edge_probs)
    error = np.abs(learned - truth)
    return [
        ("learned edge probability", learned, PROBABILITY_COLOURS, 1.0),
        ("true edge probability", truth, PROBABILITY_COLOURS, 1.0),
        ("absolute error", error, ERROR_COLOURS, max(float(error.max()), 1e-3)),
    ]


def curves(run: Run) -> list[tuple[str, list[int], list[list[float | None]], float | None]]:
    """Return title, epochs, one line per replica and the optimal value of each curve during training."""
    epochs = [line["epoch"] for line in run.history]
    titles = {
        "train_loss": "training loss",
        "validation_loss": "validation loss",
        "edge_prob_mae": "edge probability error",
    }
    found = []
    for key, title in titles.items():
        if run.history and key in run.history[0]:
            lines = [list(values) for values in zip(*(line[key] for line in run.history), strict=True)]
            found.append((title, epochs, lines, run.record.optimal.get(key)))
    return found


def _matrices(run: Run) -> Figure:
    shown = panels(run)
    figure = Figure(figsize=(3.4 * len(shown), 3.0), layout="constrained")
    for axes, (title, matrix, colours, top) in zip(
        figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True
    ):
        image = axes.imshow(matrix, cmap=colours, vmin=0, vmax=top, interpolation="nearest")
        axes.set(title=title, xlabel="source (sends)", ylabel="target (receives)")
        figure.colorbar(image, ax=axes, shrink=0.8)
    return figure


def _losses(run: Run) -> Figure:
    shown = curves(run)
    figure = Figure(figsize=(4.2 * max(1, len(shown)), 3.0), layout="constrained")
    for axes, (title, epochs, lines, optimal) in zip(
        figure.subplots(1, max(1, len(shown)), squeeze=False)[0], shown, strict=False
    ):
        for replica, line in enumerate(lines):
            best = replica == run.record.best_replica
            values = [np.nan if value is None else value for value in line]
            axes.plot(epochs, values, color="#0072b2" if best else "0.7", lw=1.8 if best else 0.8, zorder=2 + best)
        if optimal is not None:
            axes.axhline(optimal, color="#d55e00", ls="--", lw=1, label="optimal")
            axes.legend(frameon=False)
        axes.set(title=title, xlabel="epoch")
    return figure

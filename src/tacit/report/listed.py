"""Candidates of many nodes: how many edges are how likely."""

import numpy as np
from jaxtyping import Int
from matplotlib.figure import Figure

from tacit.edges import EdgeTable
from tacit.report.shared import BLUE, LABELS

BINS = 20


def histogram(columns: EdgeTable) -> tuple[Int[np.ndarray, " bin"], np.ndarray]:
    """Return how many candidates are in each bin of ``exists``, or without it of probability, and the bins' edges."""
    counts, edges = np.histogram(columns.decides, bins=BINS, range=(0, 1))
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

"""Candidates of many nodes: how many edges are how likely."""

import numpy as np
from jaxtyping import Int
from matplotlib.figure import Figure

from tacit.records import ListedEdges

BINS = 20
COLOUR = "#0072b2"


def histogram(listed: ListedEdges) -> tuple[Int[np.ndarray, " bin"], np.ndarray]:
    """Return how many candidates are in each bin of ``exists``, or without it of probability, and the bins' edges."""
    values = np.array(listed.probability if listed.exists is None else listed.exists, dtype=float)
    counts, edges = np.histogram(np.nan_to_num(values), bins=BINS, range=(0, 1))
    return counts, edges


def histogram_title(listed: ListedEdges) -> str:
    """Return what the histogram shows."""
    return "learned probability of the candidates" if listed.exists is None else "do the candidates exist?"


def draw_histogram(listed: ListedEdges) -> Figure:
    """Return the histogram for a paper."""
    counts, edges = histogram(listed)
    figure = Figure(figsize=(4.2, 3.0), layout="constrained")
    axes = figure.subplots()
    axes.bar(edges[:-1], counts, width=np.diff(edges), align="edge", color=COLOUR)
    axes.set(xlabel="probability", ylabel="candidates", title=histogram_title(listed))
    return figure

"""Candidates of many nodes: how many edges are how probable."""

import numpy as np
from jaxtyping import Int
from matplotlib.figure import Figure

from tacit.records import ListedEdges

BINS = 20
COLOUR = "#0072b2"
TITLE = "learned probability of the candidates"


def histogram(listed: ListedEdges) -> tuple[Int[np.ndarray, " bin"], np.ndarray]:
    """Return how many candidates are in each bin of probability, and the edges of the bins."""
    counts, edges = np.histogram(np.nan_to_num(np.array(listed.probability, dtype=float)), bins=BINS, range=(0, 1))
    return counts, edges


def draw_histogram(listed: ListedEdges) -> Figure:
    """Return the histogram for a paper."""
    counts, edges = histogram(listed)
    figure = Figure(figsize=(4.2, 3.0), layout="constrained")
    axes = figure.subplots()
    axes.bar(edges[:-1], counts, width=np.diff(edges), align="edge", color=COLOUR)
    axes.set(xlabel="probability", ylabel="candidates", title=TITLE)
    return figure

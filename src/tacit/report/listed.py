"""Candidates of many nodes: how many edges are how probable, the strongest of them, and those that are drawn."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Int
from matplotlib.figure import Figure

from tacit.records import ListedEdges, Run

BINS = 20
COLOUR = "#0072b2"
TITLE = "learned probability of the candidates"


def strongest_listed(run: Run, count: int) -> list[dict[str, Any]]:
    """Return the most probable candidates between different nodes, the most probable first."""
    listed, names = run.listed, run.record.node_names
    if listed is None:
        return []
    unknown = dict.fromkeys(("truth", "std_error", "low", "high", "identifiable"))
    return [
        {"source": names[j], "target": names[i], "probability": probability, **unknown}
        for i, j, probability in reversed(most_probable(listed, 0.0, count))
    ]


def most_probable(listed: ListedEdges, threshold: float, count: int) -> list[tuple[int, int, float]]:
    """Return target, source and probability of the most probable edges between different nodes, the highest last.

    >>> edges = ListedEdges(source=[1, 2, 0], target=[0, 0, 0], probability=[0.3, 0.8, 1.0])
    >>> most_probable(edges, 0.1, 5)
    [(0, 1, 0.3), (0, 2, 0.8)]
    """
    probs = np.array(listed.probability)
    chosen = np.flatnonzero((probs >= threshold) & (np.array(listed.source) != np.array(listed.target)))
    order = chosen[np.argsort(probs[chosen], kind="stable")][-count:] if count else chosen[:0]
    return [(listed.target[edge], listed.source[edge], listed.probability[edge]) for edge in order.tolist()]


def histogram(listed: ListedEdges) -> tuple[Int[np.ndarray, " bin"], np.ndarray]:
    """Return how many candidates are in each bin of probability, and the edges of the bins."""
    counts, edges = np.histogram(listed.probability, bins=BINS, range=(0, 1))
    return counts, edges


def draw_histogram(listed: ListedEdges) -> Figure:
    """Return the histogram for a paper."""
    counts, edges = histogram(listed)
    figure = Figure(figsize=(4.2, 3.0), layout="constrained")
    axes = figure.subplots()
    axes.bar(edges[:-1], counts, width=np.diff(edges), align="edge", color=COLOUR)
    axes.set(xlabel="probability", ylabel="candidates", title=TITLE)
    return figure


def interactive_histogram(listed: ListedEdges) -> go.Figure:
    """Return the histogram for a page."""
    counts, edges = histogram(listed)
    middles = (edges[:-1] + edges[1:]) / 2
    bars = go.Bar(x=middles.tolist(), y=counts.tolist(), marker={"color": COLOUR}, width=1 / BINS, showlegend=False)
    figure = go.Figure(bars)
    figure.update_xaxes(title="probability", range=[0, 1])
    figure.update_yaxes(title="candidates")
    return figure.update_layout(title=TITLE)

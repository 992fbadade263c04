"""A learned graph drawn over places: nodes where they are, edges as thick as they are probable."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

Places = Float[np.ndarray, "node 2"]
Probs = Float[np.ndarray, "node node"]
SHOWN_FROM = 0.1  # edges below are not drawn
NODE, EDGE = "#d55e00", "#0072b2"
NAMES_UP_TO = 40


def circle(num_nodes: int) -> Places:
    """Return places on a circle, for nodes that have none."""
    angles = np.linspace(0, 2 * math.pi, num_nodes, endpoint=False)
    return np.stack([np.sin(angles), np.cos(angles)], axis=1)


def draw_network(
    edge_probs: Probs,
    names: Sequence[str],
    places: Places | None = None,
    *,
    globe: bool = True,
    threshold: float = SHOWN_FROM,
    title: str = "",
) -> Figure:
    """Return the figure. ``places`` are latitude and longitude on a ``globe``, else any two coordinates.

    A thin end of an edge is where it starts, its arrow where it is read.
    """
    if places is None:
        places, globe = circle(len(names)), False
    x, y = (places[:, 1], places[:, 0]) if globe else (places[:, 0], places[:, 1])
    figure = Figure(figsize=(6.4, 5.6), layout="constrained")
    axes = figure.subplots()
    rows, columns = np.nonzero((edge_probs >= threshold) & ~np.eye(len(names), dtype=bool))
    for i, j in sorted(zip(rows, columns, strict=True), key=lambda edge: edge_probs[edge]):
        probability = float(edge_probs[i, j])
        axes.annotate(
            "",
            xy=(x[i], y[i]),
            xytext=(x[j], y[j]),
            arrowprops={
                "arrowstyle": "-|>",
                "color": EDGE,
                "alpha": min(1.0, 0.15 + 0.75 * probability),
                "lw": 0.3 + 2.2 * probability,
                "shrinkA": 4,
                "shrinkB": 4,
                "connectionstyle": "arc3,rad=0.12",
            },
        )
    axes.scatter(x, y, s=28, color=NODE, zorder=3)
    if len(names) <= NAMES_UP_TO:
        for place, name in enumerate(names):
            axes.annotate(name, (x[place], y[place]), xytext=(4, 4), textcoords="offset points", fontsize=7)
    if globe:
        axes.set_aspect(1 / math.cos(math.radians(float(places[:, 0].mean()))))
        axes.set(xlabel="longitude", ylabel="latitude")
    else:
        axes.set_aspect("equal")
        axes.set_axis_off()
    axes.set_title(title or f"edges with probability {threshold:g} or more, {len(rows)} of them")
    return figure

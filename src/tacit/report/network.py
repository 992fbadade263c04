"""A learned graph drawn over places: nodes where they are, edges as thick as they are probable."""

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from matplotlib.figure import Figure

from tacit.records import Run
from tacit.report.listed import most_probable

Places = Float[np.ndarray, "node 2"]
Probs = Float[np.ndarray, "node node"]
ShownEdge = tuple[int, int, float]  # target, source, probability
SHOWN_FROM = 0.1  # edges below are not drawn
MOST_EDGES = 300  # more could not be told apart; the most probable are drawn
NODE, EDGE = "#d55e00", "#0072b2"
NAMES_UP_TO = 40


def circle(num_nodes: int) -> Places:
    """Return places on a circle, for nodes that have none."""
    angles = np.linspace(0, 2 * math.pi, num_nodes, endpoint=False)
    return np.stack([np.sin(angles), np.cos(angles)], axis=1)


def shown_edges(edge_probs: Probs, threshold: float = SHOWN_FROM) -> list[ShownEdge]:
    """Return target, source and probability of the edges to draw, the most probable last, so that they lie on top.

    >>> shown_edges(np.array([[0.9, 0.2], [0.7, 0.0]]))
    [(0, 1, 0.2), (1, 0, 0.7)]
    """
    between = (edge_probs >= threshold) & ~np.eye(len(edge_probs), dtype=bool)
    edges = [(int(i), int(j), float(edge_probs[i, j])) for i, j in np.argwhere(between)]
    return sorted(edges, key=lambda edge: edge[2])[-MOST_EDGES:]


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

    The arrow of an edge is at the node that reads.
    """
    edges = shown_edges(edge_probs, threshold)
    return _drawn(edges, names, places, globe, title or _caption(len(edges), threshold))


def _drawn(edges: list[ShownEdge], names: Sequence[str], places: Places | None, globe: bool, title: str) -> Figure:
    """Return the figure of edges that were chosen."""
    x, y, globe = _positions(places, len(names), globe)
    figure = Figure(figsize=(6.4, 5.6), layout="constrained")
    axes = figure.subplots()
    for i, j, probability in edges:
        axes.annotate(
            "",
            xy=(x[i], y[i]),
            xytext=(x[j], y[j]),
            arrowprops={
                "arrowstyle": "-|>",
                "color": EDGE,
                "alpha": _opacity(probability),
                "lw": _width(probability),
                "shrinkA": 4,
                "shrinkB": 4,
                "connectionstyle": "arc3,rad=0.12",
            },
        )
    axes.scatter(x, y, s=28, color=NODE, zorder=3)
    if len(names) <= NAMES_UP_TO:
        for place, name in enumerate(names):
            axes.annotate(
                name,
                (x[place], y[place]),
                xytext=(4, 4),
                textcoords="offset points",
                fontsize=7,
                parse_math=False,  # a name is a name, whatever it is made of
            )
    if globe:
        axes.set_aspect(_stretch(y))
        axes.set(xlabel="longitude", ylabel="latitude")
    else:
        axes.set_aspect("equal")
        axes.set_axis_off()
    axes.set_title(title)
    return figure


def draw_run_network(run: Run) -> Figure:
    """Return the figure of a run, over the coordinates that its record has."""
    edges, names, places, globe = _content(run)
    return _drawn(edges, names, places, globe, _caption(len(edges)))


def interactive_network(run: Run) -> go.Figure:
    """Return the same for a page; a node says which others it reads."""
    edges, names, places, globe = _content(run)
    x, y, globe = _positions(places, len(names), globe)
    figure = go.Figure(
        go.Scatter(
            x=x,
            y=y,
            mode="markers+text" if len(names) <= NAMES_UP_TO else "markers",
            text=[plain_text(name) for name in names],
            textposition="top center",
            marker={"color": NODE, "size": 9},
            customdata=[_reads(i, edges, names) for i in range(len(names))],
            hovertemplate="%{text}<br>%{customdata}<extra></extra>",
        )
    )
    arrows = [  # all at once: adding one after another takes a time that grows with the square of their number
        {
            "x": x[i],
            "y": y[i],
            "ax": x[j],
            "ay": y[j],
            "axref": "x",
            "ayref": "y",
            "text": "",
            "arrowhead": 2,
            "arrowcolor": EDGE,
            "opacity": _opacity(probability),
            "arrowwidth": _width(probability),
            "standoff": 6,
            "startstandoff": 6,
        }
        for i, j, probability in edges
    ]
    figure.update_layout(annotations=arrows)
    figure.update_xaxes(title="longitude" if globe else None, visible=globe)
    figure.update_yaxes(title="latitude" if globe else None, visible=globe)
    figure.update_yaxes(scaleanchor="x", scaleratio=_stretch(y) if globe else 1)
    return figure.update_layout(title=_caption(len(edges)), height=440, margin={"l": 50, "r": 10, "t": 36, "b": 44})


def _content(run: Run) -> tuple[list[ShownEdge], list[str], Places | None, bool]:
    """Return edges, names and places of what is drawn; of candidates the nodes that an edge is drawn to or from."""
    names = run.record.node_names
    places, globe = _places_of(run)
    if run.listed is None:
        return shown_edges(_learnable(run)), names, places, globe
    edges = most_probable(run.listed, SHOWN_FROM, MOST_EDGES)
    linked = sorted({node for i, j, _ in edges for node in (i, j)})
    number = {node: place for place, node in enumerate(linked)}
    drawn = [(number[i], number[j], probability) for i, j, probability in edges]
    return drawn, [names[node] for node in linked], None if places is None else places[linked], globe


def _learnable(run: Run) -> Probs:
    """Return the probabilities, 0 for edges that cannot be told from the data: they are not drawn."""
    flags = run.edges.identifiable
    probs = np.array(run.edge_probs, dtype=float)
    return probs if flags is None else np.where(np.array(flags) == "no", 0.0, probs)


def _places_of(run: Run) -> tuple[Places | None, bool]:
    """Return the places of a run's nodes, and whether they are latitudes and longitudes."""
    globe = run.record.config.get("graph", {}).get("metric", "great_circle") == "great_circle"
    places = run.record.coordinates
    return (None if places is None else np.array(places, dtype=float)), globe


def _positions(places: Places | None, num_nodes: int, globe: bool) -> tuple[np.ndarray, np.ndarray, bool]:
    if places is None:
        places, globe = circle(num_nodes), False
    return (places[:, 1], places[:, 0], True) if globe else (places[:, 0], places[:, 1], False)


def _stretch(latitudes: np.ndarray) -> float:
    """Return how much longer a degree of latitude is than one of longitude."""
    middle = float(latitudes.mean()) if latitudes.size else 0.0
    return 1 / max(0.05, math.cos(math.radians(middle)))


def _reads(node: int, edges: list[ShownEdge], names: Sequence[str]) -> str:
    read = [f"{plain_text(names[j])} {probability:.2f}" for i, j, probability in reversed(edges) if i == node]
    return "reads " + ", ".join(read) if read else "reads no other"


def plain_text(name: str) -> str:
    """Return a name as text: plotly takes some marks for formatting."""
    return name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _caption(count: int, threshold: float = SHOWN_FROM) -> str:
    return f"edges with probability {threshold:g} or more, {count} drawn"


def _opacity(probability: float) -> float:
    return min(1.0, 0.15 + 0.75 * probability)


def _width(probability: float) -> float:
    return 0.3 + 2.2 * probability

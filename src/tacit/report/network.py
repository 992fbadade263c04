"""A learned graph for a paper: nodes at their places, edges as thick as they are probable, arrows at who reads.

With evidence the listed edges are drawn, the stronger the more likely they exist; the colour is the sign of the effect.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tacit.records import Run
from tacit.report.curves import arrow_heads, edge_curves
from tacit.report.edge_columns import EdgeColumns, edge_columns, is_symmetric
from tacit.report.places import Coordinates, Places, given_places, label_sides, laid_out, run_places
from tacit.report.shared import LABELLED_UP_TO, LABELS, LIGHT

Probs = Float[np.ndarray, "node node"]
SHOWN_FROM = 0.1  # edges below are not drawn
MOST_EDGES = 300  # the most probable are drawn; more could not be distinguished
PLAIN_NODE = "#444444"  # where edges have the colour of their sign
WIDTH, LOWEST, HIGHEST = 6.4, 2.4, 5.6  # of the figure, in inches
FEW_NODES = 60  # up to here nodes and arrows have their full size


def draw_network(
    edge_probs: Probs,
    names: Sequence[str],
    places: Coordinates | None = None,
    *,
    globe: bool = True,
    threshold: float = SHOWN_FROM,
    title: str = "",
) -> Figure:
    """Return the figure. ``places`` are latitude and longitude on a ``globe``, else any two coordinates.

    Nodes without places are laid out by their most probable edges. The arrow of an edge is at the node that reads.
    """
    target, source = (indices.ravel() for indices in np.indices(edge_probs.shape))
    columns = EdgeColumns(source, target, edge_probs.ravel().astype(float))
    nodes = np.arange(len(names))
    at = laid_out(columns, nodes) if places is None else given_places(places, nodes, globe)
    return _drawn(columns, names, at, threshold, title)


def draw_run_network(run: Run, places: Places | None = None) -> Figure:
    """Return the figure of a run, over the coordinates that its record has or a layout."""
    columns = edge_columns(run)
    places = run_places(run, columns) if places is None else places
    title = "" if columns.exists is None else f"{_count(int(columns.listed.sum()), 'listed edge')}"
    return _drawn(columns, run.record.node_names, places, SHOWN_FROM, title, directed=not is_symmetric(run))


def shown_edges(columns: EdgeColumns, places: Places, threshold: float = SHOWN_FROM) -> EdgeColumns:
    """Return the edges to draw, the most likely last, so that they lie on top."""
    among = columns.listed if columns.exists is not None else columns.drawable & (columns.acts >= threshold)
    among &= np.isin(columns.source, places.node) & np.isin(columns.target, places.node)
    return columns[columns.strongest(MOST_EDGES, among)[::-1]]


def _drawn(
    columns: EdgeColumns,
    names: Sequence[str],
    places: Places,
    threshold: float,
    title: str,
    *,
    directed: bool = True,
) -> Figure:
    edges = shown_edges(columns, places, threshold)
    figure = Figure(figsize=(WIDTH, _height(places)), layout="constrained")
    axes = figure.subplots()
    size = min(1.0, (FEW_NODES / max(1, len(places.node))) ** 0.5)
    _draw_edges(axes, edges, places, size, directed=directed)
    node = LIGHT["node"] if columns.effect is None else PLAIN_NODE
    axes.scatter(places.x, places.y, s=28 * size**2, color=node, zorder=3, linewidths=0)
    if columns.effect is not None:
        kinds = (("raises the target", LIGHT["raises"], "-"), ("lowers the target", LIGHT["lowers"], "-"))
        handles = [Line2D([], [], color=colour, ls=style, label=label) for label, colour, style in kinds]
        axes.legend(handles=handles, frameon=False, fontsize=7, loc="best")
    if len(places.node) <= LABELLED_UP_TO:
        for node, x, y, side in zip(places.node, places.x, places.y, label_sides(places), strict=True):
            axes.annotate(
                names[node],
                (x, y),
                xytext=(4 * side[0], 4 * side[1]),
                textcoords="offset points",
                ha="left" if side[0] > 0 else "right",
                va="bottom" if side[1] > 0 else "top",
                fontsize=7,
                parse_math=False,  # a name is a name, whatever it is made of
            )
    axes.set_aspect(places.stretch)
    if places.kind == "map":
        axes.set(xlabel=LABELS["map"]["x"], ylabel=LABELS["map"]["y"])
    else:
        axes.set_axis_off()
    axes.margins(0.08)
    axes.set_title(title or f"edges with probability {threshold:g} or more, {len(edges)} drawn")
    return figure


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _height(places: Places) -> float:
    """Return the height of a figure without empty room above and below the graph."""
    right, up = (float(np.ptp(values)) if len(values) else 1.0 for values in (places.x, places.y * places.stretch))
    return min(HIGHEST, max(LOWEST, (WIDTH - 0.6) * up / max(right, 1e-9) + 0.9))


def _draw_edges(axes: Axes, edges: EdgeColumns, places: Places, size: float, *, directed: bool) -> None:
    if not len(edges):
        return
    lines = edge_curves(places, edges)
    names = (
        [LIGHT["edge"]] * len(edges)
        if edges.effect is None
        else np.where(edges.effect < 0, LIGHT["lowers"], LIGHT["raises"]).tolist()
    )
    colours = to_rgba_array(names, alpha=np.minimum(1.0, 0.3 + 0.65 * edges.decides))
    acts = edges.acts
    if edges.undirected is not None:  # how often these act is not estimated: a middle width
        acts = np.where(edges.undirected & np.isnan(edges.probability), 0.5, acts)
    widths = (0.3 + 2.2 * acts) * (0.4 + 0.6 * size)
    axes.add_collection(LineCollection(list(lines), colors=colours, linewidths=widths, capstyle="round"))
    arrows = np.full(len(edges), directed) if edges.undirected is None else ~edges.undirected
    if not arrows.any():
        return
    heads = arrow_heads(lines, places, 0.3 * size + 0.7 * size * edges.acts)[arrows]
    axes.add_collection(PolyCollection(list(heads), facecolors=colours[arrows], edgecolors="none", zorder=2.5))

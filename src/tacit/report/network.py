"""A learned graph for a paper: nodes at their places, edges as thick as they are probable, names that do not overlap.

A learned graph for a paper: nodes at their places, edges as thick as they are probable, arrows at who reads.

With evidence the listed edges are drawn, the stronger the more likely they exist; the colour is the sign of the effect.

Names beside the nodes of a drawing: those that matter most first, and of many nodes only names that do not overlap.

The size of a text is estimated from its number of letters: to measure it takes as long as to draw it.
"""

from collections.abc import Sequence
from typing import Literal

import matplotlib as mpl
import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import Normalize, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from tacit.edges import EdgeTable
from tacit.records import Run
from tacit.report.places import Coordinates, Places, given_places, label_sides, laid_out, run_places
from tacit.report.shared import BEND, LABELLED_UP_TO, LABELS, LIGHT, counted, short

SIZE, LETTER, LINE = 7.0, 0.6, 1.25  # points; width of a letter and height of a line, in sizes
GAP = 4.0  # points between a node and its name
LONGEST_NAME = 24  # letters
CORNERS = np.array([[1, 1], [-1, 1], [1, -1], [-1, -1]])
Boxes = Float[np.ndarray, "box 4"]  # left, bottom, right, top in pixels


def draw_labels(axes: Axes, places: Places, names: Sequence[str], weight: Float[np.ndarray, " drawn"]) -> None:
    """Write the names of the drawn nodes, those of the largest ``weight`` first.

    Up to 40 nodes all have their name. Of more only those with a positive weight, where there is space for it.
    """
    axes.autoscale_view()
    axes.apply_aspect()
    unit = axes.figure.dpi / 72
    at = axes.transData.transform(np.stack([places.x, places.y], axis=1))
    texts = [short(names[node], LONGEST_NAME) for node in places.node]
    preferred, all_named = label_sides(places), len(places.node) <= LABELLED_UP_TO
    dots = np.concatenate([at - 2 * unit, at + 2 * unit], axis=1)
    taken = dots[weight > 0] if not all_named else dots
    for place in np.argsort(-weight, kind="stable"):
        if not all_named and weight[place] <= 0:
            break
        sides = np.unique(np.vstack([preferred[place], CORNERS]), axis=0, return_index=True)[1]
        options = np.vstack([preferred[place], CORNERS])[np.sort(sides)]
        boxes = np.stack([_box(at[place], side, len(texts[place]), unit) for side in options])
        crossed = np.array([_overlaps(box, taken) for box in boxes])
        if crossed.min() > 0 and not all_named:
            continue
        best = int(crossed.argmin())
        taken = np.vstack([taken, boxes[best]])
        side = options[best]
        axes.annotate(
            texts[place],
            (places.x[place], places.y[place]),
            xytext=(GAP * side[0], GAP * side[1]),
            textcoords="offset points",
            ha="left" if side[0] > 0 else "right",
            va="bottom" if side[1] > 0 else "top",
            fontsize=SIZE,
            parse_math=False,  # a name is a name, whatever it is made of
            zorder=4,
            path_effects=[withStroke(linewidth=1.8, foreground="white")],  # edges behind it stay apart from it
        )


def _box(
    at: Float[np.ndarray, " 2"], side: Int[np.ndarray, " 2"], letters: int, unit: float
) -> Float[np.ndarray, " 4"]:
    near = at + GAP * unit * side
    far = near + unit * SIZE * side * np.array([LETTER * letters, LINE])
    return np.concatenate([np.minimum(near, far), np.maximum(near, far)])


def _overlaps(box: Float[np.ndarray, " 4"], others: Boxes) -> float:
    """Return the area that a box shares with others, in square pixels."""
    width = np.minimum(box[2], others[:, 2]) - np.maximum(box[0], others[:, 0])
    height = np.minimum(box[3], others[:, 3]) - np.maximum(box[1], others[:, 1])
    return float((width.clip(min=0) * height.clip(min=0)).sum())


POINTS = 17  # of each line
HEAD = 0.026  # length of the largest arrow, in widths of the drawing
NODE_GAP = 0.008  # between an arrow and the middle of its node


def edge_curves(places: Places, edges: EdgeTable) -> Float[np.ndarray, "edge point 2"]:
    r"""Return points along $(1 - t)^2 a + 2 t (1 - t) c + t^2 b$ from source $a$ to target $b$, $c$ beside both."""
    at = np.stack([places.x, places.y * places.stretch], axis=1)  # a unit is as long to the right as up
    row = np.searchsorted(places.node, edges.index.source), np.searchsorted(places.node, edges.index.target)
    start, end = at[row[0]], at[row[1]]
    along = end - start
    beside = (start + end) / 2 + 2 * BEND * np.stack([along[:, 1], -along[:, 0]], axis=1)
    t = np.linspace(0, 1, POINTS)[None, :, None]
    points = (1 - t) ** 2 * start[:, None] + 2 * t * (1 - t) * beside[:, None] + t**2 * end[:, None]
    return np.asarray(points / np.array([1.0, places.stretch]))


def arrow_heads(
    lines: Float[np.ndarray, "edge point 2"], places: Places, size: Float[np.ndarray, " edge"]
) -> Float[np.ndarray, "edge corner 2"]:
    """Return a triangle at the end of each line, along its last piece."""
    unit = np.array([1.0, places.stretch])
    spread = float(max(np.ptp(places.x), np.ptp(places.y * places.stretch), 1e-9))
    end, before = lines[:, -1] * unit, lines[:, -2] * unit
    along = end - before
    along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-12)
    across = np.stack([-along[:, 1], along[:, 0]], axis=1)
    length = HEAD * spread * size[:, None]
    tip = end - NODE_GAP * spread * along
    corners = [tip, tip - length * along + 0.42 * length * across, tip - length * along - 0.42 * length * across]
    return np.asarray(np.stack(corners, axis=1) / unit)


Probs = Float[np.ndarray, "node node"]
SHOWN_FROM = 0.1  # edges below are not drawn
MOST_EDGES = 300  # the most probable are drawn; more could not be distinguished
PLAIN_NODE = "#444444"  # where edges have the colour of their sign
UNLINKED_NODE = "#b8bcc2"  # without a drawn edge
ACTING_COLOURS = "viridis_r"  # an edge that always acts is darkest
WIDTH, LOWEST, HIGHEST = 6.4, 2.4, 5.6  # of the figure, in inches
FEW_NODES, FEW_EDGES = 60, 60  # up to here nodes, lines and arrows have their full size


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
    columns = EdgeTable.of_matrices(names, probability=edge_probs.astype(float))
    nodes = np.arange(len(names))
    at = laid_out(columns, nodes) if places is None else given_places(places, nodes, globe)
    return _drawn(columns, names, at, threshold, title)


def draw_run_network(run: Run, places: Places | None = None) -> Figure:
    """Return the figure of a run, over the coordinates that its record has or a layout."""
    columns = run.edges.each_once()
    places = run_places(run, columns) if places is None else places
    title = "" if "exists" not in columns else counted(int(columns.shown.sum()), "listed edge")
    return _drawn(columns, run.record.node_names, places, SHOWN_FROM, title, directed=not run.record.is_symmetric)


def shown_edges(
    columns: EdgeTable, places: Places, threshold: float | None = None, most: int = MOST_EDGES
) -> EdgeTable:
    """Return the edges to draw, the most likely last, so that they lie on top.

    With a ``threshold`` those at or above it. Without one the listed edges; or without evidence those from 0.1 on.
    """
    if threshold is None:
        threshold = SHOWN_FROM if "exists" not in columns else None
    among = columns.shown if threshold is None else columns.drawable & (columns.decides >= threshold)
    among &= np.isin(columns.index.source, places.node) & np.isin(columns.index.target, places.node)
    return columns.at(columns.strongest(most, among)[::-1])


def _drawn(
    columns: EdgeTable,
    names: Sequence[str],
    places: Places,
    threshold: float,
    title: str,
    *,
    directed: bool = True,
) -> Figure:
    edges = shown_edges(columns, places, threshold if "exists" not in columns else None)
    figure = Figure(figsize=(WIDTH, figure_height(places)), layout="constrained")
    axes = figure.subplots()
    draw_graph(axes, edges, names, places, directed=directed)
    axes.set_title(title or f"edges with probability {threshold:g} or more, {len(edges)} drawn")
    return figure


def draw_graph(
    axes: Axes,
    edges: EdgeTable,
    names: Sequence[str],
    places: Places,
    *,
    directed: bool = True,
    colour_by: Literal["effect", "acts"] = "effect",
    numbers: bool = False,
) -> None:
    """Draw edges and nodes. The width of an edge is how often it acts, and so is its colour where ``colour_by`` says.

    ``numbers``  write beside each edge how often it acts, and the interval where it is known
    """
    size = min(1.0, (FEW_NODES / max(1, len(places.node))) ** 0.5)
    by_sign = colour_by == "effect" and "effect" in edges
    linked = np.isin(places.node, [edges.index.source, edges.index.target])
    node = LIGHT["node"] if "effect" not in edges and colour_by == "effect" else PLAIN_NODE
    colours = [node if has_edge or not len(edges) else UNLINKED_NODE for has_edge in linked]
    axes.scatter(places.x, places.y, s=28 * size**2, c=colours, zorder=3, linewidths=0)
    axes.set_aspect(places.stretch)
    axes.margins(0.08)
    if places.kind == "map":
        axes.set(xlabel=LABELS["map"]["x"], ylabel=LABELS["map"]["y"])
    else:
        axes.set_axis_off()
    _draw_edges(axes, edges, places, size, directed=directed, colour_by=colour_by)
    if by_sign:
        kinds = (("raises the target", LIGHT["raises"], "-"), ("lowers the target", LIGHT["lowers"], "-"))
        handles = [Line2D([], [], color=colour, ls=style, label=label) for label, colour, style in kinds]
        axes.legend(handles=handles, frameon=False, fontsize=7, loc="best")
    elif colour_by == "acts" and len(edges):
        shown = ScalarMappable(Normalize(0, 1), ACTING_COLOURS)
        bar = axes.figure.colorbar(shown, ax=axes, shrink=0.6)
        bar.set_label("acts")
    for place, (x, y) in enumerate(edge_curves(places, edges)[:, POINTS // 2] if numbers and len(edges) else ()):
        if np.isnan(edges["probability"][place]):
            continue
        said = f"{edges['probability'][place]:.2f}"
        if "low" in edges and not np.isnan(edges["low"][place]):
            said += f" [{edges['low'][place]:.2f}, {edges['high'][place]:.2f}]"
        paper = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.75}
        axes.text(x, y, said, fontsize=6.5, ha="center", va="center", bbox=paper, zorder=3.5)
    ends = np.concatenate([edges.index.source, edges.index.target])
    weight = np.bincount(np.searchsorted(places.node, ends), np.tile(edges.decides, 2), len(places.node))
    draw_labels(axes, places, names, weight.astype(float))


def figure_height(places: Places) -> float:
    """Return the height of a figure without empty space above and below the graph."""
    right, up = (float(np.ptp(values)) if len(values) else 1.0 for values in (places.x, places.y * places.stretch))
    return min(HIGHEST, max(LOWEST, (WIDTH - 0.6) * up / max(right, 1e-9) + 0.9))


def _draw_edges(axes: Axes, edges: EdgeTable, places: Places, size: float, *, directed: bool, colour_by: str) -> None:
    if not len(edges):
        return
    lines = edge_curves(places, edges)
    acts = edges.acts
    if "undirected" in edges:  # how often these act is not estimated: a middle width
        acts = np.where(edges["undirected"] & np.isnan(edges["probability"]), 0.5, acts)
    if colour_by == "acts":
        colours = np.array(mpl.colormaps[ACTING_COLOURS](acts), dtype=float)
    elif "effect" in edges:
        colours = to_rgba_array(np.where(edges["effect"] < 0, LIGHT["lowers"], LIGHT["raises"]).tolist())
    else:
        colours = to_rgba_array([LIGHT["edge"]] * len(edges))
    colours[:, 3] = np.minimum(1.0, 0.3 + 0.65 * edges.decides)
    size *= min(1.0, (FEW_EDGES / len(edges)) ** 0.5)
    widths = (0.3 + 2.2 * acts) * (0.4 + 0.6 * size)
    axes.add_collection(LineCollection(list(lines), colors=colours, linewidths=widths, capstyle="round"))
    arrows = np.full(len(edges), directed) if "undirected" not in edges else ~edges["undirected"]
    if not arrows.any():
        return
    heads = arrow_heads(lines, places, 0.3 * size + 0.7 * size * edges.acts)[arrows]
    axes.add_collection(PolyCollection(list(heads), facecolors=colours[arrows], edgecolors="none", zorder=2.5))

"""Where the nodes of a run are drawn: at their coordinates, else where a layout puts them.

Places for nodes that have none: linked nodes near each other, all others apart.

The layout of Fruchterman and Reingold (1991): every two nodes push each other apart with the force $k^2 / d$, an edge
of weight $w$ pulls with $w d^2 / k$, and a weak pull towards the middle keeps parts that are not linked in the picture.
Each step moves every node at most as far as the temperature, which falls to zero. networkx has the same layout, but
takes 3 s for 1,000 nodes on one core; written with arrays it takes a fraction of that.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from tacit.edges import EdgeTable
from tacit.records import Run

Positions = Float[np.ndarray, "node 2"]
STEPS = 80
RING = (1.15, 1.4)  # radii of the ring of nodes without edges, in radii of the others
MIDDLE = 0.6  # pull towards the middle, in units of 1 / k: parts stay together, and do not overlap


def circle(num_nodes: int) -> Positions:
    """Return places on a circle, the first at the top."""
    angles = np.linspace(0, 2 * math.pi, num_nodes, endpoint=False)
    return np.stack([np.sin(angles), np.cos(angles)], axis=1)


def spring_layout(
    num_nodes: int,
    source: Int[np.ndarray, " edge"],
    target: Int[np.ndarray, " edge"],
    weight: Float[np.ndarray, " edge"],
) -> Positions:
    """Return places between -1 and 1; the same graph always has the same.

    >>> places = spring_layout(4, np.array([0, 2]), np.array([1, 3]), np.array([1.0, 1.0]))
    >>> near, far = np.linalg.norm(places[0] - places[1]), np.linalg.norm(places[0] - places[2])
    >>> bool(near < far)
    True
    """
    if num_nodes < 3 or not len(source):
        return circle(num_nodes)
    pulls = np.zeros((num_nodes, num_nodes), dtype=np.float32)
    np.maximum.at(pulls, (source, target), weight.astype(np.float32))
    pulls = np.maximum(pulls, pulls.T)
    np.fill_diagonal(pulls, 0)
    distance = np.float32(1 / math.sqrt(num_nodes))  # k: that of neighbours on an even grid
    places = _start(num_nodes)
    for step in range(STEPS):
        temperature = 0.12 * (1 - step / STEPS) ** 1.5
        moves = _forces(places, pulls, distance) - MIDDLE * distance * places
        lengths = np.linalg.norm(moves, axis=1, keepdims=True)
        places += moves / np.maximum(lengths, 1e-9) * np.minimum(lengths, temperature)
    places = _lying(_gathered(places, np.asarray(pulls.any(axis=1))))
    places -= (places.max(0) + places.min(0)) / 2
    return (places / max(float(np.abs(places).max()), 1e-9)).astype(float)


def _forces(
    places: Float[np.ndarray, "node 2"], pulls: Float[np.ndarray, "node node"], distance: np.float32
) -> Float[np.ndarray, "node 2"]:
    """Return the sum over the others of (pull - push) along the line to them.

    Without matrix products, which for two columns only keep the threads of BLAS busy waiting.
    """
    across, up = (places[None, :, axis] - places[:, None, axis] for axis in (0, 1))
    squares = across**2 + up**2
    np.maximum(squares, 1e-6, out=squares)
    along = pulls * np.sqrt(squares)  # d w / k, times the difference of the places
    along /= distance
    np.divide(distance**2, squares, out=squares)
    along -= squares
    return np.stack([(along * across).sum(1), (along * up).sum(1)], axis=1)


def _gathered(places: Float[np.ndarray, "node 2"], linked: Bool[np.ndarray, " node"]) -> Float[np.ndarray, "node 2"]:
    """Return the places with nodes that have no edge near the others, from which they were pushed far away."""
    middle = places[linked].mean(0)
    distance = np.linalg.norm(places - middle, axis=1, keepdims=True)
    inner, outer = (float(distance[linked].max()) * factor for factor in RING)
    farthest = float(distance.max())
    if farthest <= outer:
        return places
    beyond = inner + (outer - inner) * (distance - inner) / (farthest - inner)
    moved = middle + (places - middle) * beyond / distance.clip(1e-9)
    return np.where((distance > inner) & ~linked[:, None], moved, places)


def _lying(places: Float[np.ndarray, "node 2"]) -> Float[np.ndarray, "node 2"]:
    """Return the places turned so that the longer side of the graph lies: screens are wider than high."""
    centred = places - places.mean(0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    axes *= np.where(
        axes[:, :1] + axes[:, 1:] < 0, -1, 1
    )  # which of two opposite directions is no accident of rounding
    return np.asarray(centred @ axes.T)


def _start(num_nodes: int) -> Float[np.ndarray, "node 2"]:
    """Return places spread evenly over a disc: the golden angle between one node and the next."""
    number = np.arange(num_nodes, dtype=np.float32)
    radius, angle = np.sqrt((number + 0.5) / num_nodes), number * np.float32(math.pi * (3 - math.sqrt(5)))
    return np.stack([radius * np.sin(angle), radius * np.cos(angle)], axis=1).astype(np.float32)


MOST_PLACED = 1000  # nodes; of more, those with the most probable edges are drawn
EDGES_PER_NODE = 3  # of the most probable edges, how many per node pull in a layout: all of them would pull to one heap
Coordinates = Float[np.ndarray, "node 2"]


@dataclass(frozen=True)
class Places:
    """Places of the drawn nodes, to the right and up; a unit up is ``stretch`` times as long as one to the right."""

    node: Int[np.ndarray, " drawn"]
    x: Float[np.ndarray, " drawn"]
    y: Float[np.ndarray, " drawn"]
    kind: Literal["map", "plane", "layout"]
    stretch: float = 1.0


def run_places(run: Run, columns: EdgeTable | None = None) -> Places:
    """Return the places of the nodes of a run."""
    columns = run.edges.each_once() if columns is None else columns
    nodes = np.arange(len(run.record.node_names))
    if len(nodes) > MOST_PLACED:  # of too many, those that the most probable edges link
        strongest = columns.at(columns.strongest(2 * MOST_PLACED, columns.drawable))
        linked = np.stack([strongest.index.source, strongest.index.target], axis=1).ravel()
        found, first = np.unique(linked, return_index=True)
        nodes = np.sort(found[np.argsort(first)][:MOST_PLACED])
    given = run.record.coordinates
    if given is not None:
        globe = run.record.config.get("graph", {}).get("metric", "great_circle") == "great_circle"
        return given_places(np.array(given, dtype=float)[nodes], nodes, globe)
    return laid_out(columns, nodes)


def given_places(coordinates: Coordinates, nodes: Int[np.ndarray, " drawn"], globe: bool) -> Places:
    """Return the places of nodes with coordinates: latitude and longitude on a ``globe``, else any two."""
    if not globe:
        return Places(nodes, coordinates[:, 0], coordinates[:, 1], "plane")
    latitudes = coordinates[:, 0]
    middle = float(latitudes.mean()) if latitudes.size else 0.0
    stretch = 1 / max(0.05, math.cos(math.radians(middle)))  # of a degree of latitude, relative to one of longitude
    return Places(nodes, coordinates[:, 1], latitudes, "map", stretch)


def laid_out(columns: EdgeTable, nodes: Int[np.ndarray, " drawn"]) -> Places:
    """Return the places of a layout of these nodes, by the most probable edges between them."""
    number = np.full(
        int(max(nodes.max(initial=-1), columns.index.source.max(initial=-1), columns.index.target.max(initial=-1))) + 1,
        -1,
    )
    number[nodes] = np.arange(len(nodes))
    among = (
        columns.drawable
        & (columns.decides > 0)
        & (number[columns.index.source] >= 0)
        & (number[columns.index.target] >= 0)
    )
    if columns.shown.any():
        among &= columns.shown  # edges that are not listed pull nothing
    pulling = columns.at(columns.strongest(EDGES_PER_NODE * len(nodes), among))
    found = spring_layout(len(nodes), number[pulling.index.source], number[pulling.index.target], pulling.decides)
    return Places(nodes, found[:, 0], found[:, 1], "layout")


def label_sides(places: Places) -> Int[np.ndarray, "drawn 2"]:
    """Return on which side of each node its name has space: away from the nearest other node, as (-1 or 1, -1 or 1).

    >>> at = np.array([0.0, 1.0]), np.array([0.0, 0.1])
    >>> label_sides(Places(np.arange(2), *at, "plane")).tolist()
    [[-1, -1], [1, 1]]
    """
    at = np.stack([places.x, places.y * places.stretch], axis=1)
    if len(at) < 2:
        return np.ones((len(at), 2), dtype=int)
    apart = np.linalg.norm(at[:, None] - at[None, :], axis=2)
    np.fill_diagonal(apart, np.inf)
    away = at - at[apart.argmin(axis=1)]
    return np.where(away >= 0, 1, -1)

"""Where the nodes of a run are drawn: at their coordinates, else where a layout puts them."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from tacit.edges import EdgeTable
from tacit.records import Run
from tacit.report.layout import spring_layout

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
    nodes = _drawn_nodes(len(run.record.node_names), columns)
    given = run.record.coordinates
    if given is not None:
        globe = run.record.config.get("graph", {}).get("metric", "great_circle") == "great_circle"
        return given_places(np.array(given, dtype=float)[nodes], nodes, globe)
    return laid_out(columns, nodes)


def given_places(coordinates: Coordinates, nodes: Int[np.ndarray, " drawn"], globe: bool) -> Places:
    """Return the places of nodes with coordinates: latitude and longitude on a ``globe``, else any two."""
    if not globe:
        return Places(nodes, coordinates[:, 0], coordinates[:, 1], "plane")
    return Places(nodes, coordinates[:, 1], coordinates[:, 0], "map", _stretch(coordinates[:, 0]))


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


def _drawn_nodes(num_nodes: int, columns: EdgeTable) -> Int[np.ndarray, " drawn"]:
    """Return all nodes, or of too many those that the most probable edges link."""
    if num_nodes <= MOST_PLACED:
        return np.arange(num_nodes)
    strongest = columns.at(columns.strongest(2 * MOST_PLACED, columns.drawable))
    linked = np.stack([strongest.index.source, strongest.index.target], axis=1).ravel()
    found, first = np.unique(linked, return_index=True)
    return np.sort(found[np.argsort(first)][:MOST_PLACED])


def _stretch(latitudes: Float[np.ndarray, " node"]) -> float:
    """Return how much longer a degree of latitude is than one of longitude."""
    middle = float(latitudes.mean()) if latitudes.size else 0.0
    return 1 / max(0.05, math.cos(math.radians(middle)))


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

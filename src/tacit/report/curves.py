"""The lines of edges in a drawing: bent a little to one side, so that an edge and its reverse are two lines."""

import numpy as np
from jaxtyping import Float

from tacit.edges import EdgeTable
from tacit.report.places import Places
from tacit.report.shared import BEND

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

r"""Candidates: nearest neighbours, and the nodes whose past correlates most with a node's present.

Nearest neighbours, found with a k-d tree: time and memory grow with the number of edges, not of all pairs.

On the globe, a place at latitude $\varphi$ and longitude $\lambda$ is a point on the unit sphere,

$$(\cos \varphi \cos \lambda, \; \cos \varphi \sin \lambda, \; \sin \varphi)$$

and the straight-line distance between two points is monotone in their great-circle distance, so it gives the same
order.

Two distances are tied if they agree to one part in $10^9$, about the rounding error (a nanometre on the Earth). Ties
are broken by node order. A tree returns tied neighbours in arbitrary order, so $m > k$ neighbours are requested, and
more if the last of them is tied with the $k$-th.

The nodes whose past correlates most with a node's present, computed in blocks of nodes.

$r_{ij}$ is the correlation of $x_{t,i}$ with $x_{t - \mathrm{lag},j}$ over the times at which both are observed. $m_t$
flags the observed values, and missing values are set to 0, so the sums are matrix products,

$$n_{ij} = \sum_t m_{t,i} m_{t-\mathrm{lag},j}, \qquad
  n_{ij} \bar x_{ij} = \sum_t x_{t,i} m_{t-\mathrm{lag},j}, \qquad \ldots$$

six of them, or one if no value is missing. A block has as many rows as the memory budget allows: all $N^2$ correlations
are computed, but never stored at the same time. With several channels, the most correlated two count.
"""

from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.errors import InputError, require, require_int
from tacit.graph.layouts import EDGE_BYTES, CandidateEdges
from tacit.graph.memory import require_memory

Metric = Literal["great_circle", "euclidean"]
Places = Float[np.ndarray, "node dimension"]

SAME = 1e-9  # distances with a smaller relative difference are tied,
ROUNDING = 1e-15  # as are distances whose difference is smaller than this share of the coordinates
LARGEST = 1e150  # its square is finite
# The neighbours of one block of nodes: distance, node, and four temporaries of 8 bytes each.
TREE_BYTES, NEIGHBOUR_BYTES = 64 * 2**20, 48


def nearest_candidates(coordinates: Float[Tensor, "node dimension"], k: int, *, metric: Metric) -> CandidateEdges:
    """Return the ``k`` nearest other nodes as candidate sources of each node.

    ``metric`` is "great_circle" for latitude and longitude in degrees, or "euclidean" for any coordinates. Ties are
    broken by node order. Every node has k incoming edges and any number of outgoing edges.

    >>> places = torch.tensor([[0.0, 0.0], [0.0, 179.0], [0.0, -179.0]])  # two of them meet at the date line
    >>> nearest_candidates(places, 1, metric="great_circle").sources.tolist()
    [[1], [2], [1]]
    >>> nearest_candidates(places, 1, metric="euclidean").sources.tolist()
    [[1], [0], [0]]
    """
    from scipy.spatial import cKDTree

    _require_places(coordinates, metric)
    num_nodes = len(coordinates)
    require_neighbours(k, num_nodes, torch.device("cpu"))
    places = coordinates.detach().cpu().double().numpy() + 0.0  # no negative zeros
    if metric == "great_circle":
        latitude, longitude = np.deg2rad(places).T
        flat = np.cos(latitude)
        places = np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], axis=1)
    nearest = np.empty((num_nodes, k), dtype=np.int64)
    crowded, nearest_there = _in_crowds(places, k)
    nearest[crowded] = nearest_there
    left = np.setdiff1d(np.arange(num_nodes), crowded, assume_unique=True)
    tree, reach = cKDTree(places), k + 2  # itself, the k nearest, and one more to detect ties
    while len(left):
        reach = min(reach, num_nodes)
        again = []
        size = max(1, TREE_BYTES // (NEIGHBOUR_BYTES * reach))
        for block in (left[first : first + size] for first in range(0, len(left), size)):
            distance, near = tree.query(places[block], reach, workers=torch.get_num_threads())
            slack = SAME * distance + ROUNDING * np.abs(places[block]).max(1, keepdims=True)
            chosen, settled = _first(block, near, distance, slack, k, num_nodes)
            settled |= reach == num_nodes
            nearest[block[settled]] = chosen[settled]
            again.append(block[~settled])
        left, reach = np.concatenate(again), 2 * reach
    target = torch.arange(num_nodes).repeat_interleave(k)
    return CandidateEdges.from_edges(torch.from_numpy(nearest).flatten(), target, num_nodes).to(coordinates.device)


def require_neighbours(k: int, num_nodes: int, device: torch.device) -> None:
    """Raise :class:`InputError` unless each node can have k neighbours and the table fits into memory."""
    require_int("k", k)
    require(k < num_nodes, f"k must be below the number of nodes, {num_nodes}, got {k}; lower k")
    edges = num_nodes * k
    require_memory(EDGE_BYTES * edges, device, f"a table of {edges:,} candidate edges", "lower k")


def _first(
    nodes: Int[np.ndarray, " node"],
    near: Int[np.ndarray, "node near"],
    distance: Float[np.ndarray, "node near"],
    slack: Float[np.ndarray, "node near"],
    k: int,
    num_nodes: int,
) -> tuple[Int[np.ndarray, "node k"], Bool[np.ndarray, " node"]]:
    """Return the first k other nodes of each node by distance, then by number, and whether the result is complete.

    Distances ascend along a row. A run of distances without a gap larger than the tolerance is tied and shares a rank.
    """
    rank = np.zeros_like(near)
    np.cumsum(np.diff(distance, axis=1) > slack[:, 1:], axis=1, out=rank[:, 1:])
    keys = rank * num_nodes + near
    keys[near == nodes[:, None]] = np.iinfo(np.int64).max
    keys.sort(axis=1)
    return keys[:, :k] % num_nodes, rank[:, -1] > keys[:, k - 1] // num_nodes


def _in_crowds(places: Places, k: int) -> tuple[Int[np.ndarray, " crowded"], Int[np.ndarray, "crowded k"]]:
    """Return the nodes that share their place with at least k others, and the first k of those.

    A tree query would have to return all nodes at that place, once for each of them.
    """
    _, place, count = np.unique(places, axis=0, return_inverse=True, return_counts=True)
    place = place.reshape(-1)
    crowded = np.flatnonzero(count[place] > k)
    start = np.cumsum(count) - count
    first = np.argsort(place, kind="stable")[start[place[crowded]][:, None] + np.arange(k + 1)]
    first[first == crowded[:, None]] = len(places)  # a node is not its own neighbour
    return crowded, np.sort(first, axis=1)[:, :k]


def _require_places(coordinates: Float[Tensor, "node dimension"], metric: Metric) -> None:
    require(
        isinstance(coordinates, Tensor) and coordinates.ndim == 2 and coordinates.is_floating_point(),
        "coordinates must be a tensor of floats of shape (node, dimension), one row per node; use torch.as_tensor",
    )
    bad = ~torch.isfinite(coordinates).all(1)
    if bad.any():
        node = int(bad.nonzero()[0])
        raise InputError(f"coordinates must have finite numbers, got NaN or infinity for node {node}; correct them")
    if metric not in get_args(Metric):
        raise InputError(f"metric must be one of {', '.join(get_args(Metric))}, got '{metric}'; use 'great_circle'")
    if metric == "euclidean":
        _require_within(coordinates, "numbers", LARGEST, "pass larger units")
        return
    require(
        coordinates.shape[1] == 2,
        "coordinates must have two columns, latitude and longitude, for metric='great_circle', got "
        f"{coordinates.shape[1]}; use metric='euclidean' for others",
    )
    for column, name, most in ((0, "latitude", 90), (1, "longitude", 360)):
        _require_within(coordinates[:, column : column + 1], name, most, "pass degrees, latitude first")


def _require_within(coordinates: Float[Tensor, "node dimension"], name: str, most: float, remedy: str) -> None:
    outside = (coordinates.double().abs() > most).nonzero()
    if len(outside):
        node, column = outside[0].tolist()
        raise InputError(
            f"coordinates must have {name} from -{most} to {most}, got {coordinates[node, column].item():g} for node "
            f"{node}; {remedy}"
        )


BLOCK_BYTES = 256 * 2**20
# Matrices of (block, node), 8 bytes an entry, that exist at once: sums, means, variances, ranks and temporaries.
# Measured with missing values; without them it is half of that.
BLOCK_MATRICES = 18
NO_SPREAD = 1e-12  # a variance below this share of the mean square is the rounding error of a constant
EQUAL = 2**30  # correlations are compared as integer multiples of 2^-30, about 1e-9

Values = Float[Tensor, "time node"]


def correlated_pairs(
    targets: Float[Tensor, "time node channel"],
    inputs: Float[Tensor, "time node in_channel"],
    k: int,
    *,
    block_bytes: int = BLOCK_BYTES,
) -> CandidateEdges:
    r"""Return the ``k`` other nodes with the largest $|r_{ij}|$ as candidate sources of each node; NaN means missing.

    Correlations that agree to 1e-9 are ties, which are broken by node order. The computation runs on the device of the
    data in float64, with (times x nodes^2) products, and six times as many if values are missing.

    >>> inputs = torch.randn(50, 3, 2, generator=torch.Generator().manual_seed(0))
    >>> correlated_pairs(inputs[:, [1, 2, 0], 1:], inputs, 1).sources.flatten().tolist()
    [1, 2, 0]
    """
    require(
        targets.ndim == inputs.ndim == 3 and targets.shape[:2] == inputs.shape[:2],
        "targets and inputs must have shape (time, node, channel) with the same times and nodes, got "
        f"{tuple(targets.shape)} and {tuple(inputs.shape)}; pass the same rows of both",
    )
    num_nodes = targets.shape[1]
    require_neighbours(k, num_nodes, targets.device)
    sent = [_prepared(channel) for channel in inputs.unbind(-1)]
    received = [_prepared(channel) for channel in targets.unbind(-1)]
    size = max(1, block_bytes // (BLOCK_MATRICES * 8 * num_nodes))
    sources = []
    for first in range(0, num_nodes, size):
        block = torch.arange(first, min(first + size, num_nodes), device=targets.device)
        strength = torch.zeros(len(block), num_nodes, dtype=torch.float64, device=targets.device)
        for now, seen_now in received:
            for then, seen_then in sent:
                if seen_now is None and seen_then is None:
                    found = now[:, block].mT @ then
                else:
                    here, there = (torch.ones_like(now) if seen is None else seen for seen in (seen_now, seen_then))
                    found = _correlation(now[:, block], then, here[:, block], there)
                strength = torch.maximum(strength, found.abs())
        sources.append(_strongest(strength, block, k))
    target = torch.arange(num_nodes, device=targets.device).repeat_interleave(k)
    return CandidateEdges.from_edges(torch.cat(sources).flatten(), target, num_nodes)


def _prepared(series: Values) -> tuple[Values, Values | None]:
    """Return each node's values with mean 0 and deviation 1, 0 where missing, and a mask of the observed ones.

    Without missing values the mask is None, and columns have norm 1, or are 0 if the node is constant.
    """
    series = series.detach().double()
    there = ~series.isnan()
    centred = series - series.nanmean(0)
    spread = centred.square().nanmean(0).sqrt()
    values = torch.where(there, centred / torch.where(spread > 0, spread, 1.0), 0.0)
    if not bool(there.all()):
        return values, there.double()
    centred = values - values.mean(0)
    square = centred.square().sum(0)
    varies = square > NO_SPREAD * values.square().sum(0)
    return torch.where(varies, centred / torch.where(varies, square.sqrt(), 1.0), 0.0), None


def _correlation(
    now: Float[Tensor, "time block"],
    then: Values,
    seen_now: Float[Tensor, "time block"],
    seen_then: Values,
) -> Float[Tensor, "block node"]:
    """Return the correlations of a block with all nodes, each over the times at which both are observed."""
    count = (seen_now.mT @ seen_then).clamp_min(1)
    mean_now, mean_then = now.mT @ seen_then / count, seen_now.mT @ then / count
    variance_now = _variance(now.square().mT @ seen_then / count, mean_now)
    variance_then = _variance(seen_now.mT @ then.square() / count, mean_then)
    scale = (variance_now * variance_then).sqrt()
    return (now.mT @ then / count - mean_now * mean_then) / torch.where(scale > 0, scale, torch.inf)


def _variance(square: Float[Tensor, "block node"], mean: Float[Tensor, "block node"]) -> Float[Tensor, "block node"]:
    variance = square - mean.square()
    return torch.where(variance > NO_SPREAD * square, variance, 0.0)


def _strongest(strength: Float[Tensor, "block node"], block: Int[Tensor, " block"], k: int) -> Int[Tensor, "block k"]:
    """Return the k other nodes with the largest values in each row; ties are broken by node order."""
    nodes = strength.shape[1]
    rank = (strength.clamp_max(1) * EQUAL).round().long()
    rank[torch.arange(len(block), device=block.device), block] = -1  # a node is not its own neighbour
    keys = rank * nodes + torch.arange(nodes - 1, -1, -1, device=block.device)
    return nodes - 1 - keys.topk(k).values % nodes

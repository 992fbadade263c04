r"""Candidates: of all edges, the few that are worth learning. A mask, true at [i, j] where node i may read node j.

On the globe, the distance between two places at latitudes $\varphi$ and longitudes $\lambda$ grows with

$$\sin^2 \frac{\varphi_i - \varphi_j}{2} + \cos \varphi_i \cos \varphi_j \sin^2 \frac{\lambda_i - \lambda_j}{2}$$

(haversine), which is all that an order of nearness needs.
"""

from typing import Literal, get_args

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from tacit.errors import InputError, require, require_whole
from tacit.shapes import EdgeMask

Metric = Literal["great_circle", "euclidean"]


def nearest_candidates(coordinates: Float[Tensor, "node dimension"], k: int, *, metric: Metric) -> EdgeMask:
    """Let each node read the ``k`` nearest others.

    ``metric`` is "great_circle" for latitude and longitude in degrees, or "euclidean" for any coordinates. Of places
    equally far the first in order is taken. The mask has k entries per row and need not be symmetric.

    >>> places = torch.tensor([[0.0, 0.0], [0.0, 179.0], [0.0, -179.0]])  # two of them meet at the date line
    >>> nearest_candidates(places, 1, metric="great_circle").nonzero()[1:].tolist()
    [[1, 2], [2, 1]]
    >>> nearest_candidates(places, 1, metric="euclidean").nonzero()[1:].tolist()
    [[1, 0], [2, 0]]
    """
    require(
        isinstance(coordinates, Tensor) and coordinates.ndim == 2 and coordinates.is_floating_point(),
        "coordinates needs a tensor of floats of shape (node, dimension), one row per node; use torch.as_tensor",
    )
    bad = ~torch.isfinite(coordinates).all(1)
    if bad.any():
        raise InputError(f"coordinates needs finite numbers, got NaN or infinity for node {int(bad.nonzero()[0])}")
    if metric not in get_args(Metric):
        raise InputError(f"metric needs one of {', '.join(get_args(Metric))}, got '{metric}'; use 'great_circle'")
    places = coordinates.double()
    return _smallest(_great_circle(places) if metric == "great_circle" else torch.cdist(places, places), k)


def correlated_candidates(series: Float[Tensor, "time node"], k: int, *, lag: int = 1) -> EdgeMask:
    r"""Let each node read the ``k`` others whose past goes most with its present: the largest $|r_{ij}|$.

    $r_{ij}$ is the correlation of $x_{t,i}$ with $x_{t - \mathrm{lag},j}$ over the times at which both are there (a
    missing one is NaN). It looks at one pair at a time, and so can miss an edge that shows only beside others.

    >>> first = torch.tensor([1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    >>> series = torch.stack([first, first.roll(1), torch.tensor([0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0])], 1)
    >>> correlated_candidates(series, 1)[1].tolist()  # the second repeats the first, a step later
    [True, False, False]
    """
    require_whole("lag", lag, 0)
    require(
        series.ndim == 2 and len(series) >= lag + 3,
        f"series needs shape (time, node) with at least {lag + 3} times, got {tuple(series.shape)}; pass more times",
    )
    there = ~series.isnan()
    centred = series.double() - series.double().nanmean(0)
    spread = centred.square().nanmean(0).sqrt()
    values = torch.where(there, centred / torch.where(spread > 0, spread, 1.0), 0.0)
    now, then, seen_now, seen_then = values[lag:], values[: len(values) - lag], there[lag:], there[: len(there) - lag]
    count = _sums(seen_now, seen_then).clamp_min(1)
    mean_now, mean_then = _sums(now, seen_then) / count, _sums(seen_now, then) / count
    variance_now = _sums(now.square(), seen_then) / count - mean_now.square()
    variance_then = _sums(seen_now, then.square()) / count - mean_then.square()
    scale = (variance_now * variance_then).clamp_min(0).sqrt()
    correlation = (_sums(now, then) / count - mean_now * mean_then) / torch.where(scale > 0, scale, torch.inf)
    return _smallest(-correlation.abs(), k)


def _sums(a: Shaped[Tensor, "time node"], b: Shaped[Tensor, "time node"]) -> Float[Tensor, "node node"]:
    """Sum the products of each two columns over time."""
    return a.double().mT @ b.double()


def _great_circle(degrees: Float[Tensor, "node 2"]) -> Float[Tensor, "node node"]:
    """Return the haversine of the angle between each two places: it grows with their distance."""
    require(
        degrees.shape[1] == 2,
        f"coordinates needs two columns, latitude and longitude, for metric='great_circle', got {degrees.shape[1]}; "
        "use metric='euclidean' for others",
    )
    for column, name, most in ((0, "latitude", 90), (1, "longitude", 360)):
        outside = degrees[:, column].abs() > most
        if outside.any():
            node = int(outside.nonzero()[0])
            raise InputError(
                f"coordinates needs {name} from -{most} to {most}, got {degrees[node, column].item():g} for node "
                f"{node}; pass degrees, latitude first"
            )
    latitude, longitude = torch.deg2rad(degrees).unbind(1)
    half = (latitude[:, None] - latitude) / 2, (longitude[:, None] - longitude) / 2
    return half[0].sin().square() + latitude.cos()[:, None] * latitude.cos() * half[1].sin().square()


def _smallest(distance: Float[Tensor, "node node"], k: int) -> EdgeMask:
    """Return true at the k smallest entries of each row, the diagonal left out."""
    nodes = len(distance)
    require_whole("k", k)
    require(k < nodes, f"k needs to be below the number of nodes, {nodes}, got {k}; lower k")
    order = distance.fill_diagonal_(torch.inf).argsort(dim=1, stable=True)[:, :k]
    return torch.zeros_like(distance, dtype=torch.bool).scatter(1, order, True)

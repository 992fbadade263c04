r"""The nodes whose past correlates most with a node's present, computed in blocks of nodes.

$r_{ij}$ is the correlation of $x_{t,i}$ with $x_{t - \mathrm{lag},j}$ over the times at which both are observed. $m_t$
flags the observed values, and missing values are set to 0, so the sums are matrix products,

$$n_{ij} = \sum_t m_{t,i} m_{t-\mathrm{lag},j}, \qquad
  n_{ij} \bar x_{ij} = \sum_t x_{t,i} m_{t-\mathrm{lag},j}, \qquad \ldots$$

six of them, or one if no value is missing. A block has as many rows as the memory budget allows: all $N^2$ correlations
are computed, but never stored at the same time. With several channels, the most correlated two count.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.errors import require
from tacit.graph.candidate_edges import CandidateEdges
from tacit.graph.nearest import require_neighbours

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
    """Return standardised values and a mask of the observed ones; None if all are, and columns then have norm 1."""
    values, there = _standardised(series.detach().double())
    return (_unit(values), None) if bool(there.all()) else (values, there.double())


def _standardised(series: Values) -> tuple[Values, Bool[Tensor, "time node"]]:
    """Return each node's values with mean 0 and standard deviation 1, 0 where missing, and a mask of observed ones."""
    there = ~series.isnan()
    centred = series - series.nanmean(0)
    spread = centred.square().nanmean(0).sqrt()
    return torch.where(there, centred / torch.where(spread > 0, spread, 1.0), 0.0), there


def _unit(values: Values) -> Values:
    """Return each column with mean 0 and norm 1, or 0 if it is constant."""
    centred = values - values.mean(0)
    square = centred.square().sum(0)
    varies = square > NO_SPREAD * values.square().sum(0)
    return torch.where(varies, centred / torch.where(varies, square.sqrt(), 1.0), 0.0)


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

r"""Confidence intervals of edge probabilities from the replicas of a bootstrap.

$\theta^{(r)}$, $r = 1 \dots R$, are fits of resampled data; their differences approximate those between fits of new
data. A bias that is common to all replicas is not included.
"""

import math
from dataclasses import dataclass

import torch

from tacit.assessment.uncertainty.checks import (
    ReplicaProbs,
    checked_errors,
    distinct_edges,
    learned_edges,
    require_probabilities,
    require_share,
)
from tacit.errors import require, require_positive
from tacit.shapes import EdgeMask, EdgeProbs


@dataclass(frozen=True)
class EdgeIntervals:
    """Intervals from ``low`` to ``high`` for each edge; ``simultaneous``: the level is joint for all edges."""

    low: EdgeProbs
    high: EdgeProbs
    level: float
    simultaneous: bool


def bagged_edge_probs(replicas: ReplicaProbs) -> EdgeProbs:
    r"""Return the mean over replicas, $\bar\theta = \frac1R \sum_r \theta^{(r)}$; exact for equal replicas.

    >>> bagged_edge_probs(torch.tensor([[[0.25]], [[0.75]]]))
    tensor([[0.5000]])
    """
    _require_replicas(replicas)
    first = replicas[0].detach().double()
    return (first + (replicas.detach().double() - first).mean(0)).to(replicas.dtype)


def std_errors(replicas: ReplicaProbs, learned: EdgeMask | None = None) -> EdgeProbs:
    r"""Return the standard error of each edge probability, $s = \sqrt{\sum_r (\theta^{(r)} - \bar\theta)^2 / (R - 1)}$.

    It is the error of one fit. If ``learned`` is false, the edge is fixed and the error is 0.

    >>> std_errors(torch.tensor([[[0.25]], [[0.75]]]))
    tensor([[0.3536]])
    """
    _require_replicas(replicas)
    deviation = replicas.detach().double().std(0, correction=1).to(replicas.dtype)
    return torch.where(learned_edges(replicas, learned), deviation, 0.0)


def intervals_around(
    edge_probs: EdgeProbs,
    std_errors: EdgeProbs,
    degrees: float,
    level: float = 0.95,
    *,
    simultaneous: bool = False,
    learned: EdgeMask | None = None,
    symmetric: bool = False,
) -> EdgeIntervals:
    r"""Return confidence intervals $\theta \pm q\,s$ of a given ``level``, clipped to [0, 1].

    $s$ are the standard errors and $q$ is the $(1 + l) / 2$ quantile of Student's t with ``degrees`` of freedom, for
    level $l$. With ``simultaneous`` the level is joint for all $m$ learned edges, and the quantile is that of
    $(1 + l^{1/m}) / 2$ (Sidak): exact if the errors of edges are independent, conservative for normal errors of any
    correlation (up to the noise in $s$). In a ``symmetric`` graph a pair counts as one of the $m$ edges.

    If ``learned`` is false, or if the error is 0, the interval is the probability itself.

    >>> intervals = intervals_around(torch.tensor([[0.5]]), torch.tensor([[0.1]]), degrees=9)
    >>> intervals.low, intervals.high
    (tensor([[0.2738]]), tensor([[0.7262]]))
    """
    require_probabilities("edge_probs", edge_probs)
    require_positive("degrees", degrees, 9)
    require_share("level", level, 0.95)
    places = learned_edges(edge_probs, learned)
    error = torch.zeros_like(edge_probs)
    error[places] = checked_errors(std_errors, edge_probs, places).to(error.dtype)
    num_edges = int(distinct_edges("edge_probs", edge_probs, learned, symmetric).sum()) if simultaneous else 1
    reach = _quantile(level, degrees, max(1, num_edges)) * error
    middle = edge_probs.detach()
    return EdgeIntervals((middle - reach).clamp_min(0), (middle + reach).clamp_max(1), level, simultaneous)


def edge_intervals(
    replicas: ReplicaProbs,
    level: float = 0.95,
    *,
    simultaneous: bool = False,
    learned: EdgeMask | None = None,
    symmetric: bool = False,
) -> EdgeIntervals:
    r"""Return :func:`intervals_around` the mean of replicas, with their standard errors and $R - 1$ degrees of freedom.

    >>> replicas = torch.tensor([[[0.5, 0.0]] * 2, [[0.5, 0.0]] * 2, [[0.6, 0.0]] * 2])
    >>> one, every = edge_intervals(replicas, 0.9), edge_intervals(replicas, 0.9, simultaneous=True)
    >>> one.low[0], one.high[0]
    (tensor([0.3647, 0.0000]), tensor([0.7019, 0.0000]))
    >>> every.low[0], every.high[0]
    (tensor([0.1823, 0.0000]), tensor([0.8844, 0.0000]))
    """
    middle, error = bagged_edge_probs(replicas), std_errors(replicas, learned)
    return intervals_around(
        middle, error, len(replicas) - 1, level, simultaneous=simultaneous, learned=learned, symmetric=symmetric
    )


def _require_replicas(replicas: ReplicaProbs) -> None:
    require_probabilities("replicas", replicas, 3)
    require(
        len(replicas) >= 2,
        f"replicas must be at least 2, got {len(replicas)}; fit more replicas",
    )


def _quantile(level: float, degrees: float, num_edges: int) -> float:
    from scipy import stats

    outside = -math.expm1(math.log(level) / num_edges)  # 1 - level^(1 / m), exact for many edges too
    return float(stats.t.isf(outside / 2, degrees))

r"""Decisions on edges, confidence intervals, and reliability.

The choice of the edges to list, with a limit on false discoveries.

There are three questions about the edges to list:

- Does the edge exist? ``exists`` is used by :func:`tacit.edges.listed_edges`.
- Is the edge present in a given observation? Its probability is used by :func:`expected_wrong_edges`.
- Is the probability significantly above a level? Its standard error is used by :func:`significant_edges`.

One more is whether an edge that exists acts always or at times: :func:`acting_words`.

In all functions ``learned`` is false for fixed edges: they are known, so they are neither chosen nor counted.
``identifiable`` is false for edges that are not identifiable from the data: they are never chosen. In a ``symmetric``
graph the two entries of a pair are one edge.

Confidence intervals of edge probabilities from the replicas of a bootstrap.

$\theta^{(r)}$, $r = 1 \dots R$, are fits of resampled data; their differences approximate those between fits of new
data. A bias that is common to all replicas is not included.

The data of a reliability diagram: do edges with probability 0.3 occur in three of ten cases?

It requires the truth: a 0/1 graph, or the true probabilities of a known system.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy import special
from torch import Tensor

from tacit.edges import ACTS, FDR
from tacit.errors import InputError, require, require_int, require_positive
from tacit.shapes import EdgeCodes, EdgeMask, EdgeProbs

ReplicaProbs = Float[Tensor, "replica node node"]

# Means over replicas need not be summed in the same order in both entries of a pair.
SYMMETRY_WITHIN = 1e-6


def learned_edges(edge_probs: ReplicaProbs | EdgeProbs, learned: EdgeMask | None) -> EdgeMask:
    """Return ``learned``, or a mask of all edges if it is None."""
    shape = tuple(edge_probs.shape[-2:])
    if learned is None:
        return torch.ones(shape, dtype=torch.bool, device=edge_probs.device)
    require_mask("learned", learned, edge_probs)
    return learned.to(edge_probs.device)


def distinct_edges(name: str, edge_probs: EdgeProbs, learned: EdgeMask | None, symmetric: bool) -> EdgeMask:
    """Return the learned edges, in a symmetric graph without those of i > j; ``name`` is used in error messages."""
    mask = learned_edges(edge_probs, learned)
    if not symmetric:
        return mask
    for argument, values in ((name, edge_probs), ("learned", mask)):
        differs = ((values.double() - values.mT.double()).abs() > SYMMETRY_WITHIN).nonzero().tolist()
        require(
            not differs,
            f"{argument} must equal its transpose in a symmetric graph, got two values for the pair at "
            f"{differs[:1]}; leave symmetric out",
        )
    return mask.triu()


def checked_errors(std_errors: EdgeProbs, edge_probs: EdgeProbs, places: EdgeMask) -> Tensor:
    """Return the standard errors of the edges at ``places``; infinite values are allowed and mean unknown."""
    require(
        isinstance(std_errors, Tensor) and std_errors.shape == edge_probs.shape,
        f"std_errors must have the shape of edge_probs, {tuple(edge_probs.shape)}, got "
        f"{tuple(getattr(std_errors, 'shape', ())) or type(std_errors).__name__}; pass those of the same edges",
    )
    errors = std_errors.detach().to(edge_probs.device).double()[places]
    wrong = errors[~(errors >= 0)]
    require(
        len(wrong) == 0,
        f"std_errors must be at least 0 for each learned edge, got {wrong[:1].tolist()} for {len(wrong)}; mark those "
        "edges in identifiable or learned as false",
    )
    return errors


def require_share(name: str, value: object, example: float) -> None:
    """Raise :class:`InputError` unless ``value`` is a number strictly between 0 and 1."""
    require(
        isinstance(value, int | float) and 0 < value < 1,
        f"{name} must be a number between 0 and 1, got {value!r}; pass for example {example}",
    )


def require_mask(name: str, mask: EdgeMask, edge_probs: ReplicaProbs | EdgeProbs) -> None:
    """Raise :class:`InputError` unless ``mask`` has one true or false per edge."""
    shape = tuple(edge_probs.shape[-2:])
    require(
        isinstance(mask, Tensor) and mask.dtype == torch.bool and tuple(mask.shape) == shape,
        f"{name} must be a tensor of booleans of shape {shape}, got {getattr(mask, 'dtype', type(mask).__name__)} of "
        f"{tuple(getattr(mask, 'shape', ()))}; pass one true or false per ordered pair of nodes",
    )


def require_probabilities(name: str, values: Tensor, num_axes: int = 2) -> None:
    """Raise :class:`InputError` unless ``values`` are probabilities of the edges of a graph, or of each replica."""
    axes = "(replica, node, node)" if num_axes == 3 else "(node, node)"
    shape = tuple(getattr(values, "shape", ()))
    require(
        isinstance(values, Tensor) and values.is_floating_point() and len(shape) == num_axes and shape[-1] == shape[-2],
        f"{name} must be a tensor of floats {axes}, got {getattr(values, 'dtype', type(values).__name__)} of {shape}; "
        "pass one probability per ordered pair of nodes",
    )
    outside = ~((values >= 0) & (values <= 1))
    if outside.any():
        place = outside.nonzero()[0].tolist()
        value = values[tuple(place)].item()
        raise InputError(f"{name} must have values in [0, 1], got {value} at {place}; leave out fits that broke down")


ALWAYS_ABOVE = 0.9  # an edge always acts if its interval lies above this

Dependence = Literal["positive", "any"]


class EdgeTests(NamedTuple):
    """The significant edges, and the p-value of every edge; NaN for edges that were not tested."""

    chosen: EdgeMask
    p_values: EdgeProbs


class WrongEdges(NamedTuple):
    """Expected numbers of edges: shown but absent, present but not shown, and both together."""

    false: float
    missed: float
    total: float


def acting_words(
    low: EdgeProbs, high: EdgeProbs, p_values: EdgeProbs, learned: EdgeMask, fdr: float = FDR
) -> EdgeCodes:
    r"""Return for each learned edge whether it acts always or at times, as a place in ``ACTS``; 0 for other edges.

    *at times*: the test against an edge that always acts is significant at a false discovery rate over all edges of the
    table (Benjamini and Hochberg 1995), and the interval does not contain 1. *always*: the interval lies above
    ``ALWAYS_ABOVE``. *undecided*: neither, the usual answer of few rows. Edges whose p-value is NaN were not tested.

    >>> low, high = torch.tensor([[0.95, 0.4], [0.3, 0.2]]), torch.tensor([[1.0, 0.6], [1.0, 0.9]])
    >>> codes = acting_words(low, high, torch.tensor([[0.8, 1e-5], [0.4, 0.2]]), torch.ones(2, 2, dtype=torch.bool))
    >>> [[ACTS[code] for code in row] for row in codes.tolist()]
    [['always', 'at times'], ['undecided', 'undecided']]
    """
    tested = learned & ~p_values.isnan()
    times = torch.zeros_like(learned)
    if tested.any():
        adjusted = adjusted_p_values(p_values[tested].double().cpu().numpy())
        times[tested] = torch.as_tensor(adjusted <= fdr, device=times.device)
    codes = torch.where(low > ALWAYS_ABOVE, ACTS.index("always"), ACTS.index("undecided"))
    codes = torch.where(times & (high < 1), ACTS.index("at times"), codes)
    return torch.where(learned, codes, 0).to(torch.uint8)


def adjusted_p_values(
    p_values: Float[np.ndarray, " test"], dependence: Dependence = "positive"
) -> Float[np.ndarray, " test"]:
    r"""Return for each test the lowest false discovery rate at which it is significant.

    That of the $k$-th smallest of $m$ p-values is $\min_{l \ge k} m\,c\,p_{(l)} / l$, where $c$ is 1, or
    $\sum_{i \le m} 1/i$ for any ``dependence`` (:func:`significant_edges`).
    """
    order, places = np.argsort(p_values), np.arange(1, len(p_values) + 1)
    factor = len(p_values) * (np.sum(1 / places) if dependence == "any" else 1.0)
    found = np.empty_like(p_values)
    found[order] = np.minimum.accumulate((factor * p_values[order] / places)[::-1])[::-1]
    return found.clip(0.0, 1.0)


def significant_edges(
    edge_probs: EdgeProbs,
    std_errors: EdgeProbs,
    *,
    above: float = 0.05,
    rate: float = 0.05,
    degrees: float | None = None,
    dependence: Dependence = "positive",
    learned: EdgeMask | None = None,
    identifiable: EdgeMask | None = None,
    symmetric: bool = False,
) -> EdgeTests:
    r"""Return the edges whose probability is significantly above a level, at a false discovery rate ``rate``.

    There is one test per edge of $H_0: \theta_{ij} \le$ ``above``, with
    $p_{ij} = P(T > (\theta_{ij} - \text{above}) / s_{ij})$, where $T$ is Student's t with ``degrees`` of freedom (one
    less than the number of replicas), or normal without ``degrees``; at $s = 0$ the p-value is 0 or 1. The step-up rule
    selects all p-values up to the largest $p_{(k)}$ of $m$ with

    $$p_{(k)} \le \frac{k}{m\,c} \cdot \text{rate}$$

    With $c = 1$ (Benjamini and Hochberg 1995) the expected share of false findings is at most ``rate`` if the tests are
    independent or positively dependent. Edges into one node share its data and are often negatively dependent;
    ``dependence="any"`` is valid for every kind, with $c = \sum_{i \le m} 1/i$ (Benjamini and Yekutieli 2001), and has
    less power. Both assume normal estimates: choose ``above`` not too close to 0, where estimates are skewed.

    >>> found = significant_edges(torch.tensor([[0.9, 0.3], [0.06, 0.0]]), torch.full((2, 2), 0.1))
    >>> found.chosen
    tensor([[ True,  True],
            [False, False]])
    >>> round(found.p_values[0, 1].item(), 4)
    0.0062
    """
    require_probabilities("edge_probs", edge_probs)
    require_share("rate", rate, 0.05)
    _require_probability("above", above)
    require(
        dependence in ("positive", "any"), f"dependence must be 'positive' or 'any', got {dependence!r}; choose 'any'"
    )
    if degrees is not None:
        require_positive("degrees", degrees, 9)
    places = _candidates(edge_probs, learned, identifiable, symmetric)
    error = checked_errors(std_errors, edge_probs, places)
    excess = edge_probs.detach().double()[places] - above
    certain = torch.where(edge_probs.detach()[places] > above, torch.inf, -torch.inf)  # in the original precision
    ratio = torch.where(error > 0, excess / error, certain).cpu().numpy()
    p_values = special.ndtr(-ratio) if degrees is None else special.stdtr(degrees, -ratio)
    adjusted = adjusted_p_values(p_values, dependence)
    everywhere = torch.full_like(edge_probs, torch.nan, dtype=torch.float64)
    everywhere[places] = torch.as_tensor(p_values, device=edge_probs.device)
    if symmetric:
        everywhere = torch.where(places.mT, everywhere.mT, everywhere)
    chosen = torch.as_tensor(adjusted <= rate, device=edge_probs.device)
    return EdgeTests(_placed(chosen, places, symmetric), everywhere)


def expected_wrong_edges(
    edge_probs: EdgeProbs,
    threshold: float,
    *,
    learned: EdgeMask | None = None,
    identifiable: EdgeMask | None = None,
    symmetric: bool = False,
) -> WrongEdges:
    r"""Return the expected number of wrong edges in one observation, if edges above ``threshold`` are shown.

    $$\sum_{\text{shown}} (1 - \theta_{ij}) + \sum_{\text{not shown}} \theta_{ij}$$

    The first sum is the number of false edges, the second that of missed edges; a threshold of 0.5 minimises the total.
    An edge that is not ``identifiable`` is not shown, and counts as missed with its probability.

    >>> expected_wrong_edges(torch.tensor([[0.75, 0.5], [1.0, 0.125]]), 0.5)
    WrongEdges(false=0.25, missed=0.625, total=0.875)
    """
    require_probabilities("edge_probs", edge_probs)
    _require_probability("threshold", threshold)
    counted = distinct_edges("edge_probs", edge_probs, learned, symmetric)
    probs = edge_probs.detach().double()
    shown = (edge_probs.detach() > threshold) & _candidates(edge_probs, learned, identifiable, symmetric)
    false, missed = float((1 - probs)[shown].sum()), float(probs[counted & ~shown].sum())
    return WrongEdges(false, missed, false + missed)


def _candidates(
    edge_probs: EdgeProbs, learned: EdgeMask | None, identifiable: EdgeMask | None, symmetric: bool
) -> EdgeMask:
    """Return the edges that can be chosen, each once."""
    places = distinct_edges("edge_probs", edge_probs, learned, symmetric)
    if identifiable is None:
        return places
    require_mask("identifiable", identifiable, edge_probs)
    can = identifiable.to(places.device)
    return places & (can & can.mT if symmetric else can)


def _placed(chosen: Tensor, places: EdgeMask, symmetric: bool) -> EdgeMask:
    """Return a mask of the chosen edges among ``places``, in both entries of an undirected pair."""
    mask = torch.zeros_like(places)
    mask[places] = chosen
    return mask | mask.mT if symmetric else mask


def _require_probability(name: str, value: object) -> None:
    require(
        isinstance(value, int | float) and 0 <= value <= 1,
        f"{name} must be a probability from 0 to 1, got {value!r}; pass for example 0.5",
    )


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
    outside = -math.expm1(math.log(level) / num_edges)  # 1 - level^(1 / m), exact for many edges too
    return float(-special.stdtrit(degrees, outside / 2))


NUM_BINS = 10  # as in Guo et al. 2017


@dataclass(frozen=True)
class Reliability:
    """Mean probability, mean truth and number of edges of each nonempty bin, and the overall calibration error."""

    predicted: Float[Tensor, " bin"]
    true: Float[Tensor, " bin"]
    count: Int[Tensor, " bin"]
    calibration_error: float


def reliability(
    edge_probs: EdgeProbs,
    truth: EdgeProbs,
    *,
    num_bins: int = NUM_BINS,
    learned: EdgeMask | None = None,
) -> Reliability:
    r"""Return mean predicted and mean true probability of edges in bins of probability, and the calibration error.

    $$\mathrm{ECE} = \sum_b \frac{n_b}{n} \, \Big| \operatorname{mean}_{ij \in b} \theta_{ij}
    - \operatorname{mean}_{ij \in b} \theta^*_{ij} \Big|$$

    Bin $b$ of $B$ contains the $n_b$ of $n$ edges with $(b - 1) / B < \theta_{ij} \le b / B$; the first bin includes 0.
    Errors of opposite sign within a bin cancel. Edges that are not ``learned`` are excluded.

    >>> truth = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    >>> reliability(torch.tensor([[0.25, 0.25], [0.75, 1.0]]), truth, num_bins=2)
    Reliability(predicted=tensor([0.2500, 0.8750], dtype=torch.float64), true=tensor([0.5000, 1.0000],
    dtype=torch.float64), count=tensor([2, 2]), calibration_error=0.1875)
    """
    require_int("num_bins", num_bins)
    predicted, true = _pairs_of_numbers(edge_probs, truth, learned)
    ends = torch.linspace(0, 1, num_bins + 1, dtype=predicted.dtype, device=predicted.device)
    place = torch.searchsorted(ends[1:-1].contiguous(), predicted)
    count = torch.bincount(place, minlength=num_bins)
    held = count > 0
    predicted, true = (
        torch.bincount(place, weights=values, minlength=num_bins)[held] / count[held] for values in (predicted, true)
    )
    error = float((count[held] * (predicted - true).abs()).sum() / count.sum())
    return Reliability(predicted, true, count[held], error)


def _pairs_of_numbers(edge_probs: EdgeProbs, truth: EdgeProbs, learned: EdgeMask | None) -> tuple[Tensor, Tensor]:
    """Return predicted and true probability of each compared edge."""
    require_probabilities("edge_probs", edge_probs)
    require_probabilities("truth", truth)
    require(
        truth.shape == edge_probs.shape,
        f"truth must have the shape of edge_probs, {tuple(edge_probs.shape)}, got {tuple(truth.shape)}; "
        "pass the truth for the same nodes",
    )
    true = truth.to(edge_probs.device)
    places = learned_edges(edge_probs, learned)
    require(bool(places.any()), "learned must have at least one edge to compare, got none; mark some as true")
    return edge_probs.detach().double()[places], true.double()[places]

"""The choice of the edges to list, with a limit on false discoveries.

There are three questions about the edges to list:

- Does the edge exist? ``exists`` is used by :func:`tacit.edges.listed_edges`.
- Is the edge present in a given observation? Its probability is used by :func:`expected_wrong_edges`.
- Is the probability significantly above a level? Its standard error is used by :func:`significant_edges`.

One more is whether an edge that exists acts always or at times: :func:`acting_words`.

In all functions ``learned`` is false for fixed edges: they are known, so they are neither chosen nor counted.
``identifiable`` is false for edges that are not identifiable from the data: they are never chosen. In a ``symmetric``
graph the two entries of a pair are one edge.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from tacit.assessment.uncertainty.checks import (
    checked_errors,
    distinct_edges,
    require_mask,
    require_probabilities,
    require_share,
)
from tacit.edges import ACTS, FDR
from tacit.errors import require, require_positive
from tacit.shapes import EdgeCodes, EdgeMask, EdgeProbs

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
    from scipy.stats import false_discovery_control

    tested = learned & ~p_values.isnan()
    times = torch.zeros_like(learned)
    if tested.any():
        adjusted = false_discovery_control(p_values[tested].double().cpu().numpy(), method="bh")
        times[tested] = torch.as_tensor(adjusted <= fdr, device=times.device)
    codes = torch.where(low > ALWAYS_ABOVE, ACTS.index("always"), ACTS.index("undecided"))
    codes = torch.where(times & (high < 1), ACTS.index("at times"), codes)
    return torch.where(learned, codes, 0).to(torch.uint8)


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
    from scipy import stats

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
    p_values = stats.norm.sf(ratio) if degrees is None else stats.t.sf(ratio, degrees)
    adjusted = stats.false_discovery_control(p_values, method="bh" if dependence == "positive" else "by")
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

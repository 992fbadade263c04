r"""The data of a reliability diagram: do edges with probability 0.3 occur in three of ten cases?

It requires the truth: a 0/1 graph, or the true probabilities of a known system.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.assessment.uncertainty.checks import learned_edges, require_probabilities
from tacit.errors import require, require_int
from tacit.shapes import EdgeMask, EdgeProbs

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

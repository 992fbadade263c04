r"""The pairs of nodes that may act on each other within a step, from the residuals given lagged parents.

With $r_{ij \cdot Z}$ the correlation of two residuals given those of other nodes $Z$, a pair is a candidate if

$$-\tfrac{n}{2} \log(1 - r^2) - \tfrac12 \log n + \log \tfrac{2 \pi_0}{1 - 2 \pi_0} > -4, \qquad
r = \max\big( |r_{ij \cdot \text{all others}}|,\; \min_k |r_{ij \cdot k}|, \dots \big)$$

An edge shows in the correlation given all others, unless a common child hides it; then it shows given none or any
single one.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.errors import InputError

MOST = 8  # candidates of a target within the step: 256 sets
LEAST_ODDS = -4.0
START_DENSITY = 0.05  # initial prior probability of an edge within the step
EXACT = 1e-9  # unexplained share of a node's variance below which it is a copy of other nodes
Matrix = Float[Tensor, "node node"]
Edges = Bool[Tensor, "node node"]


@dataclass(frozen=True, eq=False)
class WithinCandidates:
    """The candidates of each row's node.

    ``strength``  the absolute correlation of each pair; ``may_act``  the edges that rules allow within the step
    ``capped``    pairs of which one direction is excluded because a node has too many candidates; they stay open
    """

    strength: Matrix
    may_act: Edges
    chosen: Edges
    capped: Edges
    rows: float

    @classmethod
    def of(
        cls, residuals: Float[Tensor, "row node"], known: Float[Tensor, "row node"], may_act: Edges, required: Edges
    ) -> "WithinCandidates":
        """Return the candidates among the edges that may act within the step, including those that must."""
        correlation, rows = _correlations(residuals, known)
        nodes = len(correlation)
        given_all = _given_all(correlation, nodes / (4 * rows))
        given_one = _given_one(correlation)
        strength = torch.maximum(given_all, given_one).fill_diagonal_(0.0).clamp_max(1 - 1e-9)
        nothing = torch.zeros_like(may_act)
        odds = cls(strength, may_act, nothing, nothing, rows).log_odds(START_DENSITY)
        possible = ((odds > LEAST_ODDS) & may_act) | required
        ranks = odds.masked_fill(~possible, -torch.inf).masked_fill(required, torch.inf)
        best = torch.zeros_like(possible).scatter_(1, ranks.topk(min(MOST, nodes - 1), 1).indices, True)
        chosen = possible & best
        capped = possible & possible.mT & (chosen ^ chosen.mT)
        return cls(strength, may_act, chosen, capped, rows)

    def log_odds(self, density: float) -> Matrix:
        """Return the log odds of an edge in either direction, from the correlation only."""
        fit = -self.rows / 2 * torch.log1p(-self.strength.square()) - math.log(self.rows) / 2
        return fit + math.log(2 * density / (1 - 2 * density))

    def left_out(self, density: float) -> Matrix:
        """Return the probability of each edge that is not a candidate, split between the allowed directions."""
        both, may = self.chosen | self.chosen.mT, self.may_act.to(self.strength)
        shares = may / (may + may.mT).clamp_min(1.0)
        return (torch.sigmoid(self.log_odds(density)) * shares).masked_fill(both, 0.0).fill_diagonal_(0.0)

    def of_node(self, node: int) -> Int[Tensor, " member"]:
        """Return the candidates of a node."""
        return self.chosen[node].nonzero()[:, 0]

    def complete_rows(self, observed: Float[Tensor, "row node"]) -> Float[Tensor, "row node"]:
        """Return 1 for the rows in which a node and all nodes connected to it by candidates are observed.

        Scores of connected nodes are compared with each other, so they must use the same rows.
        """
        reach = (self.chosen | self.chosen.mT).to(observed) + torch.eye(len(self.chosen)).to(observed)
        for _ in range(len(self.chosen).bit_length()):
            reach = (reach @ reach).clamp_max(1.0)
        return ((1 - observed) @ reach == 0).to(observed)


def require_distinct(
    values: Float[Tensor, "row node"], known: Float[Tensor, "row node"], names: tuple[str, ...]
) -> None:
    """Raise an error for nodes that are copies of others: their effects within a step are not identifiable."""
    correlation, rows = _correlations(values, known)
    alike = (correlation.abs() > 1 - EXACT).triu(1).nonzero()
    if len(alike):
        first, second = (names[node] for node in alike[0].tolist())
        raise InputError(
            f"simultaneous in [graph] requires nodes with different values, got {first} and {second} with the same "
            "values up to scale; drop one of them"
        )
    if rows > 2 * len(names) and bool(known.all()):
        sizes, vectors = torch.linalg.eigh(correlation)
        if float(sizes[0]) < EXACT:
            name = names[int(vectors[:, 0].abs().argmax())]
            raise InputError(
                f"simultaneous in [graph] requires nodes with different values, got {name} as an exact linear "
                "combination of other nodes; drop it"
            )


def _correlations(values: Float[Tensor, "row node"], known: Float[Tensor, "row node"]) -> tuple[Matrix, float]:
    """Return the correlations over the rows in which both nodes are observed, and the smallest number of such rows."""
    both = known.mT @ known
    values = values * known
    mean = (values.mT @ known) / both.clamp_min(1)  # of the row's node, where the column's is observed
    cross = values.mT @ values / both.clamp_min(1) - mean * mean.mT
    square = values.square().mT @ known / both.clamp_min(1) - mean.square()
    found = cross / (square * square.mT).clamp_min(1e-300).sqrt()
    return found.clamp(-1, 1).fill_diagonal_(1.0), max(3.0, float(both.min()))


def _given_all(correlation: Matrix, shrinkage: float) -> Matrix:
    shrinkage = min(0.5, shrinkage)
    inverse = torch.linalg.inv((1 - shrinkage) * correlation + shrinkage * torch.eye(len(correlation)).to(correlation))
    size = inverse.diagonal()
    partial: Matrix = (inverse / (size[:, None] * size).abs().sqrt()).abs()
    return partial.nan_to_num(0.0)  # correlations over different rows may have no inverse


def _given_one(correlation: Matrix) -> Matrix:
    """Return the smallest absolute correlation of each pair, given no other node or any single one."""
    least = correlation.abs()
    rest = (1 - correlation.square()).clamp_min(1e-9)
    for other in range(len(correlation)):
        shared = correlation[other]
        partial = (correlation - shared[:, None] * shared) / (rest[other][:, None] * rest[other]).sqrt()
        partial[other], partial[:, other] = 1.0, 1.0
        least = torch.minimum(least, partial.abs())
    return least

r"""Profile likelihood intervals for two regimes of two edges.

The joint distribution of two edges has three free numbers, and two regimes of them have five. So the regimes are not
identifiable in general, and have no standard errors. But they are restricted: if both edges are always there together,
one regime must have both and the other none. The interval of a number has all values $v$ with

$$2\, \Big(\max_\beta \ell(\beta) - \max_{\beta : \beta_j = v} \ell(\beta)\Big) \le \chi^2_{1, .95}$$

$\beta$ are the probabilities in both regimes and the weight of the first regime, which is at least 1/2: regimes are
numbered by weight. Weights of the filter and noise are those of the fit. Their errors, and the correlation of
neighbouring pairs, are allowed for by a larger critical value.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import logsigmoid

from tacit.local import MOST_LOGIT, maximise, states

CRITICAL = 3.841  # 95% quantile of the chi-squared distribution with one degree of freedom
BISECTIONS = 8
REACH = 3.0  # largest change of a raw number in one step
NUM_NUMBERS = 5  # (regime, edge) and the weight of the first regime


def profile_intervals(
    given: Float[Tensor, "pair state"], probs: Float[Tensor, "regime edge"], weight: float, inflation: float = 1.0
) -> tuple[Float[Tensor, " number"], Float[Tensor, " number"]]:
    """Return lower and upper bounds of the probabilities in both regimes, and of the weight of the first.

    ``given``      log-probability of the targets of each pair in each state of the two edges
    ``inflation``  ratio of the variance of the marginals to that with known weights and independent pairs
    """
    profile = _Profile(given, CRITICAL * inflation)
    start = torch.cat([torch.logit(probs.flatten(), eps=1e-3), torch.tensor([_raw_weight(weight)]).to(probs)])
    found, values = profile.maxima([start])
    best, top = found[0], float(values[0])
    bounds = [
        (_edge(profile, best, top, number, 0.0), _edge(profile, best, top, number, 1.0))
        for number in range(NUM_NUMBERS)
    ]
    low, high = torch.tensor(bounds, dtype=torch.float64).unbind(1)
    return low, high


class _Profile:
    """The likelihood of two edges with two regimes, with raw numbers: logits, and that of the weight above 1/2."""

    def __init__(self, given: Float[Tensor, "pair state"], critical: float) -> None:
        self.critical = critical
        largest = given.amax(1, keepdim=True)
        self.given, self.constant, self.states = (given - largest).exp(), float(largest.sum()), states(2)

    def evaluate(self, numbers: Float[Tensor, "row number"], _: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the log likelihood without its constant, its gradient and its curvature at several vectors."""
        logits, share = numbers[:, :-1].view(-1, 2, 1, 2), torch.sigmoid(numbers[:, -1:])
        moved = 0.5 * share * (1 - share)  # of the first weight by its raw number
        weights, moves = torch.cat([0.5 + 0.5 * share, 0.5 - 0.5 * share], 1), torch.cat([moved, -moved], 1)
        away, acts = self.states - torch.sigmoid(logits), self.states == 1  # (row, regime, state, edge)
        likely = torch.where(acts, logsigmoid(logits), logsigmoid(-logits)).sum(3).exp()  # (row, regime, state)
        size = (len(numbers), NUM_NUMBERS, NUM_NUMBERS, len(self.states))
        first, second = numbers.new_zeros(size[:2] + size[3:]), numbers.new_zeros(size)
        first[:, -1] = (moves[..., None] * likely).sum(1)
        second[:, -1, -1] = (1 - 2 * share) * first[:, -1]
        for regime in range(2):
            own = slice(2 * regime, 2 * regime + 2)
            slopes = (likely[:, regime, :, None] * away[:, regime]).mT  # (row, edge, state)
            bends = slopes[:, :, None] * away[:, regime].mT[:, None]
            probs = torch.sigmoid(logits[:, regime, 0])[..., None]
            bends.diagonal(dim1=1, dim2=2).sub_((probs * (1 - probs) * likely[:, regime, None]).mT)
            first[:, own], second[:, own, own] = (
                weights[:, regime, None, None] * slopes,
                weights[:, regime, None, None, None] * bends,
            )
            second[:, own, -1] = second[:, -1, own] = moves[:, regime, None, None] * slopes
        mixed = self.given @ (weights[..., None] * likely).sum(1).mT  # (pair, row)
        ratios = self.given / mixed.mT[..., None]  # (row, pair, state)
        total = ratios.sum(1)
        curvature = first @ (ratios.mT @ ratios) @ first.mT - torch.einsum("rijs,rs->rij", second, total)
        return mixed.log().sum(0), torch.einsum("ris,rs->ri", first, total), curvature

    def maxima(
        self, starts: list[Float[Tensor, " number"]], fixed: int | None = None, at: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        """Return the raw numbers at the maximum from each start, and the log likelihoods; one number may be fixed."""
        raw = torch.stack(starts)
        free = torch.ones_like(raw, dtype=torch.bool)
        if fixed is not None:
            raw[:, fixed], free[:, fixed] = at, False
        found = maximise(self.evaluate, raw, free, torch.full_like(raw, MOST_LOGIT), torch.full_like(raw, REACH))
        return found, self.evaluate(found, free)[0] + self.constant


def _edge(profile: _Profile, best: Tensor, top: float, number: int, end: float) -> float:
    """Return the value nearest to ``end``, 0 or 1, that the likelihood does not reject."""
    inside, outside = _shown(best, number), end if number < NUM_NUMBERS - 1 else max(end, 0.5)
    if _accepted(profile, best, top, number, outside):
        return outside
    for _ in range(BISECTIONS):
        middle = (inside + outside) / 2
        if _accepted(profile, best, top, number, middle):
            inside = middle
        else:
            outside = middle
    return outside


def _accepted(profile: _Profile, best: Tensor, top: float, number: int, value: float) -> bool:
    if number == NUM_NUMBERS - 1:
        raw = _raw_weight(value)
    else:
        raw = float(torch.logit(torch.tensor(value, dtype=torch.float64), eps=math.exp(-MOST_LOGIT)))
    values = profile.maxima([best, torch.zeros_like(best)], number, raw)[1]
    return bool(2 * (top - values.max()) <= profile.critical)


def _shown(raw: Tensor, number: int) -> float:
    value = 1 / (1 + math.exp(-float(raw[number])))
    return value if number < NUM_NUMBERS - 1 else 0.5 + 0.5 * value


def _raw_weight(weight: float) -> float:
    raw = math.log(max(2 * weight - 1, 1e-9) / max(2 - 2 * weight, 1e-9))
    return min(MOST_LOGIT, max(-MOST_LOGIT, raw))

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

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import logsigmoid

from tacit.local import MOST_LOGIT, states

CRITICAL = 3.841  # 95% quantile of the chi-squared distribution with one degree of freedom
BISECTIONS = 8
NUM_NUMBERS = 5  # (regime, edge) and the weight of the first regime


def profile_intervals(
    given: Float[Tensor, "pair state"], probs: Float[Tensor, "regime edge"], weight: float, inflation: float = 1.0
) -> tuple[Float[Tensor, " number"], Float[Tensor, " number"]]:
    """Return lower and upper bounds of the probabilities in both regimes, and of the weight of the first.

    ``given``      log-probability of the targets of each pair in each state of the two edges
    ``inflation``  ratio of the variance of the marginals to that with known weights and independent pairs
    """
    profile = _Profile(given, CRITICAL * inflation)
    start = np.append(torch.logit(probs.flatten(), eps=1e-3).numpy(), _raw_weight(weight))
    best, top = profile.maximum(start)
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

    def value_and_gradient(self, numbers: np.ndarray) -> tuple[float, np.ndarray]:
        """Return minus the log likelihood divided by the number of pairs, and its gradient."""
        raw = torch.from_numpy(numbers).clone().requires_grad_()
        logits, first = raw[:-1].view(2, 2), 0.5 + 0.5 * torch.sigmoid(raw[-1])
        in_regime = (logsigmoid(logits) @ self.states.mT + logsigmoid(-logits) @ (1 - self.states).mT).exp()
        mixed = first * in_regime[0] + (1 - first) * in_regime[1]
        value = -((self.given @ mixed).log().sum() + self.constant) / len(self.given)
        return float(value.detach()), torch.autograd.grad(value, raw)[0].numpy()

    def maximum(self, start: np.ndarray, fixed: int | None = None, at: float = 0.0) -> tuple[np.ndarray, float]:
        """Return the raw numbers at the maximum and its log likelihood; one number may be fixed."""
        from scipy.optimize import minimize

        bounds = [(-MOST_LOGIT, MOST_LOGIT)] * NUM_NUMBERS
        if fixed is not None:
            bounds[fixed] = (at, at)
            start = start.copy()
            start[fixed] = at
        found = minimize(self.value_and_gradient, start, jac=True, method="L-BFGS-B", bounds=bounds)
        return found.x, -float(found.fun) * len(self.given)


def _edge(profile: _Profile, best: np.ndarray, top: float, number: int, end: float) -> float:
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


def _accepted(profile: _Profile, best: np.ndarray, top: float, number: int, value: float) -> bool:
    if number == NUM_NUMBERS - 1:
        raw = _raw_weight(value)
    else:
        raw = float(torch.logit(torch.tensor(value, dtype=torch.float64), eps=math.exp(-MOST_LOGIT)))
    middle = np.zeros_like(best)
    return any(2 * (top - profile.maximum(start, number, raw)[1]) <= profile.critical for start in (best, middle))


def _shown(raw: np.ndarray, number: int) -> float:
    value = 1 / (1 + math.exp(-float(raw[number])))
    return value if number < NUM_NUMBERS - 1 else 0.5 + 0.5 * value


def _raw_weight(weight: float) -> float:
    return float(np.clip(math.log(max(2 * weight - 1, 1e-9) / max(2 - 2 * weight, 1e-9)), -MOST_LOGIT, MOST_LOGIT))

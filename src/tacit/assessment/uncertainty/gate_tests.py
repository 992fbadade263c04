r"""Likelihood-ratio tests of which edges of a node act at times, and how often.

An edge *always acts* unless the likelihood with a random gate is significantly larger,

$$2\, (\ell_{\text{gate}} - \ell_{\text{always}}) > q^2, \qquad q = \Phi^{-1}(.975),$$

a one-sided test at 2.5%, because $\theta = 1$ is on the boundary. Each gate is tested alone, significant gates are
fitted together, and gates that are then no longer significant are removed.

The interval of an edge contains the probabilities at which its profile likelihood is at most $q^2 / 2$ below the
maximum. All other gates that increase the likelihood, significantly or not, are free in the profile, so that the
interval includes the uncertainty about them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.training import MOST_LOGIT, GatedFit, GatedRegression

LEVEL = 0.95
QUANTILE = 1.959964  # two-sided normal quantile
STARTS = (0.8, 0.4)  # initial values of a probability
MOST_GATES = 8  # random gates of a node: time grows with 2 to their power
MOST_FREE = 4  # free gates beside that of the edge whose interval is computed
MAY_GATE = 0.2  # likelihood ratio from which a gate may be random
LOWEST = 0.01  # a lower end below this is set to 0
CLOSE = 0.1  # tolerance of the root of the likelihood ratio in the search for an end
MOST_TRIES = 8


@dataclass(frozen=True, eq=False)
class NodeGates:
    """The fit of one node; ``low`` and ``high`` of the probabilities of its edges."""

    fit: GatedFit
    low: Float[Tensor, " source"]
    high: Float[Tensor, " source"]


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The fit with the needed gates, the fit with each single gate, and all sources sorted by the gain of a gate."""

    fit: GatedFit
    alone: dict[int, GatedFit]
    gains: dict[int, float]


def choose_gates(data: GatedRegression, may_gate: Bool[Tensor, " source"], most: int = MOST_GATES) -> GatedFit:
    """Return the fit in which the edges of ``may_gate`` that need a gate have one; at most ``most`` gates."""
    return _choose(data, may_gate, most).fit


def judge_gates(data: GatedRegression, may_gate: Bool[Tensor, " source"], *, intervals: bool = True) -> NodeGates:
    """Return which edges of ``may_gate`` act at times, how often they act, and the intervals."""
    chosen = _choose(data, may_gate)
    if not intervals:
        everywhere = torch.where(may_gate, 1.0, chosen.fit.edge_probs)
        return NodeGates(chosen.fit, torch.where(may_gate, 0.0, everywhere), everywhere)
    fit, needed = chosen.fit, chosen.fit.gated.nonzero()[:, 0].tolist()
    free = [source for source, gain in chosen.gains.items() if gain > MAY_GATE and source not in needed]
    free = [*needed, *free][: max(MOST_FREE, len(needed))]
    widest = data.fit_gates(_mask(may_gate, free), fit) if len(free) > len(needed) else fit
    low, high = fit.edge_probs.clone(), fit.edge_probs.clone()
    for source, alone in chosen.alone.items():
        low[source], high[source] = _interval(data, widest, alone, source)
    return NodeGates(fit, torch.minimum(low, fit.edge_probs), torch.maximum(high, fit.edge_probs))


def _choose(data: GatedRegression, may_gate: Bool[Tensor, " source"], most: int = MOST_GATES) -> _Chosen:
    base = data.fit()
    alone = {source: _with_gate(data, base, source) for source in may_gate.nonzero()[:, 0].tolist()}
    gains = {source: _ratio(fit, base) for source, fit in alone.items()}
    gains = dict(sorted(gains.items(), key=lambda item: -item[1]))
    chosen = [source for source, gain in gains.items() if gain > QUANTILE**2][:most]
    fit = base if not chosen else alone[chosen[0]]
    if len(chosen) > 1:
        fit = _without_needless(data, data.fit_gates(_mask(may_gate, chosen), fit))
    return _Chosen(fit, alone, gains)


def _mask(like: Bool[Tensor, " source"], chosen: list[int]) -> Bool[Tensor, " source"]:
    mask = torch.zeros_like(like)
    mask[chosen] = True
    return mask


def _with_gate(data: GatedRegression, fit: GatedFit, source: int) -> GatedFit:
    """Return the best fit with one more gate, from several starts."""
    return max((data.fit(fit.with_gate(source, prob)) for prob in STARTS), key=lambda one: one.log_likelihood)


def _ratio(more: GatedFit, less: GatedFit) -> float:
    return 2 * (more.log_likelihood - less.log_likelihood)


def _without_needless(data: GatedRegression, fit: GatedFit) -> GatedFit:
    """Remove gates one by one, starting with the least needed."""
    while fit.gated.any():
        fewer = [data.fit(fit.without_gate(source)) for source in fit.gated.nonzero()[:, 0].tolist()]
        best = max(fewer, key=lambda one: one.log_likelihood)
        if _ratio(fit, best) > QUANTILE**2:
            return fit
        fit = best
    return fit


def _interval(data: GatedRegression, widest: GatedFit, alone: GatedFit, source: int) -> tuple[float, float]:
    """Return the ends of the interval of one edge, with its own gate and those of ``widest`` free."""
    always = data.fit(widest.without_gate(source)) if bool(widest.gated[source]) else widest
    best = widest
    if not widest.gated[source]:
        best = data.fit(widest.with_gate(source, min(0.99, max(0.05, float(alone.edge_probs[source])))))
    top = max(best.log_likelihood, always.log_likelihood)

    def root(logit: float) -> float:
        """The root of the profile likelihood ratio at a probability."""
        nonlocal top
        held = data.fit(best.with_gate(source, 1 / (1 + math.exp(-logit))), fixed=source)
        top = max(top, held.log_likelihood)
        return math.sqrt(max(0.0, 2 * (top - held.log_likelihood)))

    middle = float(best.logits[source]) if best.log_likelihood >= always.log_likelihood else MOST_LOGIT
    lowest = math.log(LOWEST / (1 - LOWEST))
    low = _end(root, middle, lowest, -1.0)
    low_prob = 0.0 if low <= lowest else 1 / (1 + math.exp(-low))
    if 2 * (top - always.log_likelihood) <= QUANTILE**2:
        return low_prob, 1.0
    return low_prob, 1 / (1 + math.exp(-_end(root, middle, MOST_LOGIT, 1.0)))


def _end(root: Callable[[float], float], middle: float, limit: float, step: float) -> float:
    """Return the logit on one side of the maximum at which the root reaches the quantile, or the limit."""
    inside, outside, at, found = (middle, 0.0), None, middle + step, 0.0
    for _ in range(MOST_TRIES):
        at = max(at, limit) if step < 0 else min(at, limit)
        found = root(at)
        if abs(found - QUANTILE) < CLOSE:
            return at
        if found < QUANTILE:
            inside = (at, found)
            if at == limit:
                return limit
        else:
            outside = (at, found)
        if outside is None:
            step *= 2
            at = at + step
        else:
            share = (QUANTILE - inside[1]) / (outside[1] - inside[1])
            at = inside[0] + min(0.8, max(0.2, share)) * (outside[0] - inside[0])
    return at

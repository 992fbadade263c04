r"""Which edges of a node act at times, by likelihood ratios, and how often.

An edge *always acts* unless the likelihood with a random gate is significantly larger,

$$2\, (\ell_{\text{gate}} - \ell_{\text{always}}) > q^2, \qquad q = \Phi^{-1}(.975),$$

a one-sided test at 2.5%, because $\theta = 1$ lies on the boundary. Each gate is tested alone, those that pass are
fitted together, and gates that are then no longer needed are removed.

The interval of a gated edge is $\hat\theta$ on the scale of logits, with the sandwich of the scores as its error. That
of an edge that always acts ends at 1 and begins where the profile likelihood has fallen by $q^2 / 2$.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.assessment.uncertainty.dependence import Dependence
from tacit.training import FlatFit, GatedFit, GatedRegression

LEVEL = 0.95
QUANTILE = 1.959964  # of a normal number, two-sided
STARTS = (0.8, 0.4)  # of a probability
MOST_GATES = 8  # of a node, that are random at once: the time grows with 2 to their power
LOWEST = 0.01  # an interval that begins below it begins at 0
CLOSE = 0.1  # of the root of the likelihood ratio: where the search for the lower end stops
MOST_TRIES = 6
LARGEST_ERROR = 20.0  # of a logit


@dataclass(frozen=True, eq=False)
class NodeGates:
    """The fit of one node; ``low``, ``high`` and the standard errors of the probabilities of its edges."""

    fit: GatedFit
    low: Float[Tensor, " source"]
    high: Float[Tensor, " source"]
    std_errors: Float[Tensor, " source"]


def judge_gates(data: GatedRegression, may_gate: Bool[Tensor, " source"], dependence: Dependence) -> NodeGates:
    """Return which of the edges that ``may_gate`` act at times, and how often."""
    base = data.fit()
    alone = {source: _with_gate(data, base, source) for source in may_gate.nonzero()[:, 0].tolist()}
    ratios = {source: _ratio(fit, base) for source, fit in alone.items()}
    chosen = sorted((source for source in ratios if ratios[source] > QUANTILE**2), key=lambda one: -ratios[one])
    fit = base
    if chosen:
        gated = torch.zeros_like(may_gate)
        gated[chosen[:MOST_GATES]] = True
        fit = data.fit_gates(gated, alone[chosen[0]])
        fit = _without_needless(data, fit if len(chosen) > 1 else alone[chosen[0]])
    low, high, errors = (torch.where(fit.gated, fit.edge_probs, value) for value in (1.0, 1.0, 0.0))
    if fit.gated.any():
        spread = _logit_errors(data, fit, dependence)
        probs, logits = fit.edge_probs[fit.gated], fit.logits[fit.gated]
        low[fit.gated] = torch.sigmoid(logits - QUANTILE * spread)
        high[fit.gated] = torch.sigmoid(logits + QUANTILE * spread)
        errors[fit.gated] = probs * (1 - probs) * spread
    for source in (may_gate & ~fit.gated).nonzero()[:, 0].tolist():
        low[source] = _lower_end(data, fit, source)
        errors[source] = (1 - low[source]) / QUANTILE
    return NodeGates(fit, low, high, errors)


def _with_gate(data: GatedRegression, fit: GatedFit, source: int) -> GatedFit:
    """Return the best fit with one more gate, from several starts."""
    return max((data.fit(fit.with_gate(source, prob)) for prob in STARTS), key=lambda one: one.log_likelihood)


def _ratio(more: GatedFit, less: GatedFit) -> float:
    return 2 * (more.log_likelihood - less.log_likelihood)


def _without_needless(data: GatedRegression, fit: GatedFit) -> GatedFit:
    """Remove gates one by one, the one that is needed least first."""
    while fit.gated.any():
        fewer = [data.fit(fit.without_gate(source)) for source in fit.gated.nonzero()[:, 0].tolist()]
        best = max(fewer, key=lambda one: one.log_likelihood)
        if _ratio(fit, best) > QUANTILE**2:
            return fit
        fit = best
    return fit


def _lower_end(data: GatedRegression, fit: GatedFit, source: int) -> float:
    r"""Return where the root of the likelihood ratio $\sqrt{2 \Delta}$, almost linear in $1 - \theta$, reaches $q$."""
    below, above = (0.0, 0.0), (1.0, math.inf)  # (1 - theta, root)
    best, gap = fit.log_likelihood, 0.15
    for _ in range(MOST_TRIES):
        held = data.fit(fit.with_gate(source, 1 - gap), fixed=source)
        best = max(best, held.log_likelihood)
        root = math.sqrt(max(0.0, 2 * (best - held.log_likelihood)))
        if abs(root - QUANTILE) < CLOSE:
            break
        if root < QUANTILE:
            below = (gap, root)
        else:
            above = (gap, root)
        if math.isinf(above[1]):
            gap = min(1 - LOWEST, gap * max(1.5, min(4.0, QUANTILE / max(root, 1e-9))))
            if below[0] >= 1 - LOWEST:
                return 0.0
        else:
            share = (QUANTILE - below[1]) / (above[1] - below[1])
            gap = below[0] + min(0.9, max(0.1, share)) * (above[0] - below[0])
    return 1 - gap if gap < 1 - LOWEST else 0.0


def _logit_errors(data: GatedRegression, fit: GatedFit, dependence: Dependence) -> Float[Tensor, " gate"]:
    r"""Return the standard errors of the logits, the roots of the diagonal of $H^{-1} M H^{-1}$."""
    flat = FlatFit(data, fit)
    scores = flat.row_scores() * data.weights[:, None]
    influence = scores @ torch.linalg.pinv(flat.information(), hermitian=True, rtol=1e-10)
    gates = influence[:, flat.gates]
    return dependence.covariance(gates, gates).clamp_min(0).sqrt().clamp_max(LARGEST_ERROR)

r"""Errors of the regressions of one node, and the test of whether an edge always acts.

To first order, the errors of the slope $r_j$ and of the scale $M_j$ of the contribution $c_j$, by which it is divided,
are sums over pairs. With their variances $a$ and $c$ and covariance $b$, the interval contains all ratios $r$ with

$$(\hat r - r)^2 \le q^2 (a - 2 r\, b + r^2 c)$$

(Fieller's interval; $q$ is a quantile). It remains valid for weak edges, where the denominator is small. For the upper
end, $a$ is that of a ratio two standard errors larger, under which the targets vary more.

The *score test* of "always" (Breusch and Pagan; Koenker's form, for noise of any shape): if $r_j = 0$, the squared
residuals and the squared contributions $c_j^2$, both residualised on the other terms ($\varepsilon$ and $u_j$), are
uncorrelated:

$$T_j = \frac{S_j}{\sqrt{\mathrm{Var}\, S_j}}, \qquad S_j = \sum_t \omega_t\, u_{tj}\, \varepsilon_t, \qquad
\omega_t = v_t^{-2}$$

with $v$ the variance from the regressions. It is one-sided: an edge that acts at times adds variance.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.assessment.uncertainty.moments import MOST_LEVERAGE, TINY, NodeData, NodeMoments, regress
from tacit.local import Dependence

PerEdge = Float[Tensor, " source"]


@dataclass(frozen=True, eq=False)
class RatioErrors:
    """Ratios of one node, with $a$ (and that of the upper end), $b$ and $c$ of the interval, and $T$ of the test."""

    ratios: PerEdge
    slope: PerEdge
    upper: PerEdge
    both: PerEdge
    scale: PerEdge
    statistics: PerEdge

    def std_errors(self) -> PerEdge:
        """Return the standard error of each ratio."""
        return self._variance(self.ratios).sqrt()

    def _variance(self, ratios: PerEdge) -> PerEdge:
        return (self.slope - 2 * ratios * self.both + ratios.square() * self.scale).clamp_min(TINY)

    def interval(self, quantile: float | Tensor, inflation: float | PerEdge = 1.0) -> tuple[PerEdge, PerEdge]:
        """Return the lowest and the highest ratio of the interval, at least 0; ``inflation`` multiplies the errors."""
        square = torch.as_tensor(quantile * inflation).to(self.ratios).square()
        low, _ = self._roots(self.ratios, self.slope, square)
        _, high = self._roots(self.ratios.clamp_min(0), self.upper, square)  # a slope below 0 does not rule out 0
        return low.clamp_min(0), high.clamp_min(0)

    def _roots(self, ratios: PerEdge, slope: PerEdge, square: Tensor) -> tuple[PerEdge, PerEdge]:
        leading = 1 - square * self.scale
        middle = ratios - square * self.both
        rest = ratios.square() - square * slope
        root = (middle.square() - leading * rest).clamp_min(0).sqrt()
        bounded = leading > 0  # else the scale may be 0, and the ratio anything
        leading = leading.clamp_min(TINY)
        low, high = (middle - root) / leading, (middle + root) / leading
        return torch.where(bounded, low, 0.0), torch.where(bounded, high, torch.inf)


def ratio_errors(
    node: NodeData, found: NodeMoments, weights: Float[Tensor, " pair"], dependence: Dependence
) -> RatioErrors:
    """Return the errors of the first replica, whose pairs have ``weights``."""
    design, own = node.design, node.own.shape[1]
    residuals, variances, contributions = found.residuals[0], found.variances[0], found.contributions[0]
    spread = torch.cat([node.spread, contributions.square()], 1)
    gamma = torch.cat([found.noise[0], found.slopes[0]])
    excess = found.squares[0] - spread @ gamma
    slopes = _influence(spread, excess, weights / variances.square())[:, node.spread.shape[1] :] * found.corrections[0]
    betas = _influence(design, residuals, weights / variances)[:, own:]  # (pair, source * lag)
    sources, _, lags = node.sent.shape
    size = (weights[:, None] * contributions.square()).sum(0).clamp_min(TINY)
    moved = torch.einsum("n,jnl,nj->jl", weights, node.sent, contributions) / size[:, None]
    scales = 2 * torch.einsum("njl,jl->nj", betas.reshape(len(betas), sources, lags), moved)  # of M, relative
    slope, both, scale = (
        dependence.covariance(one, other) for one, other in ((slopes, slopes), (slopes, scales), (scales, scales))
    )
    tests = score_tests(spread, found.squares[0], weights / variances.square(), node.spread.shape[1], dependence)
    errors = RatioErrors(found.ratios[0], slope, slope, both, scale, tests)
    more = errors.ratios.clamp_min(0) + 2 * errors.std_errors() - errors.ratios
    larger = slopes * (1 + more.clamp_min(0) * contributions.square() / variances[:, None])
    return replace(errors, upper=dependence.covariance(larger, larger))


def score_tests(
    spread: Float[Tensor, "pair term"],
    squares: Float[Tensor, " pair"],
    weights: Float[Tensor, " pair"],
    first: int,
    dependence: Dependence,
) -> PerEdge:
    """Return the statistic of each term from ``first`` on: standard normal if its slope is 0, larger if positive."""
    statistics = []
    for place in range(first, spread.shape[1]):
        others = torch.cat([spread[:, :place], spread[:, place + 1 :]], 1)
        every = torch.ones(1, others.shape[1], dtype=torch.bool, device=spread.device)
        excess, beside = (
            values - others @ regress(others, values[None], weights[None], every)[0]
            for values in (squares, spread[:, place])
        )
        terms = (weights * beside * excess)[:, None]
        variance = dependence.covariance(terms, terms).clamp_min(TINY)
        statistics.append(terms.sum(0) / variance.sqrt())
    return torch.cat(statistics) if statistics else squares.new_zeros(0)


def _influence(
    design: Float[Tensor, "pair column"], residuals: Float[Tensor, " pair"], weights: Float[Tensor, " pair"]
) -> Float[Tensor, "pair column"]:
    """Return the contribution of each pair to the error of each coefficient of a weighted regression.

    A residual is divided by one minus its leverage, which gives its leave-one-out value (HC3).
    """
    squares = (weights[:, None] * design.square()).sum(0)
    sizes = torch.where(squares > TINY, squares.clamp_min(TINY).rsqrt(), 0.0)  # a column of zeros has no error
    scaled = design * sizes
    weighted = scaled * weights[:, None]
    inverse = torch.linalg.pinv(weighted.mT @ scaled, hermitian=True)
    leverage = ((scaled @ inverse) * weighted).sum(1).clamp_max(MOST_LEVERAGE)
    added: Tensor = (weighted * (residuals / (1 - leverage))[:, None]) @ inverse * sizes
    return added

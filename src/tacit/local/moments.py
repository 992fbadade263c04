r"""How often edges into one node act, from the mean and the variance of its targets.

A target that reads sources through gates, $y = X_0 \beta_0 + \sum_j A_j\, w_j x_j + e$ with independent
$A_j \sim \mathrm{Bernoulli}(\theta_j)$, has

$$E[y \mid x] = X_0 \beta_0 + \sum_j c_j, \qquad c_j = \theta_j\, w_j x_j, \qquad
\mathrm{Var}[y \mid x] = Z_0 \gamma_0 + \sum_j r_j\, c_j^2, \qquad r_j = \frac{1 - \theta_j}{\theta_j}$$

An edge that always acts adds nothing to the variance: $r_j = 0$. So $\theta_j = 1 / (1 + r_j)$ follows from a slope in
the regression of squared residuals on squared contributions. Both regressions are weighted by the inverse variance and
iterated, which maximises the normal pseudo-likelihood. It requires two moments of the noise, not its shape. The noise
itself may depend on $Z_0$: a constant and the size of the node's own input. Residuals for the variance are those of a
nonlinear mean (squares and cubes of each contribution, a piecewise linear function of their sum), because a nonlinear
mean that is fitted by a straight line leaves residuals that grow with the source.

Two corrections matter for edges with many lags. A regression overfits its own targets, so a squared residual is divided
by one minus the leverage of its pair. And the error of the weights adds to the squared contribution, by which the slope
is divided: the ratio is multiplied by $M / (M - m)$, with $M$ the mean of $c_j^2$ and $m$ the part of it that is error.

The weights of the pairs have a replica axis, so that all resamples are fitted at once.

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
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.local.dependence import Dependence
from tacit.local.regression import GatedRegression

ROUNDS = 8
LOWEST_VARIANCE = 0.05  # relative to the mean squared residual: bounds the weight of a pair
SMALLEST_RIDGE = 1e-9  # relative to each diagonal entry: columns may be equal
KNOTS = (-1.6, -0.8, -0.4, 0.0, 0.4, 0.8, 1.6)  # of the standardised sum of contributions
MOST_LEVERAGE, MOST_CORRECTION = 0.9, 2.0
TINY = torch.finfo(torch.float64).tiny
SMALLEST_VARIANCE = 1e-60  # of a target without noise; its square does not underflow

Rows = Float[Tensor, "replica pair"]
PerEdge = Float[Tensor, " source"]


@dataclass(frozen=True, eq=False)
class NodeMoments:
    r"""The two regressions of one node, for each replica.

    ``own`` and ``edges`` are $\beta$, ``noise`` is $\gamma_0$ and ``ratios`` are $r$, which may be negative; ``slopes``
    are the ratios before their ``corrections``. ``residuals`` are those of the linear mean, ``bends`` the part of them
    that the nonlinear mean explains, and ``leverages`` those of the nonlinear mean.
    """

    own: Float[Tensor, "replica column"]
    edges: Float[Tensor, "replica source lag"]
    noise: Float[Tensor, "replica term"]
    slopes: Float[Tensor, "replica source"]
    corrections: Float[Tensor, "replica source"]
    residuals: Rows
    bends: Rows
    leverages: Rows
    contributions: Float[Tensor, "replica pair source"]
    variances: Rows

    @property
    def ratios(self) -> Float[Tensor, "replica source"]:
        """The corrected ratios."""
        return self.slopes * self.corrections

    @property
    def squares(self) -> Rows:
        """Squared residuals of the nonlinear mean, corrected for their leverages."""
        return (self.residuals - self.bends).square() / (1 - self.leverages)


def fit_moments(
    node: GatedRegression,
    weights: Rows,
    kept: Bool[Tensor, "replica source"],
    rounds: int = ROUNDS,
    start: NodeMoments | None = None,
) -> NodeMoments:
    """Return the regressions for each replica's weights of the pairs, with the sources that it keeps.

    With a ``start``, the fit of all pairs, fewer iterations suffice: its variances are the initial values, and the
    nonlinear part and the corrections are reused.
    """
    design, target, noise, (sources, _, lags) = node.design, node.targets - node.offset, node.spread, node.sent.shape
    assert noise is not None
    own, split = node.own.shape[1], noise.shape[1]  # the terms of the noise may have any sign, those of edges may not
    columns = torch.cat([kept.new_ones(len(kept), own), kept.repeat_interleave(lags, 1)], 1)
    terms = torch.cat([kept.new_ones(len(kept), split), kept], 1)
    variances = torch.ones_like(weights) if start is None else start.variances.expand_as(weights)
    for _ in range(rounds):
        beta = regress(design, target.expand_as(weights), weights / variances, columns)
        residuals = target - beta @ design.mT
        edges = beta[:, own:].reshape(len(beta), sources, lags)
        contributions = torch.einsum("jnl,rjl->rnj", node.sent, edges)
        if start is None:
            bends, leverages = _bends(node, residuals, contributions, weights, variances, columns)
        else:
            bends, leverages = start.bends.expand_as(weights), start.leverages.expand_as(weights)
        squares = (residuals - bends).square() / (1 - leverages)
        spread = torch.cat([noise.expand(len(weights), -1, -1), contributions.square()], 2)
        gamma = regress(spread, squares, weights / variances.square(), terms)
        mean = (weights * squares).sum(1, keepdim=True) / weights.sum(1, keepdim=True)
        explained = torch.einsum("rnt,rt->rn", spread, torch.cat([gamma[:, :split], gamma[:, split:].clamp_min(0)], 1))
        variances = torch.maximum(explained, LOWEST_VARIANCE * mean).clamp_min(SMALLEST_VARIANCE)
    corrections = _corrections(node, contributions, weights, variances, columns) if start is None else start.corrections
    return NodeMoments(
        beta[:, :own],
        edges,
        gamma[:, :split],
        gamma[:, split:],
        corrections.expand(len(weights), -1),
        residuals,
        bends,
        leverages,
        contributions,
        variances,
    )


def _bends(
    node: GatedRegression,
    residuals: Rows,
    contributions: Float[Tensor, "replica pair source"],
    weights: Rows,
    variances: Rows,
    columns: Bool[Tensor, "replica column"],
) -> tuple[Rows, Rows]:
    """Return the part of the residuals that nonlinear terms explain, and the leverages of the regression.

    The terms are squares and cubes of the contributions, and a piecewise linear function of their sum.
    """
    if not contributions.shape[2]:
        return torch.zeros_like(residuals), torch.zeros_like(residuals)
    weights = weights / variances
    total = contributions.sum(2, keepdim=True)
    share = (weights / weights.sum(1, keepdim=True))[..., None]
    mean = (share * total).sum(1, keepdim=True)
    deviation = (share * (total - mean).square()).sum(1, keepdim=True).sqrt()
    knots = mean + deviation * total.new_tensor(KNOTS)  # (replica, 1, knot)
    bent = torch.cat(
        [
            node.design.expand(len(residuals), -1, -1),
            contributions.square(),
            contributions**3,
            (total - knots).clamp_min(0),
        ],
        2,
    )
    used = torch.cat([columns, columns.new_ones(len(columns), bent.shape[2] - columns.shape[1])], 1)
    coefficients = regress(bent, residuals, weights, used)
    leverages = torch.einsum("rnc,rcd,rnd->rn", bent, _inverse(bent, weights, used), bent) / variances
    return torch.einsum("rnc,rc->rn", bent, coefficients), leverages.clamp(0, MOST_LEVERAGE)


def _corrections(
    node: GatedRegression,
    contributions: Float[Tensor, "replica pair source"],
    weights: Rows,
    variances: Rows,
    columns: Bool[Tensor, "replica column"],
) -> Float[Tensor, "replica source"]:
    """Return the correction factor of each ratio for the error of the weights in the contributions."""
    sources, _, lags = node.sent.shape
    first = node.own.shape[1]
    errors = _inverse(node.design.expand(len(weights), -1, -1), weights / variances, columns)[:, first:, first:]
    errors = errors.reshape(len(weights), sources, lags, sources, lags).diagonal(dim1=1, dim2=3)
    size = torch.einsum("rn,rnj->rj", weights, contributions.square()).clamp_min(TINY)
    spurious = torch.einsum("rn,jnl,jnk,rlkj->rj", weights, node.sent, node.sent, errors)
    return (1 - spurious / size).clamp_min(1 / MOST_CORRECTION).reciprocal()


def _inverse(
    design: Float[Tensor, "replica pair column"], weights: Rows, columns: Bool[Tensor, "replica column"]
) -> Float[Tensor, "replica column column"]:
    """Return the inverse of the weighted second moments of the used columns; 0 for the others."""
    scaled, sizes = _scaled_moments(design, design * weights[:, :, None], columns)
    sizes = sizes * columns
    inverse: Tensor = torch.linalg.inv(scaled) * sizes[:, :, None] * sizes[:, None]
    return inverse


def regress(
    design: Float[Tensor, "*replica pair column"],
    target: Rows,
    weights: Rows,
    columns: Bool[Tensor, "replica column"],
) -> Float[Tensor, "replica column"]:
    """Return weighted least squares of each replica on its columns; the coefficients of others are 0."""
    weighted = design * weights[:, :, None]
    scaled, sizes = _scaled_moments(design, weighted, columns)
    sizes = sizes * columns
    right = (weighted.mT @ target[:, :, None])[:, :, 0] * sizes
    found: Tensor = torch.linalg.solve(scaled, right) * sizes
    return found


def _scaled_moments(
    design: Float[Tensor, "*replica pair column"],
    weighted: Float[Tensor, "replica pair column"],
    columns: Bool[Tensor, "replica column"],
) -> tuple[Float[Tensor, "replica column column"], Float[Tensor, "replica column"]]:
    """Return second moments of the normalised columns, with a tiny ridge, and the normalising factors."""
    used = columns.to(design.dtype)
    gram = (weighted.mT @ design) * used[:, :, None] * used[:, None]
    diagonal = gram.diagonal(dim1=1, dim2=2)
    sizes = torch.where(diagonal > TINY, diagonal.clamp_min(TINY).rsqrt(), 0.0)
    ridge = torch.where(columns & (sizes > 0), SMALLEST_RIDGE, 1.0)
    return gram * sizes[:, :, None] * sizes[:, None] + torch.diag_embed(ridge), sizes


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
    node: GatedRegression, found: NodeMoments, weights: Float[Tensor, " pair"], dependence: Dependence
) -> RatioErrors:
    """Return the errors of the first replica, whose pairs have ``weights``."""
    design, noise, own = node.design, node.spread, node.own.shape[1]
    assert noise is not None
    residuals, variances, contributions = found.residuals[0], found.variances[0], found.contributions[0]
    spread = torch.cat([noise, contributions.square()], 1)
    gamma = torch.cat([found.noise[0], found.slopes[0]])
    excess = found.squares[0] - spread @ gamma
    slopes = influence(spread, excess, weights / variances.square())[:, noise.shape[1] :] * found.corrections[0]
    betas = influence(design, residuals, weights / variances)[:, own:]  # (pair, source * lag)
    sources, _, lags = node.sent.shape
    size = (weights[:, None] * contributions.square()).sum(0).clamp_min(TINY)
    moved = torch.einsum("n,jnl,nj->jl", weights, node.sent, contributions) / size[:, None]
    scales = 2 * torch.einsum("njl,jl->nj", betas.reshape(len(betas), sources, lags), moved)  # of M, relative
    slope, both, scale = (
        dependence.covariance(one, other) for one, other in ((slopes, slopes), (slopes, scales), (scales, scales))
    )
    tests = score_tests(spread, found.squares[0], weights / variances.square(), noise.shape[1], dependence)
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


def influence(
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

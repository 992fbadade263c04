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
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.local import GatedRegression
from tacit.observation import GaussianNoise

ROUNDS = 8
LOWEST_VARIANCE = 0.05  # relative to the mean squared residual: bounds the weight of a pair
SMALLEST_RIDGE = 1e-9  # relative to each diagonal entry: columns may be equal
KNOTS = (-1.6, -0.8, -0.4, 0.0, 0.4, 0.8, 1.6)  # of the standardised sum of contributions
MOST_LEVERAGE, MOST_CORRECTION = 0.9, 2.0
TINY = torch.finfo(torch.float64).tiny
SMALLEST_VARIANCE = 1e-60  # of a target without noise; its square does not underflow

Rows = Float[Tensor, "replica pair"]


@dataclass(frozen=True, eq=False)
class NodeData:
    """One node: its targets and what they are regressed on, in double precision.

    ``own``     (pair, column): own inputs, including the constant
    ``sent``    (source, pair, lag): inputs from each source
    ``spread``  (pair, term): $Z_0$, regressors of the variance of the noise
    """

    target: Float[Tensor, " pair"]
    own: Float[Tensor, "pair column"]
    sent: Float[Tensor, "source pair lag"]
    spread: Float[Tensor, "pair term"]

    @property
    def design(self) -> Float[Tensor, "pair column"]:
        """The design matrix: own columns, then the lags of each source."""
        return torch.cat([self.own, *self.sent], 1)

    def regression(self, rows: Bool[Tensor, " pair"], spread: Float[Tensor, "pair size"]) -> GatedRegression:
        """Return the regression of some rows by the likelihood of Gaussian noise, whose scale depends on ``spread``."""
        target, own, sent = self.target.cpu()[rows], self.own.cpu()[rows], self.sent.cpu()[:, rows]
        noise, one = GaussianNoise(1).to(target), torch.ones_like(target)
        return GatedRegression(own, sent, torch.zeros_like(target), target, one, noise, spread=spread[rows])


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
    node: NodeData,
    weights: Rows,
    kept: Bool[Tensor, "replica source"],
    rounds: int = ROUNDS,
    start: NodeMoments | None = None,
) -> NodeMoments:
    """Return the regressions for each replica's weights of the pairs, with the sources that it keeps.

    With a ``start``, the fit of all pairs, fewer iterations suffice: its variances are the initial values, and the
    nonlinear part and the corrections are reused.
    """
    design, (sources, _, lags) = node.design, node.sent.shape
    own = node.own.shape[1]
    columns = torch.cat([kept.new_ones(len(kept), own), kept.repeat_interleave(lags, 1)], 1)
    terms = torch.cat([kept.new_ones(len(kept), node.spread.shape[1]), kept], 1)
    variances = torch.ones_like(weights) if start is None else start.variances.expand_as(weights)
    for _ in range(rounds):
        beta = regress(design, node.target.expand_as(weights), weights / variances, columns)
        residuals = node.target - beta @ design.mT
        edges = beta[:, own:].reshape(len(beta), sources, lags)
        contributions = torch.einsum("jnl,rjl->rnj", node.sent, edges)
        if start is None:
            bends, leverages = _bends(node, residuals, contributions, weights, variances, columns)
        else:
            bends, leverages = start.bends.expand_as(weights), start.leverages.expand_as(weights)
        squares = (residuals - bends).square() / (1 - leverages)
        spread = torch.cat([node.spread.expand(len(weights), -1, -1), contributions.square()], 2)
        gamma = regress(spread, squares, weights / variances.square(), terms)
        mean = (weights * squares).sum(1, keepdim=True) / weights.sum(1, keepdim=True)
        explained = torch.einsum("rnt,rt->rn", spread, _nonnegative_for_edges(gamma, node.spread.shape[1]))
        variances = torch.maximum(explained, LOWEST_VARIANCE * mean).clamp_min(SMALLEST_VARIANCE)
    split = node.spread.shape[1]
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
    node: NodeData,
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
    node: NodeData,
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


def _nonnegative_for_edges(gamma: Float[Tensor, "replica term"], split: int) -> Float[Tensor, "replica term"]:
    """Return slopes with nonnegative terms for edges; the terms of the noise may have any sign."""
    return torch.cat([gamma[:, :split], gamma[:, split:].clamp_min(0)], 1)

r"""How often edges into one node act, from the mean and the variance of its targets.

A target that reads sources through gates, $y = X_0 \beta_0 + \sum_j A_j\, w_j x_j + e$ with independent
$A_j \sim \mathrm{Bernoulli}(\theta_j)$, has

$$E[y \mid x] = X_0 \beta_0 + \sum_j c_j, \qquad c_j = \theta_j\, w_j x_j, \qquad
\mathrm{Var}[y \mid x] = Z_0 \gamma_0 + \sum_j r_j\, c_j^2, \qquad r_j = \frac{1 - \theta_j}{\theta_j}$$

An edge that always acts adds nothing to the variance: $r_j = 0$. So $\theta_j = 1 / (1 + r_j)$ is a slope in the
regression of squared residuals on squared contributions. Both regressions are weighted by the variance and repeated
until they agree: the maximum of the normal pseudo-likelihood. It needs two moments of the noise, not its shape.
$Z_0$ is what the noise itself may depend on: a constant and the size of the node's own input. Residuals for the
variance are those of a mean that may also bend (squares and cubes of each contribution, a line with knots in their
sum), because a mean that is taken for straight and is not leaves residuals that grow with the source.

The weights of the pairs come with an axis of replicas, so that all resamples are fitted at once.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

ROUNDS = 8
LOWEST_VARIANCE = 0.05  # of the mean squared residual: no pair weighs more than one over this
SMALLEST_RIDGE = 1e-9  # of each diagonal entry: columns may be equal
KNOTS = (-1.6, -0.8, -0.4, 0.0, 0.4, 0.8, 1.6)  # deviations of the sum of contributions from its mean
TINY = torch.finfo(torch.float64).tiny

Rows = Float[Tensor, "replica pair"]


@dataclass(frozen=True, eq=False)
class NodeData:
    """One node: its targets and what they are regressed on, in double precision.

    ``own``     (pair, column): what is always read, the constant included
    ``sent``    (source, pair, lag): what each source sends
    ``spread``  (pair, term): $Z_0$, what the variance of the noise is regressed on
    """

    target: Float[Tensor, " pair"]
    own: Float[Tensor, "pair column"]
    sent: Float[Tensor, "source pair lag"]
    spread: Float[Tensor, "pair term"]

    @property
    def design(self) -> Float[Tensor, "pair column"]:
        """Own columns, then the lags of each source."""
        return torch.cat([self.own, *self.sent], 1)


@dataclass(frozen=True, eq=False)
class NodeMoments:
    r"""The two regressions of one node, for each replica.

    ``own`` and ``edges`` are $\beta$, ``noise`` is $\gamma_0$ and ``ratios`` are $r$, which may come out below 0.
    ``residuals`` are those of the straight mean, and ``bends`` the part of them that a mean which may bend takes off.
    """

    own: Float[Tensor, "replica column"]
    edges: Float[Tensor, "replica source lag"]
    noise: Float[Tensor, "replica term"]
    ratios: Float[Tensor, "replica source"]
    residuals: Rows
    bends: Rows
    contributions: Float[Tensor, "replica pair source"]
    variances: Rows

    @property
    def squares(self) -> Rows:
        """Squared residuals of the mean that may bend."""
        return (self.residuals - self.bends).square()


def fit_moments(
    node: NodeData,
    weights: Rows,
    kept: Bool[Tensor, "replica source"],
    rounds: int = ROUNDS,
    start: NodeMoments | None = None,
) -> NodeMoments:
    """Return the regressions under each replica's weights of the pairs, with the sources that it keeps.

    With a ``start``, that of all pairs, fewer rounds do: its variances are the first, and its bends are kept.
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
        bends = (
            _bends(node, residuals, contributions, weights / variances, columns)
            if start is None
            else start.bends.expand_as(weights)
        )
        squares = (residuals - bends).square()
        spread = torch.cat([node.spread.expand(len(weights), -1, -1), contributions.square()], 2)
        gamma = regress(spread, squares, weights / variances.square(), terms)
        mean = (weights * squares).sum(1, keepdim=True) / weights.sum(1, keepdim=True)
        explained = torch.einsum("rnt,rt->rn", spread, _no_less_than_none(gamma, node.spread.shape[1]))
        variances = torch.maximum(explained, LOWEST_VARIANCE * mean).clamp_min(TINY)
    split = node.spread.shape[1]
    return NodeMoments(
        beta[:, :own], edges, gamma[:, :split], gamma[:, split:], residuals, bends, contributions, variances
    )


def _bends(
    node: NodeData,
    residuals: Rows,
    contributions: Float[Tensor, "replica pair source"],
    weights: Rows,
    columns: Bool[Tensor, "replica column"],
) -> Rows:
    """Return what squares and cubes of the contributions, and a line with knots in their sum, explain of residuals."""
    if not contributions.shape[2]:
        return torch.zeros_like(residuals)
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
    explained: Tensor = torch.einsum("rnc,rc->rn", bent, coefficients)
    return explained


def regress(
    design: Float[Tensor, "*replica pair column"],
    target: Rows,
    weights: Rows,
    columns: Bool[Tensor, "replica column"],
) -> Float[Tensor, "replica column"]:
    """Return weighted least squares of each replica on its columns; the coefficients of others are 0."""
    weighted = design * weights[:, :, None]
    used = columns.to(design.dtype)
    gram = (weighted.mT @ design) * used[:, :, None] * used[:, None]
    sizes = gram.diagonal(dim1=1, dim2=2).clamp_min(TINY).rsqrt()
    scaled = gram * sizes[:, :, None] * sizes[:, None]
    ridge = torch.where(columns, SMALLEST_RIDGE, 1.0)
    right = (weighted.mT @ target[:, :, None])[:, :, 0] * used * sizes
    found: Tensor = torch.linalg.solve(scaled + torch.diag_embed(ridge), right) * sizes * used
    return found


def _no_less_than_none(gamma: Float[Tensor, "replica term"], split: int) -> Float[Tensor, "replica term"]:
    """Return slopes with which no edge lowers the variance; the terms of the noise may have any sign."""
    return torch.cat([gamma[:, :split], gamma[:, split:].clamp_min(0)], 1)

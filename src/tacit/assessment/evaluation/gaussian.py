r"""Scores of Gaussian forecasts, such as those of a regression or of the last value."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.data import Pairs
from tacit.errors import require
from tacit.shapes import PointPrediction

Sigmas = Float[Tensor, "node channel"]


def gaussian_crps(means: PointPrediction, sigmas: Sigmas, targets: PointPrediction) -> PointPrediction:
    r"""Return the CRPS of $N(\mu, \sigma^2)$ for each target, in closed form.

    $\sigma \big( z (2 \Phi(z) - 1) + 2 \phi(z) - 1 / \sqrt{\pi} \big)$ with $z = (y - \mu) / \sigma$; at $\sigma = 0$
    it is the absolute error.

    >>> one = torch.ones(1, 1, 1)
    >>> round(gaussian_crps(0 * one, one[0], 0 * one).item(), 6), gaussian_crps(0 * one, 0 * one[0], 2 * one).item()
    (0.233695, 2.0)
    """
    error = targets - means
    z = error / torch.where(sigmas > 0, sigmas, 1.0)
    density = torch.exp(-z.square() / 2) / math.sqrt(2 * math.pi)
    inner = z * torch.erf(z / math.sqrt(2)) + 2 * density - 1 / math.sqrt(math.pi)
    return torch.where(sigmas > 0, sigmas * inner, error.abs())


def residual_sigmas(means: PointPrediction, pairs: Pairs) -> Sigmas:
    """Return the root mean square error of each target over the pairs in which it was observed."""
    seen = torch.ones_like(pairs.targets) if pairs.observed is None else pairs.observed
    counts = seen.sum(0)
    require(
        bool((counts > 0).all()),
        f"pairs must have at least one observed target of every node, got none of node {int(counts.amin(1).argmin())}; "
        "pass more pairs",
    )
    return ((means - pairs.targets).square() * seen).sum(0).div(counts).sqrt()


def gaussian_coverage(means: PointPrediction, sigmas: Sigmas, pairs: Pairs, level: float) -> float:
    r"""Return the share of observed targets with $|y - \mu| \le \sigma\, \Phi^{-1}((1 + l) / 2)$, inside the interval.

    >>> pairs = Pairs(torch.zeros(4, 1, 1), torch.tensor([0.0, 1.5, -1.9, 2.1]).view(4, 1, 1))
    >>> gaussian_coverage(torch.zeros(4, 1, 1), torch.ones(1, 1), pairs, 0.95)
    0.75
    """
    seen = torch.ones_like(pairs.targets) if pairs.observed is None else pairs.observed
    reach = sigmas * torch.special.ndtri(sigmas.new_tensor((1 + level) / 2))
    inside = ((pairs.targets - means).abs() <= reach).to(seen.dtype)
    return float((inside * seen).sum() / seen.sum())


def gaussian_scores(means: PointPrediction, sigmas: Sigmas, pairs: Pairs) -> dict[str, float]:
    """Return ``point_mae``, ``point_mse`` and ``crps``, means over all observed targets."""
    seen = torch.ones_like(pairs.targets) if pairs.observed is None else pairs.observed
    error = means - pairs.targets
    values = {
        "point_mae": error.abs(),
        "point_mse": error.square(),
        "crps": gaussian_crps(means, sigmas, pairs.targets),
    }
    return {name: ((value * seen).sum() / seen.sum()).item() for name, value in values.items()}

r"""The evidence of residuals against a Gaussian shape.

For residuals $u_t$ with mean 0 and variance 1 the log Bayes factor against a Gaussian is

$$\log\Big( \tfrac12 + \tfrac12 \sum_d \pi_d \prod_t \frac{f_d(u_t)}{\varphi(u_t)} \Big),$$

with densities $f_d$ of many shapes (peaked, flat, heavy-tailed, skewed, bimodal) at several scales. The Gaussian has
half of the prior probability, so Gaussian residuals get about 0. All densities are tabulated over bins: the sums over
$t$ are products of a histogram with these tables.
"""

from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor

WIDEST, BINS = 8.0, 640
SCALES = (0.8, 0.9, 1.0, 1.1, 1.25)
POWERS = (0.7, 1.0, 1.4, 3.0, 8.0)  # exp(-|u|^p): 1 is Laplace, 8 nearly uniform
DEGREES = (3.0, 5.0, 9.0)  # of Student's t
SKEWED = (0.6, 0.8, 0.95)  # share of an exponential in the variance, the rest is Gaussian
MODES = (0.7, 0.9)  # distance of two Gaussians from 0
FLOOR = -60.0  # lower bound of a log density
Bins = Float[Tensor, " bin"]


def shape_evidence(
    residuals: Float[Tensor, "set row"], weights: Float[Tensor, "set row"] | Float[Tensor, " row"]
) -> Float[Tensor, " set"]:
    """Return the log Bayes factor of each set of residuals against a Gaussian, with row weights."""
    weights = weights.expand_as(residuals)
    deviations = ((weights * residuals.square()).sum(1) / weights.sum(1)).sqrt().clamp_min(1e-300)
    places = ((residuals / deviations[:, None] + WIDEST) * (BINS / (2 * WIDEST))).long().clamp_(0, BINS - 1)
    counts = residuals.new_zeros(len(residuals), BINS).scatter_add_(1, places, weights)
    ratios = counts @ _log_ratios().to(counts)  # (set, shape)
    others = torch.logsumexp(ratios, 1) - torch.log(torch.tensor(float(ratios.shape[1])))
    return torch.logaddexp(others, torch.zeros_like(others)) - torch.log(torch.tensor(2.0))


@cache
def _log_ratios() -> Float[Tensor, "bin shape"]:
    """Return the log density of each shape minus that of a Gaussian, at the middle of each bin."""
    fine = torch.linspace(-4 * WIDEST, 4 * WIDEST, 8 * BINS + 1, dtype=torch.float64)
    middles = torch.linspace(-WIDEST, WIDEST, BINS + 1, dtype=torch.float64)
    middles = (middles[1:] + middles[:-1]) / 2
    gaussian = -middles.square() / 2 - 0.5 * torch.log(torch.tensor(2 * torch.pi, dtype=torch.float64))
    found = []
    for density in _densities(fine):
        logs = _standardised(fine, density)
        for scale in SCALES:
            found.append(_looked_up(fine, logs, middles / scale) - torch.log(torch.tensor(scale)) - gaussian)
    return torch.stack(found, 1)


def _densities(u: Bins) -> list[Bins]:
    """Return unnormalised densities, not yet standardised."""
    powers = [torch.exp(-(u.abs() ** power)) for power in POWERS]
    heavy = [(1 + u.square() / degrees) ** (-(degrees + 1) / 2) for degrees in DEGREES]
    modes = [
        torch.exp(-(u - mode).square() / (2 * (1 - mode**2))) + torch.exp(-(u + mode).square() / (2 * (1 - mode**2)))
        for mode in MODES
    ]
    skewed = []
    for share in SKEWED:  # an exponential plus a Gaussian
        rate, sigma = share**-0.5, (1 - share) ** 0.5
        tail = torch.special.log_ndtr(u / sigma - rate * sigma)
        skewed.append(torch.exp(-rate * u + (rate * sigma) ** 2 / 2 + tail))
    return [*powers, *heavy, *modes, *skewed, *(density.flip(0) for density in skewed)]


def _standardised(u: Bins, density: Bins) -> Bins:
    """Return the log density of the standardised variable."""
    density = density / torch.trapezoid(density, u)
    mean = torch.trapezoid(density * u, u)
    deviation = torch.trapezoid(density * (u - mean).square(), u).sqrt()
    return _looked_up(u, density.clamp_min(1e-300).log(), u * deviation + mean) + deviation.log()


def _looked_up(u: Bins, logs: Bins, at: Float[Tensor, " place"]) -> Float[Tensor, " place"]:
    """Return log densities from a table, by linear interpolation."""
    place = ((at - u[0]) / (u[1] - u[0])).clamp(0, len(u) - 1.001)
    low = place.long()
    return torch.lerp(logs[low], logs[low + 1], place - low).clamp_min(FLOOR)

r"""From a test statistic to the probability that an edge exists.

An edge that exists acts with a probability $\theta > 0$. Its prior is $p(\theta) = 2 \theta$ on $[0, 1]$: most existing
edges act often. This density vanishes at 0 (Johnson and Rossell 2010), so that evidence against an absent edge
accumulates faster; with a density that does not vanish, the best of a hundred absent edges would keep a noticeable
probability by chance. With an estimate that is $z$ standard errors $s$ from 0, the evidence for the edge is

$$\log \mathrm{BF} = \log \int_0^1 2 \theta\, \exp\Big( \frac{z \theta}{s} - \frac{\theta^2}{2 s^2} \Big) d\theta
  - \tfrac k2 \log n$$

for an edge with $k$ weights of its own, 0 if the predictor shares its weights. With the prior odds,

$$\operatorname{logit} P(\text{exists}) = \operatorname{logit} p + \log \mathrm{BF}.$$

Near its maximum twice the log-likelihood ratio is $z^2$, so $z^2 / 2$ is the gain in nats. A score that is not a
log-likelihood is not in nats, but its scale cancels in $z$. Let $D_b$ be the increase of the score of pair $b$ without
the edge. If the edge is $z$ standard errors from 0, $D$ has mean $\tfrac12 z^2 \lambda / n$ and variance
$z^2 \lambda^2 / n$ over $n$ pairs, with an unknown factor $\lambda$, which is 1 for a log-likelihood. Hence

$$z = 2\, \frac{\mathrm{mean}\, D}{\mathrm{se}(\mathrm{mean}\, D)}, \qquad
  \text{gain in nats} = \tfrac12 z^2 = 2 \Big( \frac{\mathrm{mean}\, D}{\mathrm{se}(\mathrm{mean}\, D)} \Big)^2 .$$

For the mean of normal variables both are exact at any distance from 0.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

Statistic = Float[Tensor, "*edge"]
Differences = Float[Tensor, "*edge batch"]
LOWEST, POINTS = 1e-5, 2000  # of a geometric grid of probabilities
LARGEST = 1e3  # standard error beyond which an estimate is uninformative


def existence(
    z: Statistic,
    std_error: Statistic,
    prior: Float[Tensor, "*#edge"] | float,
    *,
    num_units: int = 1,
    num_weights: int = 0,
) -> Statistic:
    """Return the probability that an edge exists.

    ``z``            estimate in standard errors
    ``std_error``    standard error of the probability that the edge acts
    ``prior``        prior probability that the edge exists
    ``num_units``    number of independent pairs, or blocks of pairs
    ``num_weights``  number of weights of the edge

    >>> z = torch.tensor([-1.0, 0.0, 2.0, 3.0, 5.0])
    >>> [round(p, 4) for p in existence(z, torch.full((5,), 0.01), 0.1).tolist()]
    [0.0, 0.0, 0.0008, 0.0148, 0.9868]
    >>> round(existence(torch.tensor(1.0), torch.tensor(10.0), 0.1).item(), 2)  # an estimate that says nothing
    0.11
    """
    evidence = log_bayes_factor(z.double(), std_error.double(), num_units=num_units, num_weights=num_weights)
    logit: Tensor = torch.logit(torch.as_tensor(prior, dtype=torch.float64)).to(z.device) + evidence
    return torch.sigmoid(logit)


def log_bayes_factor(z: Statistic, std_error: Statistic, *, num_units: int = 1, num_weights: int = 0) -> Statistic:
    """Return the evidence for an edge in nats; negative if the data support its absence."""
    logs = torch.linspace(math.log(LOWEST), 0.0, POINTS, dtype=z.dtype, device=z.device)
    acts = logs.exp() / std_error.clamp(torch.finfo(z.dtype).tiny, LARGEST)[..., None]  # (*edge, point)
    density = math.log(2) + 2 * logs + math.log(-logs[0].item() / (POINTS - 1))  # 2 theta d theta, theta = exp(logs)
    density[-1] -= math.log(2)  # the trapezoidal rule; the density at the other end is negligible
    evidence = torch.logsumexp(z[..., None] * acts - acts.square() / 2 + density, -1)
    return evidence - num_weights / 2 * math.log(num_units)


def standardised(differences: Differences, block: int = 1) -> Statistic:
    """Return the mean over pairs in standard errors; pairs of one ``block`` are not assumed to be independent.

    >>> differences = torch.tensor([1.0, 1.0, 3.0, 3.0])
    >>> [round(standardised(differences, block).item(), 2) for block in (1, 2)]
    [3.46, 2.0]
    """
    values = differences.double()
    block = max(1, min(block, values.shape[-1] // 2))  # at least two blocks
    units = values.shape[-1] // block
    means = values[..., : units * block].reshape(*values.shape[:-1], units, block).mean(-1)
    error = means.std(-1) / units**0.5
    return torch.where(error > 0, means.mean(-1) / error, 0.0)

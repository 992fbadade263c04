r"""From a test statistic to the probability that an edge exists.

An edge that exists acts with a probability $\theta > 0$ that is estimated with standard error $s$; $z$ is the estimate
in standard errors. The prior of $\theta$ is half a normal as wide as the estimate from one pair would be (unit
information, Kass and Wasserman 1995), with deviation $\sqrt n\, s$. The evidence for the edge is then

$$\log \mathrm{BF} = \tfrac{v}{2} z^2 + \log 2 \Phi(\sqrt v\, z) - \tfrac{1 + k}{2} \log(1 + n), \qquad
  v = \frac{n}{1 + n}$$

for an edge that brings $k$ weights of its own; $k = 0$ where the predictor shares them. Near its maximum twice the
log-likelihood ratio is $z^2$, so that $z^2 / 2$ is the gain in nats. Together with the prior odds,

$$\operatorname{logit} P(\text{exists}) = \operatorname{logit} p + \log \mathrm{BF}.$$

A score that is no log-likelihood has no nats by itself. Its scale drops out of $z$: let $D_b$ be how much the score of
pair $b$ rises without the edge. Where the edge is $z$ standard errors away from 0, $D$ has mean $\tfrac12 z^2 \lambda /
n$ and variance $z^2 \lambda^2 / n$ over pairs, with an unknown factor $\lambda$, 1 for a log-likelihood; hence

$$z = 2\, \frac{\mathrm{mean}\, D}{\mathrm{se}(\mathrm{mean}\, D)}, \qquad
  \text{gain in nats} = \tfrac12 z^2 = 2 \Big( \frac{\mathrm{mean}\, D}{\mathrm{se}(\mathrm{mean}\, D)} \Big)^2 .$$

For the mean of normal numbers both are exact however far from 0 it is.
"""

import torch
from jaxtyping import Float
from torch import Tensor

Statistic = Float[Tensor, "*edge"]
Differences = Float[Tensor, "*edge batch"]


def existence(
    z: Statistic, num_units: int, prior: Float[Tensor, "*#edge"] | float, *, num_weights: int = 0
) -> Statistic:
    """Return the probability that an edge exists.

    ``z``            estimate in standard errors
    ``num_units``    independent pairs, or blocks of them, that it rests on
    ``prior``        probability before the data
    ``num_weights``  weights that come with the edge

    >>> [round(p, 3) for p in existence(torch.tensor([-1.0, 0.0, 2.0, 3.0, 5.0]), 10_000, 0.1).tolist()]
    [0.001, 0.001, 0.016, 0.166, 0.998]
    """
    odds = torch.logit(torch.as_tensor(prior, dtype=torch.float64))
    logit: Tensor = odds.to(z.device) + log_bayes_factor(z.double(), num_units, num_weights=num_weights)
    return logit.sigmoid()


def log_bayes_factor(z: Statistic, num_units: int, *, num_weights: int = 0) -> Statistic:
    """Return the evidence for an edge, in nats; negative where the data are better explained without it."""
    share = num_units / (1 + num_units)
    one_sided = torch.special.log_ndtr(share**0.5 * z) + torch.log(z.new_tensor(2.0))
    return share * z.square() / 2 + one_sided - (1 + num_weights) / 2 * torch.log(z.new_tensor(1.0 + num_units))


def standardised(differences: Differences, block: int = 1) -> Statistic:
    """Return the mean over pairs in standard errors; neighbours of one ``block`` are not taken as independent.

    >>> differences = torch.tensor([1.0, 1.0, 3.0, 3.0])
    >>> [round(standardised(differences, block).item(), 2) for block in (1, 2)]
    [3.46, 2.0]
    """
    values = differences.double()
    units = values.shape[-1] // block
    means = values[..., : units * block].reshape(*values.shape[:-1], units, block).mean(-1)
    error = means.std(-1) / units**0.5
    return torch.where(error > 0, means.mean(-1) / error, 0.0)

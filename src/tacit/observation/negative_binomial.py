r"""Overdispersed counts: the variance exceeds the mean.

$$E\,v = m, \qquad \mathrm{Var}\,v = m + \alpha m^2$$

$$P(v = k) = \frac{\Gamma(k + r)}{k!\, \Gamma(r)} \Big(\frac{r}{r + m}\Big)^r \Big(\frac{m}{r + m}\Big)^k,
  \qquad r = 1 / \alpha$$

$\alpha$ is the dispersion of a node, a parameter of the model; Poisson counts have $\alpha = 0$. Random edges also
increase the variance of counts: only the shape of the distribution given the input distinguishes the two.
"""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from tacit.observation.counts import Counts
from tacit.observation.model import Derivatives, TargetValues
from tacit.registry import register
from tacit.shapes import Samples, TargetParams, Targets

INITIAL_DISPERSION = 0.1
LEAST_DISPERSION = 1e-4  # a variance 1% above the mean at a mean of 100: nearly Poisson


class NegativeBinomialCounts(Counts):
    r"""Counts with the variance $m + \alpha m^2$; ``log_dispersion`` is learned, one per node and channel.

    >>> counts = NegativeBinomialCounts(num_nodes=2)
    >>> parameters = counts.describe(torch.full((1, 1, 2, 1), 20.0), torch.zeros(1, 2, 3))
    >>> round(counts.variance(parameters)[0, 0, 0, 0].item(), 1)  # 20 + 0.1 * 20^2
    60.0
    """

    words: ClassVar[str] = "counts that vary more than their mean, negative binomial"

    def __init__(self, num_nodes: int, channels: int = 1, values: TargetValues | None = None) -> None:
        super().__init__(num_nodes, channels, values)
        self.log_dispersion = nn.Parameter(_log_dispersion(torch.full((num_nodes, channels), INITIAL_DISPERSION)))

    @property
    def dispersion(self) -> Float[Tensor, "node channel"]:
        r"""$\alpha$."""
        return self.log_dispersion.exp() + LEAST_DISPERSION

    def coefficients(self, counts: Tensor) -> Tensor:
        r"""Return $\log \Gamma(k + r) - \log \Gamma(r) - k \log r - \log k!$.

        In float64, because two large numbers cancel if $\alpha$ is small. There is no graph axis, so it is cheap.
        """
        r, k = (1 / self.dispersion.double())[..., None], counts.double()
        return torch.lgamma(k + r) - torch.lgamma(r) - k * r.log() - torch.lgamma(k + 1)

    def ratios(self, counts: Tensor) -> Tensor:
        r"""Return $\log (1 + (k - 1)\, \alpha) - \log k$."""
        return torch.log1p((counts - 1) * self.dispersion.double()[..., None]) - counts.log()

    def natural(self, means: TargetParams) -> tuple[Samples, Samples]:
        r"""Return $\log m - \log(1 + \alpha m)$ and $\log(1 + \alpha m) / \alpha$."""
        dispersion = self.dispersion
        log_ratio = torch.log1p(dispersion * means)
        return means.log() - log_ratio, log_ratio / dispersion

    def rates(self, means: TargetParams, generator: Generator) -> Samples:
        r"""Return $m g$ with a gamma variate $g$ of mean 1 and variance $\alpha$."""
        shape = (1 / self.dispersion).to(means).expand_as(means).contiguous()
        return means * torch._standard_gamma(shape, generator=generator) / shape

    def by_log_mean(self, means: TargetParams, targets: Targets) -> Derivatives:
        r"""Return the derivatives by $\log m$ and ``log_dispersion``."""
        dispersion = self.dispersion
        by_log, r = dispersion - LEAST_DISPERSION, 1 / dispersion
        places = self.places(targets)
        constant = self.coefficients(places[..., None])[..., 0]
        # the coefficients by r, and then by the dispersion
        of_r = torch.digamma(places + r) - torch.digamma(r) - places / r
        of_r2 = torch.polygamma(1, places + r) - torch.polygamma(1, r) + places / r.square()
        first, second = -of_r * r.square(), of_r2 * r**4 + 2 * of_r * r**3
        counts = places[:, None]
        product = dispersion * means
        logs, share = torch.log1p(product), 1 / (1 + product)
        over = means * share
        by_dispersion = first[:, None] - counts * over - over * r + logs * r.square()
        of_dispersion = (
            second[:, None] + counts * over.square() + over.square() * r + 2 * over * r.square() - 2 * logs * r**3
        )
        score = (counts - means) * share
        return Derivatives(
            constant[:, None] + counts * (means.log() - logs) - logs * r,
            score,
            -over * (1 + dispersion * counts) * share,
            [by_log * by_dispersion],
            [-by_log * over * score],
            [by_log.square() * of_dispersion + by_log * by_dispersion],
        )

    def information(self, parameters: TargetParams) -> Samples:
        r"""Return $(\partial m / \partial f)^2 / (m + \alpha m^2)$."""
        return self.slopes_of(parameters).square() / self._spread(parameters)

    def variance(self, parameters: TargetParams) -> Samples:
        r"""Return $m + \alpha m^2$, in squared units of scaled targets."""
        return self._spread(parameters) / self.unit.square()

    def with_deviations(self, sigmas: Float[Tensor, "node channel"]) -> dict[str, Tensor]:
        """Return ``log_dispersion`` for given standard deviations at a node's mean, the offset of the targets."""
        means = torch.where(self.offset > 0, self.offset, 1.0)
        excess = ((sigmas * self.unit).square() - means) / means.square()
        fitted = _log_dispersion(excess.clamp_min(INITIAL_DISPERSION / 10))
        return {"log_dispersion": torch.where(self.offset > 0, fitted.to(self.offset), self._start())}

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return the initial dispersion."""
        return {"log_dispersion": self._start().to(generator.device)}

    def _start(self) -> Tensor:
        return _log_dispersion(torch.full_like(self.log_dispersion, INITIAL_DISPERSION))

    def _spread(self, means: TargetParams) -> Samples:
        return means + self.dispersion * means.square()


def _log_dispersion(dispersion: Tensor) -> Tensor:
    return (dispersion - LEAST_DISPERSION).log().detach()


register("observation", "negative_binomial", NegativeBinomialCounts)

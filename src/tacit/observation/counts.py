r"""Count distributions of an exponential family, parameterised by their mean.

$$P(v = k) = \exp(c_k + k\, \eta(m) - a(m))$$

=================  ====================================  ============================  ========================
Poisson            $c_k = -\log k!$                      $\eta = \log m$               $a = m$
negative binomial  $c_k = \log \binom{k + r - 1}{k}$     $\eta = \log (m / (r + m))$   $a = r \log (1 + m / r)$
=================  ====================================  ============================  ========================

Tables end at the largest count $K$ (``largest`` of :class:`~tacit.observation.TargetValues`). Truncation errors:

- $E|Y_s - y|$ is exact for $y \le K + 1$. For larger targets it is too large by at most $2 E(Y_s - K - 1)^+$.
- $E|Y_s - Y_t|$ is too small by at most $E(Y_s - K - 1)^+ + E(Y_t - K - 1)^+$.
- Samples of given uniforms end at $2 K + 50$.

So for means above the table the energy score still has the slope of the distance to the target, and a fit can recover.
For $K > 255$ tables are too large: ``closed_forms`` is False, and losses use samples.
"""

from abc import abstractmethod

import torch
from torch import Generator, Tensor

from tacit.observation.model import Support, TargetValues
from tacit.observation.positive import PositiveMean
from tacit.observation.steps import Steps, Table
from tacit.shapes import Draws, NoiseUniforms, Samples, TargetParams, Targets

MOST_COUNTS = 255  # the largest count with closed forms: a table of 256 numbers for each target and graph
NUMBERS_AT_ONCE = 2**22  # of the tables that samples are drawn from


class Counts(PositiveMean, Steps):
    """Base class of count distributions."""

    support: Support = "counts"

    def __init__(self, num_nodes: int, channels: int = 1, values: TargetValues | None = None) -> None:
        super().__init__(num_nodes, channels, values)
        self.closed_forms = self.values.largest <= MOST_COUNTS
        self.working_numbers = self.values.largest + 1

    @abstractmethod
    def coefficients(self, counts: Tensor) -> Tensor:
        """Return $c_k$ of any counts; the axes before the last axis of ``counts`` are (node, channel)."""

    @abstractmethod
    def ratios(self, counts: Tensor) -> Tensor:
        """Return $c_k - c_{k - 1}$ for $k$ = 1, 2, ...; their sums are cheaper for whole tables."""

    @abstractmethod
    def natural(self, means: TargetParams) -> tuple[Samples, Samples]:
        r"""Return $\eta(m)$ and $a(m)$."""

    def log_prob(self, parameters: TargetParams, targets: Targets) -> Samples:
        """Return the log probability of the count of each target; in float64, because large numbers cancel."""
        counts = self.places(targets.double())
        eta, normalizer = self.natural(parameters.double())
        found = self.coefficients(counts[..., None])[:, None, ..., 0] + counts[:, None] * eta - normalizer
        return found.to(parameters)

    def places(self, targets: Targets) -> Targets:
        """Return the count of each target."""
        return self.to_values(targets).round().clamp_min(0)

    def table(self, parameters: TargetParams) -> Table:
        """Return the probability of a count up to k, for k = 0 ... largest."""
        return self._masses(parameters, 0, self.values.largest + 1).cumsum(-1).clamp_max(1)

    @torch.no_grad()
    def sample(self, parameters: TargetParams, uniforms: NoiseUniforms) -> Samples:
        """Return the counts of given uniforms as scaled targets: the first k with F(k) >= u.

        Sums are in float64: if rounding kept a sum below 1, a uniform near 1 would map to the end of the table.
        """
        means, last = parameters.double(), 2 * self.values.largest + 50
        at_once = max(1, min(64, NUMBERS_AT_ONCE // means.numel()))
        total, counts = torch.zeros_like(means), torch.zeros_like(means)
        for first in range(0, last, at_once):
            sums = total[..., None] + self._masses(means, first, min(first + at_once, last)).cumsum(-1)
            counts = counts + (sums < uniforms[..., None]).sum(-1)
            total = sums[..., -1]
        return self.to_targets(counts.to(parameters))

    def draw(self, parameters: TargetParams, *, generator: Generator, draws: int = 1) -> Draws:
        """Return ``draws`` samples of each graph: Poisson numbers with the given rates."""
        rates = self.rates(parameters.repeat_interleave(draws, 1).to(generator.device), generator)
        return self.to_targets(torch.poisson(rates, generator=generator).to(parameters))

    def rates(self, means: TargetParams, generator: Generator) -> Samples:
        """Return rates such that Poisson numbers with these rates have the distribution of the counts."""
        del generator
        return means

    def _masses(self, means: TargetParams, first: int, end: int) -> Table:
        counts = torch.arange(end, dtype=torch.float64, device=means.device)
        later = self.ratios(counts[1:]).cumsum(-1)  # small: it has no axis of pairs or graphs
        coefficients = torch.cat([torch.zeros_like(later[..., :1]), later], -1)[..., first:].to(means)
        eta, normalizer = self.natural(means)
        logs = torch.addcmul(coefficients, eta[..., None], counts[first:].to(means))
        return (logs - normalizer[..., None]).exp()

    def _expected(self, parameters: TargetParams, centred: Table, targets: Targets) -> Samples:
        r"""Return the distance up to the end of the table, and $E(Y_s - K - 1)^+$ for the part beyond it."""
        size = centred.shape[-1]
        beyond = parameters - (0.5 * size - centred.sum(-1)) + (self.places(targets)[:, None] - size).clamp_min(0)
        return super()._expected(parameters, centred, targets) + beyond / self.unit

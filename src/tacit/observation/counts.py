r"""Counts of an exponential family, described by their mean.

$$P(v = k) = \exp(c_k + k\, \eta(m) - a(m))$$

=================  ====================================  ============================  ========================
Poisson            $c_k = -\log k!$                      $\eta = \log m$               $a = m$
negative binomial  $c_k = \log \binom{k + r - 1}{k}$     $\eta = \log (m / (r + m))$   $a = r \log (1 + m / r)$
=================  ====================================  ============================  ========================

Tables end at the largest count $K$ (``largest`` of :class:`~tacit.observation.TargetValues`). What this leaves out:

- $E|Y_s - y|$ is exact for $y \le K + 1$. For larger targets it is too large by at most $2 E(Y_s - K - 1)^+$.
- $E|Y_s - Y_t|$ is too small by at most $E(Y_s - K - 1)^+ + E(Y_t - K - 1)^+$.
- Samples of given uniforms end at $2 K + 50$.

Above the largest mean the energy score so has the slope of the distance to the target, and a fit finds back.
Where $K > 255$ tables are too large: ``closed_forms`` is False, and losses take samples.
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
    """The common part of distributions of counts."""

    support: Support = "counts"

    def __init__(self, num_nodes: int, channels: int = 1, values: TargetValues | None = None) -> None:
        super().__init__(num_nodes, channels, values)
        self.closed_forms = self.values.largest <= MOST_COUNTS
        self.working_numbers = self.values.largest + 1

    @abstractmethod
    def coefficients(self, counts: Tensor) -> Tensor:
        """Return $c_k$ of any counts; the last axes but one of ``counts`` are (node, channel)."""

    @abstractmethod
    def ratios(self, counts: Tensor) -> Tensor:
        """Return $c_k - c_{k - 1}$ for $k$ = 1, 2, ...: sums of them are cheaper for whole tables."""

    @abstractmethod
    def natural(self, means: TargetParams) -> tuple[Samples, Samples]:
        r"""Return $\eta(m)$ and $a(m)$."""

    def log_prob(self, parameters: TargetParams, targets: Targets) -> Samples:
        """Return the log probability of the count of each target; in float64, as large numbers cancel."""
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
        """Return the counts that given uniforms make, as scaled targets: the first k with F(k) >= u.

        Sums are in float64: a sum that rounding keeps below 1 would send a uniform near 1 to the end of the table.
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
        """Return ``draws`` samples of each graph, side by side: Poisson numbers of the rates."""
        rates = self.rates(parameters.repeat_interleave(draws, 1).to(generator.device), generator)
        return self.to_targets(torch.poisson(rates, generator=generator).to(parameters))

    def rates(self, means: TargetParams, generator: Generator) -> Samples:
        """Return the rates of Poisson numbers that have the distribution of the counts."""
        del generator
        return means

    def _masses(self, means: TargetParams, first: int, end: int) -> Table:
        counts = torch.arange(end, dtype=torch.float64, device=means.device)
        later = self.ratios(counts[1:]).cumsum(-1)  # of few numbers: there is no axis of pairs or graphs
        coefficients = torch.cat([torch.zeros_like(later[..., :1]), later], -1)[..., first:].to(means)
        eta, normalizer = self.natural(means)
        logs = torch.addcmul(coefficients, eta[..., None], counts[first:].to(means))
        return (logs - normalizer[..., None]).exp()

    def _expected(self, parameters: TargetParams, centred: Table, targets: Targets) -> Samples:
        r"""Return the distance up to the end of the table and, of what is beyond, $E(Y_s - K - 1)^+$."""
        size = centred.shape[-1]
        beyond = parameters - (0.5 * size - centred.sum(-1)) + (self.places(targets)[:, None] - size).clamp_min(0)
        return super()._expected(parameters, centred, targets) + beyond / self.unit

r"""Counts, Poisson or overdispersed, and the distances of all discrete values.

Discrete values are counts, binary values and ordered categories. With $c_0 < c_1 < \dots < c_K$ the possible values,
$F_s(k) = P(v \le c_k)$ under graph $s$ and $u$ the unit of targets,

$$u\, E|Y_s - Y_t| = \sum_{k < K} (c_{k+1} - c_k)\, (F_s(k) + F_t(k) - 2 F_s(k) F_t(k))
                   = \sum_{k < K} (c_{k+1} - c_k)\, (\tfrac12 - 2\, G_s(k)\, G_t(k)), \qquad G = F - \tfrac12$$

and a target $y = c_j$ is a distribution with $F(k) = 1[j \le k]$. The mean distance to many graphs is the distance to
their mean $G$, so the cost of the energy score is proportional to the size of the tables.

Count distributions are an exponential family, parameterised by their mean.

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

The variance of Poisson counts equals the mean.

$$v \sim \mathrm{Poisson}(m), \qquad P(v = k) = e^{-m} m^k / k!$$

That of overdispersed counts exceeds it.

$$E\,v = m, \qquad \mathrm{Var}\,v = m + \alpha m^2$$

$$P(v = k) = \frac{\Gamma(k + r)}{k!\, \Gamma(r)} \Big(\frac{r}{r + m}\Big)^r \Big(\frac{m}{r + m}\Big)^k,
  \qquad r = 1 / \alpha$$

$\alpha$ is the dispersion of a node, a parameter of the model; Poisson counts have $\alpha = 0$. Random edges also
increase the variance of counts: only the shape of the distribution given the input distinguishes the two.
"""

from abc import abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from tacit.observation.model import Derivatives, InUnits, PositiveMean, Support, TargetValues
from tacit.registry import register
from tacit.shapes import Draws, NoiseUniforms, Samples, TargetParams, Targets

Table = Float[Tensor, "batch graph node channel step"]
MOST_COUNTS = 255  # the largest count with closed forms: a table of 256 numbers for each target and graph
NUMBERS_AT_ONCE = 2**22  # of the tables that samples are drawn from
INITIAL_DISPERSION = 0.1
LEAST_DISPERSION = 1e-4  # a variance 1% above the mean at a mean of 100: nearly Poisson


class Steps(InUnits):
    """Base class of discrete distributions; a model defines its table $F$, its gaps and the index of a target."""

    reparameterized: bool = False
    closed_forms: bool = True

    @abstractmethod
    def table(self, parameters: TargetParams) -> Table:
        """Return $F(k)$ of every target under each graph, for all values except the last."""

    @abstractmethod
    def places(self, targets: Targets) -> Targets:
        """Return the index $j$ of each target among the values, as an integer stored in the type of the targets."""

    def gaps(self, like: Tensor) -> Tensor | None:
        """Return the distances between neighbouring values in the units of the data; None if all are 1."""
        del like
        return None

    def expected_distance(self, parameters: TargetParams, targets: Targets) -> Samples:
        r"""Return $E|Y_s - y|$ of each target under each graph $s$."""
        return self._expected(parameters, self.table(parameters) - 0.5, targets)

    def pair_distance(self, parameters: TargetParams) -> Float[Tensor, "batch graph graph node channel"]:
        r"""Return $E|Y_s - Y_t|$ for every two graphs."""
        centred = self.table(parameters) - 0.5
        gaps = self.gaps(centred)
        weighted = centred if gaps is None else centred * gaps
        products = torch.einsum("bsnck,btnck->bstnc", weighted, centred)
        return (0.5 * self._width(centred) - 2 * products) / self.unit

    def distances(self, parameters: TargetParams, targets: Targets, group_size: int = 1) -> tuple[Samples, Samples]:
        """Return both mean distances from one table; the mean over other graphs uses their mean table."""
        centred, num_graphs = self.table(parameters) - 0.5, parameters.shape[1]
        own = centred
        if group_size > 1:
            groups = centred.reshape(len(centred), -1, group_size, *centred.shape[2:])
            own = groups.sum(2, keepdim=True).expand_as(groups).flatten(1, 2)
        gaps = self.gaps(centred)
        others = centred.sum(1, keepdim=True) - own
        others = others if gaps is None else others * gaps
        products = (centred * others).sum(-1) / (num_graphs - group_size)
        spread = (0.5 * self._width(centred) - 2 * products) / self.unit
        return self._expected(parameters, centred, targets), spread

    def cdf(self, parameters: TargetParams, targets: Targets) -> tuple[Samples, Samples]:
        """Return the probabilities of a value below the target, and of a value at most the target."""
        table = self.table(parameters)
        ends = table.new_zeros(()).expand(*table.shape[:-1], 1)
        padded = torch.cat([ends, table, ends + 1], -1)
        places = self.places(targets).clamp(0, table.shape[-1]).long()[:, None, ..., None]
        places = places.expand(*table.shape[:-1], 1)
        return padded.gather(-1, places)[..., 0], padded.gather(-1, places + 1)[..., 0]

    @torch.no_grad()
    def sample(self, parameters: TargetParams, uniforms: NoiseUniforms) -> Samples:
        """Return the values of given uniforms as scaled targets: the first value with F >= u."""
        return self.to_targets(self.values_at((self.table(parameters) < uniforms[..., None]).sum(-1)))

    def values_at(self, places: Tensor) -> Tensor:
        """Return the values at indices 0, 1, ...; by default the indices themselves."""
        return places.to(self.unit.dtype)

    def _expected(self, parameters: TargetParams, centred: Table, targets: Targets) -> Samples:
        """Return the mean distance from a table of $G$."""
        del parameters
        steps = torch.arange(centred.shape[-1], device=centred.device)
        signs = 1 - 2 * (self.places(targets)[:, None, ..., None] <= steps).to(centred)  # -1 from the target on
        gaps = self.gaps(centred)
        signs = signs if gaps is None else signs * gaps
        return (0.5 * self._width(centred) + (centred * signs).sum(-1)) / self.unit

    def _width(self, table: Table) -> Tensor | int:
        """Return the distance between the first and the last value."""
        gaps = self.gaps(table)
        return table.shape[-1] if gaps is None else gaps.sum()


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


class PoissonCounts(Counts):
    """Poisson counts, whose variance equals their mean.

    >>> counts = PoissonCounts(num_nodes=2)
    >>> parameters = counts.describe(torch.zeros(1, 1, 2, 1), torch.zeros(1, 2, 3))
    >>> round(counts.log_prob(parameters, torch.zeros(1, 2, 1)).exp()[0, 0, 0, 0].item(), 4)  # exp(-log 2)
    0.5
    """

    words: ClassVar[str] = "counts, Poisson"
    wider: ClassVar[str] = "negative_binomial"

    def coefficients(self, counts: Tensor) -> Tensor:
        r"""Return $-\log k!$."""
        return -torch.lgamma(counts + 1)

    def ratios(self, counts: Tensor) -> Tensor:
        r"""Return $-\log k$."""
        return -counts.log()

    def natural(self, means: TargetParams) -> tuple[Samples, Samples]:
        r"""Return $\log m$ and $m$."""
        return means.log(), means

    def by_log_mean(self, means: TargetParams, targets: Targets) -> Derivatives:
        r"""Return the derivatives by $\log m$."""
        counts = self.places(targets)
        log_prob = counts[:, None] * means.log() - means + self.coefficients(counts)[:, None]
        return Derivatives(log_prob, counts[:, None] - means, -means, [], [], [])

    def information(self, parameters: TargetParams) -> Samples:
        r"""Return $(\partial m / \partial f)^2 / m$."""
        return self.slopes_of(parameters).square() / parameters

    def variance(self, parameters: TargetParams) -> Samples:
        """Return the means, in squared units of scaled targets."""
        return parameters / self.unit.square()


register("observation", "poisson", PoissonCounts)


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

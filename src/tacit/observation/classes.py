r"""Binary targets, with the values 1 (yes) and 0 (no), and ordered categories.

$$P(v = 1) = \frac{1}{1 + e^{-f}}$$

The energy score of a mixture over graphs is $(v - P(v = 1))^2 / u$: twice that is the Brier score, summed over both
values, of targets with unit $u = 1$.

Ordered categories have a cumulative logit model.

$$P(v \le c_k) = \frac{1}{1 + e^{f - \tau_k}}, \qquad \tau_1 < \tau_2 < \dots < \tau_{K - 1}$$

$c_1 < \dots < c_K$ are the values of the categories. The cuts $\tau$ of a node are parameters of the model. The energy
score of categories 0, 1, 2, ... is the ranked probability score.
"""

import itertools
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn
from torch.nn.functional import logsigmoid, softplus

from tacit.errors import require
from tacit.observation.counts import Steps, Table
from tacit.observation.model import Derivatives, Support, TargetValues
from tacit.registry import register
from tacit.shapes import Outputs, Samples, TargetParams, Targets

FAR = 1e4  # a cut that no output reaches: below the first category and above the last
LEAST_STEP = 1e-4  # smallest distance between cuts


class BernoulliTargets(Steps):
    """Binary targets; the distribution parameter is the logit of 1 (yes).

    >>> answers = BernoulliTargets(num_nodes=2)
    >>> parameters = answers.describe(torch.zeros(1, 1, 2, 1), torch.zeros(1, 2, 3))
    >>> answers.mean(parameters)[0, 0, 0, 0].item()
    0.5
    """

    words: ClassVar[str] = "yes or no"
    support: Support = "two values"

    def table(self, parameters: TargetParams) -> Table:
        """Return the probability of 0 (no)."""
        return torch.sigmoid(-parameters)[..., None]

    def places(self, targets: Targets) -> Targets:
        """Return 1 for targets of 1 (yes), else 0."""
        return (self.to_values(targets) > 0.5).to(targets)

    def mean(self, parameters: TargetParams) -> Samples:
        """Return the probability of 1 (yes), as a scaled target."""
        return self.to_targets(torch.sigmoid(parameters))

    def variance(self, parameters: TargetParams) -> Samples:
        r"""Return $p\,(1 - p)$, in squared units of scaled targets."""
        return self.information(parameters) / self.unit.square()

    def scales(self, spread: Float[Tensor, "node channel"]) -> Float[Tensor, "node number"]:
        r"""Return $1 / \sqrt{p\,(1 - p)}$: this change of a logit shifts the mean by about one standard deviation."""
        return torch.where(spread.isinf(), spread, 1 / (spread * self.unit))

    def log_prob(self, parameters: TargetParams, targets: Targets) -> Samples:
        """Return the log probability of each target."""
        signs: Tensor = 2 * self.places(targets)[:, None] - 1
        return logsigmoid(signs * parameters)

    def derivatives(self, outputs: Outputs, targets: Targets) -> Derivatives:
        r"""Return the derivatives by the logit: $v - p$ and $-p\,(1 - p)$."""
        places, probs = self.places(targets)[:, None], torch.sigmoid(outputs)
        log_prob = logsigmoid((2 * places - 1) * outputs)
        return Derivatives(log_prob, places - probs, -probs * (1 - probs), [], [], [])

    def information(self, parameters: TargetParams) -> Samples:
        r"""Return $p\,(1 - p)$."""
        return torch.sigmoid(parameters) * torch.sigmoid(-parameters)


register("observation", "bernoulli", BernoulliTargets)


class OrderedCategories(Steps):
    r"""Ordered categories; the distribution parameter is the output $f$.

    ``raw_cuts`` is learned, for each node and channel: the first cut, and unconstrained numbers for the steps between
    cuts.

    >>> grades = OrderedCategories(2, values=TargetValues.plain(2, categories=(1.0, 2.0, 3.0)))
    >>> parameters = grades.describe(torch.zeros(1, 1, 2, 1), torch.zeros(1, 2, 3))
    >>> [round(value, 4) for value in grades.table(parameters)[0, 0, 0, 0].tolist()]  # equal shares at the start
    [0.3333, 0.6667]
    """

    words: ClassVar[str] = "ordered categories"
    support: Support = "categories"
    categories: Tensor

    def __init__(self, num_nodes: int, channels: int = 1, values: TargetValues | None = None) -> None:
        super().__init__(num_nodes, channels, values)
        known = self.values.categories
        require(
            len(known) >= 2 and all(low < high for low, high in itertools.pairwise(known)),
            f"categories must be at least two increasing values for OrderedCategories, got {list(known)}; name all "
            "values in order",
        )
        self.register_buffer("categories", torch.tensor(known).to(self.offset), persistent=False)
        self.working_numbers = len(known)
        self.raw_cuts = nn.Parameter(_raw(_even(len(known))).expand(num_nodes, channels, -1).clone())

    @property
    def cuts(self) -> Float[Tensor, "node channel cut"]:
        r"""$\tau$."""
        first, steps = self.raw_cuts.tensor_split([1], -1)
        return torch.cat([first, softplus(steps) + LEAST_STEP], -1).cumsum(-1)

    def table(self, parameters: TargetParams) -> Table:
        """Return the cumulative probability of each category."""
        return torch.sigmoid(self.cuts - parameters[..., None])

    def places(self, targets: Targets) -> Targets:
        """Return the number of the category that is nearest to each target."""
        middles = (self.categories[1:] + self.categories[:-1]) / 2
        return (self.to_values(targets)[..., None] > middles).sum(-1).to(targets)

    def gaps(self, like: Tensor) -> Tensor:
        """Return the distances between neighbouring categories."""
        return self.categories.diff().to(like)

    def values_at(self, places: Tensor) -> Tensor:
        """Return the values of categories by their numbers: the sum of the steps up to each."""
        passed = places[..., None] > torch.arange(len(self.categories) - 1, device=places.device)
        return self.categories[0] + (passed * self.categories.diff()).sum(-1)

    def mean(self, parameters: TargetParams) -> Samples:
        """Return the means of the categories' values, as scaled targets."""
        return self.to_targets(self._moment(parameters, self.categories))

    def variance(self, parameters: TargetParams) -> Samples:
        """Return the variances of the scaled targets."""
        centred = self.categories - self.categories.mean()
        first, second = (self._moment(parameters, values) for values in (centred, centred.square()))
        return (second - first.square()) / self.unit.square()

    def scales(self, spread: Float[Tensor, "node channel"]) -> Float[Tensor, "node number"]:
        r"""Return $1 / \sqrt{I}$ with the information $I$ at output 0; infinite for targets without observations."""
        information = self.information(self.cuts.new_zeros(1, 1, *self.cuts.shape[:2]))[0, 0]
        return torch.where(spread.isinf(), spread, information.rsqrt().to(spread))

    def log_prob(self, parameters: TargetParams, targets: Targets) -> Samples:
        r"""Return $\log \sigma(b - f) + \log \sigma(f - a) + \log(1 - e^{a - b})$ for the cuts $a < b$."""
        lower, upper = (part[:, None] for part in self._cuts_around(targets))
        width = torch.log(-torch.expm1(lower - upper))
        return logsigmoid(upper - parameters) + logsigmoid(parameters - lower) + width

    def derivatives(self, outputs: Outputs, targets: Targets) -> Derivatives:
        r"""Return the derivatives by the output and ``raw_cuts``, from those by the cuts $a < b$ around the target."""
        lower, upper = (part[:, None] for part in self._cuts_around(targets))
        places, last = self.places(targets)[:, None], len(self.categories) - 1
        share = torch.sigmoid(self.raw_cuts)
        share[..., 0] = 1.0  # all cuts move with the first number
        below, above = torch.sigmoid(outputs - upper), torch.sigmoid(lower - outputs)
        of_upper, of_lower = below * (1 - below), above * (1 - above)
        narrow = 1 / torch.expm1(upper - lower)
        both = narrow * (1 + narrow)
        by_upper, by_lower = below + narrow, -above - narrow
        # how cuts move with the numbers: those of the target's lower and upper cut, which may not exist
        numbers = range(last)
        up = [share[..., i] * ((places >= i) & (places < last)) for i in numbers]
        low = [share[..., i] * (places > i) for i in numbers]
        of_noise = []
        for i, j in itertools.combinations_with_replacement(numbers, 2):
            mixed = up[i] * low[j] + low[i] * up[j]
            found = both * mixed - (of_upper + both) * (up[i] * up[j]) - (of_lower + both) * (low[i] * low[j])
            if i == j:
                found = found + (by_upper * up[i] + by_lower * low[i]) * (1 - share[..., i])
            of_noise.append(found)
        return Derivatives(
            logsigmoid(upper - outputs) + logsigmoid(outputs - lower) + torch.log(-torch.expm1(lower - upper)),
            above - below,
            -of_upper - of_lower,
            [by_upper * up[i] + by_lower * low[i] for i in numbers],
            [of_upper * up[i] + of_lower * low[i] for i in numbers],
            of_noise,
        )

    def information(self, parameters: TargetParams) -> Samples:
        r"""Return $\sum_k P(c_k)\, (F(k - 1) + F(k) - 1)^2$."""
        table = self.table(parameters)
        ends = torch.zeros_like(table[..., :1])
        below, up_to = torch.cat([ends, table], -1), torch.cat([table, ends + 1], -1)
        return ((up_to - below) * (below + up_to - 1).square()).sum(-1)

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return cuts that give all categories equal probability at output 0."""
        start = _raw(_even(len(self.categories))).to(self.raw_cuts)
        return {"raw_cuts": start.expand_as(self.raw_cuts).clone().to(generator.device)}

    def with_cuts(self, cuts: Float[Tensor, "node channel cut"]) -> dict[str, Tensor]:
        """Return the parameters for given cuts."""
        return {"raw_cuts": _raw(cuts).to(self.raw_cuts)}

    def _cuts_around(self, targets: Targets) -> tuple[Targets, Targets]:
        far = self.cuts.new_full((*self.cuts.shape[:-1], 1), FAR)
        padded = torch.cat([-far, self.cuts, far], -1).expand(len(targets), -1, -1, -1)
        places = self.places(targets).long()[..., None]
        return padded.gather(-1, places)[..., 0], padded.gather(-1, places + 1)[..., 0]

    def _moment(self, parameters: TargetParams, values: Tensor) -> Samples:
        return values[-1] - (self.table(parameters) * values.diff()).sum(-1)


def _even(categories: int) -> Tensor:
    """Return cuts that give all categories equal probability at f = 0."""
    return torch.logit(torch.arange(1, categories) / categories)


def _raw(cuts: Tensor) -> Tensor:
    """Return the unconstrained numbers for given cuts."""
    steps = (cuts.diff(dim=-1) - LEAST_STEP).clamp_min(LEAST_STEP)
    return torch.cat([cuts[..., :1], steps.expm1().log()], -1)


register("observation", "ordered", OrderedCategories)

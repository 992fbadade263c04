r"""Base class of all losses: means over sampled graphs and over pairs of them.

$$L = \tfrac1S \sum_s (r_s + g_s), \qquad r_s = \mathrm{mean}_{t \neq s}\, h(y_s, y_t)$$

$g_s$ is the cost of a single graph $s$ and $h$ the cost of a pair of graphs. A pair counts for both graphs, so
the cost of graph $s$, which multiplies its score in the gradient for $\theta$, is

$$w_s = 2 r_s + g_s$$

Baselines, subtracted from the cost:

``none``
    no baseline.
``paper``
    the mean over the batch and its graphs. It includes graph $s$ itself and so shrinks the gradient slightly: that of
    $r$ by $1 - 2/S$ and that of $g$ by $1 - 1/S$ if the batch shares its graphs, otherwise by $1 - 2/(SB)$ and
    $1 - 1/(SB)$.
``leave_one_out``
    the mean over all terms that do not involve graph $s$: $h(y_t, y_u)$ with both different from $s$, and $g_t$ with
    $t \neq s$. Exact in expectation.
``moving_average``
    an exponential moving average over earlier batches, one per unit, with decay 0.95; it starts at 0. Exact in
    expectation.
"""

import functools
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, cast, get_args

import torch
from torch import Tensor

from tacit.errors import InputError
from tacit.graph import EdgePrior
from tacit.losses.kernels import Kernel, RationalQuadratic
from tacit.losses.terms import Loss, LossTerms, Scope, require_one_of, unit_weights
from tacit.shapes import Baseline, Cost, Observed, Outputs, Samples, Targets, UnitAverage, UnitLoss


@dataclass(frozen=True)
class LossOptions:
    """Options for ``from_options`` of a loss; ``uses`` of the loss names the ones that it supports.

    ``baseline``  None for the default of the loss
    ``kernel``    builds the kernel; called only if needed, since its scale may depend on the training targets
    """

    scope: Scope = "node"
    baseline: str | None = None
    kernel: Callable[[], Kernel] = RationalQuadratic
    likelihood_sd: float = 0.1
    prior: EdgePrior | None = None

    def common(self) -> dict[str, Any]:
        """Return scope and baseline as keywords; the baseline only if it was set."""
        return {"scope": self.scope} | ({} if self.baseline is None else {"baseline": self.baseline})


@dataclass(frozen=True)
class LossPreset:
    """A loss with some preset arguments, to be registered under its own name.

    >>> from tacit.losses import ExpectedError
    >>> LossPreset(ExpectedError, {"error": "mse"}).from_options(LossOptions()).error
    'mse'
    """

    loss: "type[SampledLoss]"
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def from_options(self, options: LossOptions) -> "SampledLoss":
        """Build the loss with the preset arguments."""
        return replace(self.loss.from_options(options), **self.arguments)

    def __getattr__(self, name: str) -> Any:
        """Return the capabilities of the loss."""
        if name.startswith("_") or name == "loss":
            raise AttributeError(name)
        return getattr(self.loss, name)


BaselineName = Literal["none", "paper", "leave_one_out", "moving_average"]
MOVING_AVERAGE_KEEPS = 0.95  # about twenty steps: short compared with a training, long enough to average over batches


class Part(NamedTuple):
    """One sum of a loss: the number of graphs in each term (1 or 2), and the mean term for each graph."""

    ends: int
    values: Cost


@dataclass(frozen=True, kw_only=True)
class SampledLoss(Loss):
    """Base class of losses; the equations are in the module docstring. A loss defines $r$ and $g$."""

    uses: ClassVar[tuple[str, ...]] = ("scope", "baseline")
    scope: Scope = "node"
    baseline: BaselineName = "leave_one_out"

    def __post_init__(self) -> None:
        require_one_of("scope", self.scope, get_args(Scope))
        require_one_of("baseline", self.baseline, get_args(BaselineName))

    @property
    def min_graphs(self) -> int:
        """Two graphs for a pair, and one more for the leave-one-out baseline."""
        return 1 + self.pairwise + (self.baseline == "leave_one_out")

    @classmethod
    def from_options(cls, options: LossOptions) -> "SampledLoss":
        """Build the loss that a config names."""
        return cls(**options.common())

    def with_baseline(self, baseline: str) -> "SampledLoss":
        """Return the same loss with another baseline."""
        return replace(self, baseline=cast(BaselineName, baseline))

    @property
    def numbers_per_target(self) -> int:
        """Numbers per target in the samples: 1, unless the loss integrates the noise."""
        return 1

    def __call__(
        self,
        samples: Outputs,
        targets: Targets,
        observed: Observed | None = None,
        *,
        average: UnitAverage | None = None,
        group_size: int = 1,
    ) -> LossTerms:
        """Return the terms for a batch; see :class:`~tacit.losses.Loss`."""
        self._require_fitting(samples, targets, observed, group_size)
        if observed is not None:
            targets = torch.where(observed > 0, targets, 0.0)  # replaces missing values, even NaN
        parts = self.parts(samples, targets, observed, group_size)
        value = _sum(part.values.mean(1) for part in parts)
        cost = _sum(part.ends * part.values for part in parts)
        weights = None if observed is None else self.weights_of(observed)
        baseline, new_average = self._baseline(parts, cost, weights, average, group_size)
        if weights is not None:
            value, cost, baseline = value * weights, cost * weights[:, None], baseline * weights[:, None]
        return LossTerms(value, cost, baseline, weights if self.averages else None, new_average)

    @abstractmethod
    def parts(self, samples: Samples, targets: Targets, observed: Observed | None, group_size: int) -> list[Part]:
        """Return $r$ and $g$, or one of them."""

    def weights_of(self, observed: Observed) -> UnitLoss:
        """Return the weight of each unit of each pair, 0 if nothing was observed."""
        return unit_weights(observed, self.scope, by_count=True)

    def _baseline(
        self,
        parts: list[Part],
        cost: Cost,
        weights: UnitLoss | None,
        average: UnitAverage | None,
        group_size: int,
    ) -> tuple[Baseline, UnitAverage | None]:
        if self.baseline == "moving_average":
            average = cost.new_zeros(cost.shape[-1]) if average is None else average
            now = _batch_mean(cost, weights).detach()
            moved = MOVING_AVERAGE_KEEPS * average + (1 - MOVING_AVERAGE_KEEPS) * now
            if weights is not None:  # a unit that this batch does not observe keeps its average
                moved = torch.where(weights.sum(0) > 0, moved, average)
            return average[None, None], moved
        if self.baseline == "paper":
            return _batch_mean(cost, weights)[None, None], None
        if self.baseline == "none" or group_size > 1:  # constants cancel in differences within a group
            return cost.new_zeros(1, 1, cost.shape[-1]), None
        # The sum over all graphs contains a pair of s twice: in the part of s and in the part of its partner.
        rests = (
            part.ends * (part.values.sum(1, keepdim=True) - part.ends * part.values) / (cost.shape[1] - part.ends)
            for part in parts
        )
        return _sum(rests), None

    def _require_fitting(self, samples: Outputs, targets: Targets, observed: Observed | None, group_size: int) -> None:
        needed = self.min_graphs if group_size == 1 else group_size * (1 + self.pairwise)
        if samples.shape[1] < needed:
            raise InputError(
                f"{type(self).__name__} with baseline '{self.baseline}' requires num_graphs >= {needed}, "
                f"got {samples.shape[1]}; raise num_graphs"
            )
        numbers = self.numbers_per_target
        if (samples.shape[0], *samples.shape[2:]) != (*targets.shape[:2], targets.shape[2] * numbers):
            times = "" if numbers == 1 else f", times {numbers} numbers for each"
            raise InputError(
                f"samples {tuple(samples.shape)} (batch, graph, node, channel) and targets {tuple(targets.shape)} "
                f"(batch, node, channel) must have the same batch, nodes and channels{times}; check the predictor's "
                "output"
            )
        if observed is not None and not observed.is_floating_point():
            raise InputError(f"observed must be floats of 0 and 1, got {observed.dtype}; use mask.to(targets.dtype)")
        if observed is not None and observed.shape != targets.shape:
            raise InputError(
                f"observed must have the shape of targets, {tuple(targets.shape)}, got {tuple(observed.shape)}; "
                "pass one value per target"
            )


def _sum(tensors: Iterable[Tensor]) -> Tensor:
    return functools.reduce(torch.add, tensors)


def _batch_mean(cost: Cost, weights: UnitLoss | None) -> UnitAverage:
    """Average the cost of each unit over graphs and over the pairs that observed it."""
    per_pair = cost.mean(1)
    if weights is None:
        return per_pair.mean(0)
    return (per_pair * weights).sum(0) / weights.sum(0).clamp_min(torch.finfo(cost.dtype).tiny)


def without_own_group(sums: Tensor, values: Tensor, group_size: int) -> Tensor:
    """Subtract from sums over all graphs (axis 1) those over each graph's own group: (batch, graph, ...)."""
    if group_size == 1:
        return sums - values
    groups = values.reshape(len(values), -1, group_size, *values.shape[2:])  # (batch, group, member, ...)
    return sums - groups.sum(2, keepdim=True).expand_as(groups).flatten(1, 2)

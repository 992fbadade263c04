"""The interface between losses and gradient estimators, and the units of a loss: one per node, or the whole output."""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.errors import InputError, did_you_mean, require
from tacit.graph import EdgePrior
from tacit.observation import ObservationModel
from tacit.shapes import Baseline, Cost, Observed, PairCosts, Samples, Targets, UnitAverage, UnitLoss

Scope = Literal["node", "joint"]


def require_one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    """Raise :class:`InputError` with a suggestion unless ``value`` is a known word."""
    if value not in known:
        near = did_you_mean(str(value), known)
        hint = near if "did you mean" in near else f"; use '{known[0]}'"
        raise InputError(f"{name} must be one of {', '.join(known)}, got '{value}'{hint}")


def unit_mean(values: Float[Tensor, "..."], scope: Scope, observed: Observed | None) -> Float[Tensor, "..."]:
    """Average (batch, ..., node, channel) over the observed values of each unit, 0 if there are none."""
    axes = (-1,) if scope == "node" else (-2, -1)
    if observed is None:
        means = values.mean(axes)
    else:
        seen = _aligned(observed, values)
        means = torch.where(seen > 0, values, 0.0).sum(axes) / seen.sum(axes).clamp_min(1)
    return means if scope == "node" else means[..., None]


def unit_counts(observed: Observed, scope: Scope) -> UnitLoss:
    """Return the number of observed values of each unit of a pair: (batch, unit)."""
    counts = observed.sum(-1)
    return counts if scope == "node" else counts.sum(-1, keepdim=True)


def unit_weights(observed: Observed, scope: Scope, *, by_count: bool) -> UnitLoss:
    """Return the weight of each unit of a pair: 1 if all of its values are observed, 0 if none is.

    With ``by_count`` the weight is the share of observed values; otherwise it is 1 if any value is observed.
    """
    counts = unit_counts(observed, scope)
    size = observed.shape[-1] if scope == "node" else observed.shape[-1] * observed.shape[-2]
    return counts / size if by_count else (counts > 0).to(counts.dtype)


def _aligned(observed: Observed, values: Tensor) -> Tensor:
    """Insert the axes that values have between batch and node."""
    return observed.view(len(observed), *[1] * (values.ndim - 3), *observed.shape[1:])


class LossTerms(NamedTuple):
    r"""The value of a loss and how it depends on each sampled graph.

    ``value``     the loss of each pair and unit, differentiable in the samples
    ``cost``      $w_s$, such that $\sum_s w_s \nabla \log P(A_s) / S$ estimates the gradient for $\theta$
    ``baseline``  an estimate of the cost's mean, subtracted to lower the variance
    ``weight``    the weight of each unit of each pair if some targets are missing; None for equal weights
    ``average``   the moving average of the cost after this batch, for losses with that baseline

    A unit is a node at node scope; at joint scope there is one unit. Value, cost and baseline are multiplied by the
    weight, so that the loss of a batch is the mean of the values divided by the mean of the weights.
    """

    value: UnitLoss
    cost: Cost
    baseline: Baseline
    weight: UnitLoss | None = None
    average: UnitAverage | None = None


class Loss(ABC):
    r"""Interface of losses; capabilities are attributes of the class.

    ``pairwise``      compares graphs with each other, so it requires at least two graphs
    ``proper``        no theta has a lower expected loss than the true one
    ``averages``      a mean over the observed targets, not a sum
    ``compares``      has the form $E\,h(Y, Y') - 2 E\,h(Y, y)$, with $h$ given by :meth:`pair_costs`
    ``learns_noise``  minimal at the true size of the noise; other losses cannot estimate it and do not accept noise
    ``integrates``    uses the parameters of the observation model instead of samples
    ``in_groups``     accepts graphs that are drawn in groups and depend on each other
    ``has_prior``     includes a prior, and does not accept a second one
    ``credit``        the credit that it requires, if any; see :mod:`tacit.estimators.credit`
    ``uses``          the keys of [model] in a config that ``from_options`` reads

    ``scope``     ``"node"`` if the loss is a mean of losses of single nodes, else ``"joint"``
    ``baseline``  name of the baseline; the model carries ``"moving_average"`` from step to step
    """

    pairwise: ClassVar[bool] = False
    proper: ClassVar[bool] = False
    averages: ClassVar[bool] = True
    compares: ClassVar[bool] = False
    learns_noise: ClassVar[bool] = False
    integrates: ClassVar[bool] = False
    in_groups: ClassVar[bool] = True
    has_prior: ClassVar[bool] = False
    credit: ClassVar[str | None] = None
    uses: ClassVar[tuple[str, ...]] = ()
    scope: Scope
    baseline: str
    prior: EdgePrior | None = None

    @property
    @abstractmethod
    def min_graphs(self) -> int:
        """The smallest number of independent graphs per pair that the value and the baseline require."""

    @abstractmethod
    def with_baseline(self, baseline: str) -> "Loss":
        """Return the same loss with another baseline; ``"none"`` for estimators that do not use one."""

    @abstractmethod
    def __call__(
        self,
        samples: Samples,
        targets: Targets,
        observed: Observed | None = None,
        *,
        average: UnitAverage | None = None,
        group_size: int = 1,
    ) -> LossTerms:
        """Return the terms for a batch.

        ``observed``    1 for observed targets, 0 for missing ones; None if all are observed
        ``average``     the moving average of the cost up to the last batch
        ``group_size``  number of consecutive graphs that depend on each other and are not compared with each other
        """

    def integrating(self, observation: ObservationModel) -> "Loss | None":
        """Return the form of this loss that integrates the noise in closed form; None if noise must be sampled."""
        del observation
        return None

    def pair_costs(self, samples: Samples, observed: Observed | None = None) -> PairCosts:
        """Return $h(y_s, y_t)$ for every two graphs of a pair, including the diagonal."""
        del samples, observed
        raise self._without_pair_costs()

    def weights_of(self, observed: Observed) -> UnitLoss:
        """Return the weight of each unit of each pair, 0 if nothing was observed."""
        del observed
        raise self._without_pair_costs()

    def require_compares(self, what: str) -> None:
        """Raise :class:`InputError` unless the loss has :meth:`pair_costs`."""
        require(
            self.compares,
            f"{what} requires a loss that compares graphs, such as EnergyScore or MMD, got {type(self).__name__}; use "
            "the bootstrap",
        )

    def _without_pair_costs(self) -> InputError:
        return InputError(f"{type(self).__name__} has no pair_costs (compares=False); use EnergyScore or MMD")

"""The interface between losses and gradient estimators: a few tensors."""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

from tacit.errors import InputError, require
from tacit.graph import EdgePrior
from tacit.losses.units import Scope
from tacit.observation import ObservationModel
from tacit.shapes import Baseline, Cost, Observed, PairCosts, Samples, Targets, UnitAverage, UnitLoss


class LossTerms(NamedTuple):
    r"""The value of a loss and how it depends on each sampled graph.

    ``value``     the loss of each pair and unit, differentiable in the samples
    ``cost``      $w_s$, such that $\sum_s w_s \nabla \log P(A_s) / S$ estimates the gradient for $\theta$
    ``baseline``  an estimate of the cost's mean, subtracted to lower the variance
    ``weight``    what each unit of each pair counts when some targets are missing; all the same when None
    ``average``   the moving average of the cost after this batch, for losses whose baseline it is

    A unit is a node at node scope; at joint scope there is one unit. Value, cost and baseline are times the weight, so
    that the loss of a batch is the mean of the values over the mean of the weights.
    """

    value: UnitLoss
    cost: Cost
    baseline: Baseline
    weight: UnitLoss | None = None
    average: UnitAverage | None = None


class Loss(ABC):
    r"""The interface; capabilities are attributes of the class.

    ``pairwise``      compares graphs with each other: one graph is not enough
    ``proper``        no theta has a lower expected loss than the true one
    ``averages``      a mean over what was observed, not a sum
    ``compares``      of the form $E\,h(Y, Y') - 2 E\,h(Y, y)$, with $h$ given by :meth:`pair_costs`
    ``learns_noise``  least at the true size of the noise; others drive it to 0 or cannot see it, and so refuse noise
    ``integrates``    takes the parameters of the observation model instead of samples
    ``in_groups``     takes graphs that are drawn in groups and depend on each other
    ``has_prior``     holds a prior of its own, and takes no second one
    ``credit``        the credit that it is made by, if one; see :mod:`tacit.estimators.credit`
    ``uses``          the keys of [model] in a config that ``from_options`` reads

    ``scope``     ``"node"`` when the loss is a mean of losses of single nodes, else ``"joint"``
    ``baseline``  which baseline; ``"moving_average"`` is handed from step to step by the model
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
        """The fewest independent graphs per pair that the value and the baseline can be computed from."""

    @abstractmethod
    def with_baseline(self, baseline: str) -> "Loss":
        """Return the same loss with another baseline; ``"none"`` for estimators that have no use for one."""

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

        ``observed``    which targets are there; all of them when None
        ``average``     the moving average of the cost up to the last batch
        ``group_size``  this many consecutive graphs depend on each other, and are never compared with each other
        """

    def integrating(self, observation: ObservationModel) -> "Loss | None":
        """Return the form of this loss that integrates the noise in closed form; None where it has to be sampled."""
        del observation
        return None

    def pair_costs(self, samples: Samples, observed: Observed | None = None) -> PairCosts:
        """Return $h(y_s, y_t)$ for every two graphs of a pair, the diagonal included."""
        del samples, observed
        raise self._without_pair_costs()

    def weights_of(self, observed: Observed) -> UnitLoss:
        """Return what each unit of each pair counts, 0 where nothing was observed."""
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

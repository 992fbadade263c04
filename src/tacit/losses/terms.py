"""What a loss hands to a gradient estimator: a few tensors, and nothing else passes between them."""

from typing import NamedTuple, Protocol, runtime_checkable

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


@runtime_checkable
class Loss(Protocol):
    """The call that training makes."""

    @property
    def scope(self) -> str:
        """``"node"`` when the loss is a mean of losses of single nodes, else ``"joint"``."""
        ...

    @property
    def baseline(self) -> str:
        """Which baseline; ``"moving_average"`` is handed from step to step by the model."""
        ...

    @property
    def pairwise(self) -> bool:
        """Does the loss compare graphs with each other? Then one graph is not enough."""
        ...

    @property
    def min_graphs(self) -> int:
        """The fewest independent graphs per pair that the value and the baseline can be computed from."""
        ...

    def without_baseline(self) -> "Loss":
        """Return the same loss for estimators that have no use for a baseline."""
        ...

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
        ...


@runtime_checkable
class ComparingLoss(Loss, Protocol):
    r"""A proper loss that compares graphs: $E\,h(Y, Y') - 2 E\,h(Y, y)$, the mean over units."""

    def pair_costs(self, samples: Samples, observed: Observed | None = None) -> PairCosts:
        """Return $h(y_s, y_t)$ for every two graphs of a pair, the diagonal included."""
        ...

    def weights_of(self, observed: Observed) -> UnitLoss:
        """Return what each unit of each pair counts, 0 where nothing was observed."""
        ...

"""What a loss hands to a gradient estimator: a few tensors, and nothing else passes between them."""

from typing import NamedTuple, Protocol, runtime_checkable

from tacit.shapes import Baseline, Cost, Observed, Samples, Targets, UnitAverage, UnitLoss


class LossTerms(NamedTuple):
    r"""The value of a loss and how it depends on each sampled graph.

    ``value``     the loss of each pair and unit, differentiable in the samples
    ``cost``      $w_s$, such that $\sum_s w_s \nabla \log P(A_s) / S$ estimates the gradient for $\theta$
    ``baseline``  an estimate of the cost's mean, subtracted to lower the variance
    ``average``   the moving average of the cost after this batch, for losses whose baseline it is

    A unit is a node at node scope; at joint scope there is one unit. The loss of a pair is the mean over units. What
    was not observed has value, cost and baseline 0.
    """

    value: UnitLoss
    cost: Cost
    baseline: Baseline
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

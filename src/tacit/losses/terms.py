"""What a loss hands to a gradient estimator: three tensors, and nothing else passes between them."""

from typing import NamedTuple, Protocol, runtime_checkable

from tacit.shapes import Baseline, Cost, Samples, Targets, UnitLoss


class LossTerms(NamedTuple):
    r"""The value of a loss and how it depends on each sampled graph.

    ``value``     the loss of each pair and unit, differentiable in the samples
    ``cost``      $w_s$, such that $\sum_s w_s \nabla \log P(A_s) / S$ estimates the gradient for $\theta$
    ``baseline``  an estimate of the cost's mean, subtracted to lower the variance

    A unit is a node at node scope; at joint scope there is one unit. The loss of a pair is the mean over units.
    """

    value: UnitLoss
    cost: Cost
    baseline: Baseline


@runtime_checkable
class Loss(Protocol):
    """The call that training makes."""

    @property
    def scope(self) -> str:
        """``"node"`` when the loss is a mean of losses of single nodes, else ``"joint"``."""
        ...

    @property
    def min_graphs(self) -> int:
        """The fewest graphs per pair that the value and the baseline can be computed from."""
        ...

    def __call__(self, samples: Samples, targets: Targets) -> LossTerms:
        """Return value, cost and baseline for a batch."""
        ...

"""What a gradient estimator is: it draws the graphs, and turns what came of them into a gradient for theta."""

from typing import ClassVar, Protocol, runtime_checkable

from tacit.estimators.credit import Credit
from tacit.graph import BernoulliGraph
from tacit.losses import LossTerms
from tacit.shapes import Graphs, GroupUniforms, Scalar


@runtime_checkable
class Estimator(Protocol):
    """The calls that the model makes.

    ``takes_credit``    weighs graphs by their cost, and so can be told which rows answer for which nodes
    ``through_graphs``  differentiates the predictor for the graphs instead
    ``takes_baseline``  and so subtracts a baseline from the cost
    ``scheduled``       changes with the progress of a training; the others are told 0
    ``hard``            draws graphs of 0 and 1 only
    ``group_size``      so many consecutive graphs depend on each other
    """

    takes_credit: ClassVar[bool]
    through_graphs: ClassVar[bool]
    takes_baseline: ClassVar[bool]
    scheduled: ClassVar[bool]
    hard: ClassVar[bool]
    group_size: ClassVar[int]

    def with_credit(self, credit: Credit) -> "Estimator":
        """Return the same estimator with another credit, where it takes any."""
        ...

    def draw(self, graph: BernoulliGraph, uniforms: GroupUniforms, progress: Scalar) -> Graphs:
        """Return ``group_size`` graphs for each set of uniforms; ``progress`` runs from 0 to 1 in a training."""
        ...

    def surrogate(self, terms: LossTerms, graphs: Graphs, graph: BernoulliGraph) -> Scalar:
        """Return a number that adds the estimate for theta to the gradient of the loss; its value means nothing."""
        ...

"""The interface of gradient estimators: draw graphs, and turn their costs into a gradient for theta."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from tacit.estimators.credit import Credit
from tacit.graph import GraphDistribution
from tacit.losses import LossTerms
from tacit.shapes import Graphs, GroupUniforms, Scalar


@dataclass(frozen=True)
class EstimatorOptions:
    """What ``from_options`` of an estimator may use; the estimator names in ``uses`` what it does use."""

    temperature: float = 1.0
    final_temperature: float = 0.1


class Estimator(ABC):
    """The interface; capabilities are attributes of the class.

    ``takes_credit``    weighs graphs by their cost, so credit can be assigned to rows
    ``through_graphs``  differentiates the predictor for the graphs instead
    ``takes_baseline``  subtracts a baseline from the cost
    ``scheduled``       changes with the progress of a training; for others it is 0
    ``hard``            draws graphs of 0 and 1 only
    ``group_size``      the number of consecutive graphs that depend on each other
    ``needs_edge_probs``  made for a probability per edge (:class:`~tacit.graph.BernoulliGraph`); others take any graph
    ``uses``            the keys of [model] in a config that mean something to it

    ``credit``          how it gives credit, where it takes any
    """

    takes_credit: ClassVar[bool] = False
    through_graphs: ClassVar[bool] = False
    takes_baseline: ClassVar[bool] = False
    scheduled: ClassVar[bool] = False
    hard: ClassVar[bool] = True
    group_size: ClassVar[int] = 1
    needs_edge_probs: ClassVar[bool] = False
    uses: ClassVar[tuple[str, ...]] = ()
    credit: Credit | None = None

    @classmethod
    def from_options(cls, options: EstimatorOptions) -> "Estimator":
        """Return the estimator that a config asks for by name."""
        del options
        return cls()

    def with_credit(self, credit: Credit) -> "Estimator":
        """Return the same estimator with another credit; itself where it takes none."""
        del credit
        return self

    @abstractmethod
    def draw(self, graph: GraphDistribution, uniforms: GroupUniforms, progress: Scalar) -> Graphs:
        """Return ``group_size`` graphs for each set of uniforms; ``progress`` runs from 0 to 1 in a training."""

    @abstractmethod
    def surrogate(self, terms: LossTerms, graphs: Graphs, graph: GraphDistribution) -> Scalar:
        """Return a number that adds the estimate for theta to the gradient of the loss; its value means nothing."""

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
    """Options for ``from_options`` of an estimator; ``uses`` of the estimator names the ones that it supports."""

    temperature: float = 1.0
    final_temperature: float = 0.1


class Estimator(ABC):
    """Interface of gradient estimators; capabilities are attributes of the class.

    ``takes_credit``    weights graphs by their cost, so credit can be assigned to rows
    ``through_graphs``  differentiates the predictor with respect to the graphs instead
    ``takes_baseline``  subtracts a baseline from the cost
    ``scheduled``       depends on the progress of a training; for others progress is 0
    ``hard``            draws only graphs of 0 and 1
    ``group_size``      number of consecutive graphs that depend on each other
    ``needs_edge_probs``  requires one probability per edge (:class:`~tacit.graph.BernoulliGraph`); others accept any
                        graph distribution
    ``uses``            the keys of [model] in a config that it supports

    ``credit``          the credit assignment, if it uses one
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
        """Build the estimator that a config names."""
        del options
        return cls()

    def with_credit(self, credit: Credit) -> "Estimator":
        """Return the same estimator with another credit; ``self`` if it does not use credit."""
        del credit
        return self

    @abstractmethod
    def draw(self, graph: GraphDistribution, uniforms: GroupUniforms, progress: Scalar) -> Graphs:
        """Return ``group_size`` graphs for each set of uniforms; ``progress`` runs from 0 to 1 in a training."""

    @abstractmethod
    def surrogate(self, terms: LossTerms, graphs: Graphs, graph: GraphDistribution) -> Scalar:
        """Return a scalar to add to the loss; its gradient is the estimate for theta, its value has no meaning."""

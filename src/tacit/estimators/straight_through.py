r"""Straight-through estimator: graphs of 0 and 1, differentiated as if $\partial A / \partial \theta = 1$.

$$\nabla_\theta E[L] \approx E[\nabla_A L]$$

Exact only if the loss is linear in each single edge. With a nonlinear loss, as through a tanh or a kernel, the
derivative at 0 or 1 replaces the difference between them, a bias that does not vanish with more graphs.
"""

from dataclasses import dataclass
from typing import ClassVar

from tacit.estimators.protocol import Estimator
from tacit.graph import GraphDistribution
from tacit.losses import LossTerms
from tacit.registry import register
from tacit.shapes import Graphs, GroupUniforms, Scalar


@dataclass(frozen=True)
class StraightThrough(Estimator):
    """Straight-through estimator: use the derivative for the sampled edges as that for their probabilities."""

    through_graphs: ClassVar[bool] = True
    needs_edge_probs: ClassVar[bool] = True

    def draw(self, graph: GraphDistribution, uniforms: GroupUniforms, progress: Scalar) -> Graphs:
        """Return an independent graph for each set of uniforms, with the gradient of its probabilities."""
        del progress
        probs = graph.edge_probs
        return graph.sample_from(uniforms) + (probs - probs.detach())

    def surrogate(self, terms: LossTerms, graphs: Graphs, graph: GraphDistribution) -> Scalar:
        """Return 0: the gradient passes through the graphs."""
        del graphs, graph
        return terms.value.new_zeros(())


register("estimator", "straight_through", StraightThrough)

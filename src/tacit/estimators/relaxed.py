r"""Estimators that differentiate through the graph, which are biased: concrete and straight-through.

Binary concrete relaxation: edges between 0 and 1 that approach 0 or 1 at low temperature (Maddison et al. 2017).

$$A_{ij} = \mathrm{sigmoid}\big( (\mathrm{logit}\,\theta_{ij} - \mathrm{logit}\,u_{ij}) / \tau \big)$$

For $\tau \to 0$ this is $1[u < \theta]$. At any other temperature it is a different model with fractional edges, so the
gradient is biased; a lower temperature reduces the bias and increases the variance. The temperature decreases
geometrically from ``first`` to ``last`` over a training. The reported loss of a fit uses graphs of 0 and 1, as
predictions do.

Straight-through estimator: graphs of 0 and 1, differentiated as if $\partial A / \partial \theta = 1$.

$$\nabla_\theta E[L] \approx E[\nabla_A L]$$

Exact only if the loss is linear in each single edge. With a nonlinear loss, as through a tanh or a kernel, the
derivative at 0 or 1 replaces the difference between them, a bias that does not vanish with more graphs.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from tacit.errors import require, require_positive
from tacit.estimators.protocol import Estimator, EstimatorOptions
from tacit.graph import GraphDistribution
from tacit.losses import LossTerms
from tacit.registry import register
from tacit.shapes import Graphs, GroupUniforms, Scalar


@dataclass(frozen=True)
class Concrete(Estimator):
    """Concrete estimator: relax the edges and differentiate through them."""

    through_graphs: ClassVar[bool] = True
    needs_edge_probs: ClassVar[bool] = True
    scheduled: ClassVar[bool] = True
    hard: ClassVar[bool] = False
    uses: ClassVar[tuple[str, ...]] = ("temperature", "final_temperature")
    first: float = 1.0
    last: float = 0.1

    def __post_init__(self) -> None:
        require_positive("last", self.last, 0.1)
        require_positive("first", self.first, 1.0)
        require(
            self.last <= self.first,
            f"temperatures must satisfy 0 < last <= first, got first={self.first} and last={self.last}; "
            "pass for example first=1.0, last=0.1",
        )

    @classmethod
    def from_options(cls, options: EstimatorOptions) -> "Concrete":
        """Build the estimator with the temperatures of a config."""
        require(
            options.final_temperature <= options.temperature,
            f"final_temperature in [model] must be at most temperature={options.temperature:g}, got "
            f"{options.final_temperature:g}; lower it",
        )
        return cls(options.temperature, options.final_temperature)

    def temperature(self, progress: Scalar) -> Scalar:
        """Return the temperature at a given progress of the training, from 0 to 1.

        >>> [round(Concrete(1.0, 0.25).temperature(torch.tensor(p)).item(), 3) for p in (0.0, 0.5, 1.0)]
        [1.0, 0.5, 0.25]
        """
        return self.first * (self.last / self.first) ** progress

    def draw(self, graph: GraphDistribution, uniforms: GroupUniforms, progress: Scalar) -> Graphs:
        """Return an independent relaxed graph for each set of uniforms; fixed entries are 0 or 1."""
        uniforms, (log_present, log_absent) = graph.symmetrize(uniforms), graph.log_probs()
        soft = torch.sigmoid((log_present - log_absent - torch.logit(uniforms)) / self.temperature(progress))
        return torch.where(graph.fixed, graph.sample_from(uniforms), soft)

    def surrogate(self, terms: LossTerms, graphs: Graphs, graph: GraphDistribution) -> Scalar:
        """Return 0: the gradient passes through the graphs."""
        del graphs, graph
        return terms.value.new_zeros(())


register("estimator", "concrete", Concrete)


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

r"""The score-function estimator: weight each graph's log-probability by its cost. Unbiased for any predictor.

$$\nabla_\theta E[L] = E\Big[ \tfrac1S \sum_s (w_s - b_s)\, \nabla_\theta \log P_\theta(A_s) \Big]$$

$w_s$ is the cost of graph $s$ and $b_s$ its baseline, both from the loss.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

from tacit.estimators.credit import Credit, GlobalCredit
from tacit.estimators.protocol import Estimator
from tacit.graph import GraphDistribution
from tacit.losses import LossTerms
from tacit.registry import register
from tacit.shapes import Graphs, GroupUniforms, Scalar


@dataclass(frozen=True)
class ScoreFunction(Estimator):
    """Score-function estimator: weight the log-probability of each sampled graph by its cost minus the baseline."""

    takes_credit: ClassVar[bool] = True
    takes_baseline: ClassVar[bool] = True
    uses: ClassVar[tuple[str, ...]] = ("baseline",)
    credit: Credit = field(default_factory=GlobalCredit)

    def with_credit(self, credit: Credit) -> "ScoreFunction":
        """Return the same estimator with another credit."""
        return replace(self, credit=credit)

    def draw(self, graph: GraphDistribution, uniforms: GroupUniforms, progress: Scalar) -> Graphs:
        """Return an independent graph for each set of uniforms."""
        del progress
        return graph.sample_from(uniforms)

    def surrogate(self, terms: LossTerms, graphs: Graphs, graph: GraphDistribution) -> Scalar:
        """Return a number whose gradient for theta is the estimate."""
        advantage = (terms.cost - terms.baseline).detach()
        credit = self.credit(advantage, graph.as_operator(graphs), symmetric=graph.symmetric)
        return graph.weighted_log_prob(credit, graphs)


register("estimator", "score_function", ScoreFunction)

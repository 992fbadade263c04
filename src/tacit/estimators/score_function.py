r"""The score-function estimator: weight each graph's log-probability by its cost. Unbiased for any predictor.

$$\nabla_\theta E[L] = E\Big[ \tfrac1S \sum_s (w_s - b_s)\, \nabla_\theta \log P_\theta(A_s) \Big]$$

$w_s$ is the cost of graph $s$ and $b_s$ its baseline, both from the loss.

DisARM: graphs in antithetic pairs, one from uniforms $u$ and one from $1 - u$ (Dong, Mnih, Tucker 2020).

$$\frac{\partial E[L]}{\partial \theta_{ij}} = E\Big[ \tfrac12 (w_s - w_{\tilde s})\,
  \frac{A_{s,ij} - A_{\tilde s,ij}}{\min(\theta_{ij}, 1 - \theta_{ij})} \Big]$$

Edges that are equal in both graphs cancel, and so does any baseline. The estimate is exact in expectation if each $w$
is the same function of its own graph, so the loss does not compare the two graphs of a pair. The formula is valid for
each edge with a separate cost, and therefore also with credit by receptive field.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch

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


@dataclass(frozen=True)
class DisARM(Estimator):
    """Antithetic estimator: the difference in cost of two graphs from opposite uniforms."""

    takes_credit: ClassVar[bool] = True
    group_size: ClassVar[int] = 2
    needs_edge_probs: ClassVar[bool] = True
    credit: Credit = field(default_factory=GlobalCredit)

    def with_credit(self, credit: Credit) -> "DisARM":
        """Return the same estimator with another credit."""
        return replace(self, credit=credit)

    def draw(self, graph: GraphDistribution, uniforms: GroupUniforms, progress: Scalar) -> Graphs:
        """Return two consecutive graphs for each set of uniforms."""
        del progress
        return graph.sample_from(torch.stack([uniforms, 1 - uniforms], 2).flatten(1, 2))

    def surrogate(self, terms: LossTerms, graphs: Graphs, graph: GraphDistribution) -> Scalar:
        """Return a number whose gradient for theta is the estimate."""
        credit = self.credit(terms.cost.detach(), graph.as_operator(graphs), symmetric=graph.symmetric)
        half_difference = (credit[:, 0::2] - credit[:, 1::2]) / 2
        flips = graphs[:, 0::2] - graphs[:, 1::2]  # (draw, pair, row, slot)
        rarer = torch.minimum(graph.edge_probs, 1 - graph.edge_probs).detach()
        per_edge = (half_difference * flips).mean((0, 1)) / torch.where(rarer > 0, rarer, 1.0)
        return graph.upper_triangle(per_edge * graph.edge_probs).sum()


register("estimator", "disarm", DisARM)

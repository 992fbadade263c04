r"""The score-function estimator.

$$\nabla_\theta E[L] = E\Big[ \tfrac1S \sum_s (w_s - b_s)\, \nabla_\theta \log P_\theta(A_s) \Big]$$

$w_s$ is the cost of graph $s$ and $b_s$ its baseline, both from the loss.
"""

from dataclasses import dataclass, field

from tacit.estimators.credit import Credit, GlobalCredit
from tacit.losses import LossTerms
from tacit.shapes import Graphs, RowLogProb, Scalar


@dataclass(frozen=True)
class ScoreFunction:
    """Weigh the log-probability of each sampled graph by how much worse than the baseline it did."""

    credit: Credit = field(default_factory=GlobalCredit)

    def surrogate(self, terms: LossTerms, graphs: Graphs, row_log_prob: RowLogProb) -> Scalar:
        """Return a number whose gradient for theta is the estimate; its value means nothing."""
        advantage = (terms.cost - terms.baseline).detach()
        return (self.credit(advantage, graphs) * row_log_prob).sum(-1).mean()

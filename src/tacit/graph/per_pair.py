r"""Independent edges with separate probabilities for every pair: a distribution conditioned on a context.

$$P(A \mid c_b) = \prod_{ij} \theta_{bij}^{A_{ij}} (1 - \theta_{bij})^{1 - A_{ij}}, \qquad
\theta_{bij} = 1 / (1 + e^{-z_{bij}})$$
"""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.nn.functional import logsigmoid

from tacit.graph.candidate_edges import CandidateEdges
from tacit.graph.distribution import GraphDistribution, times
from tacit.shapes import EdgeProbs, EdgeWeights, Graphs, LogProb, Scalar, Uniforms


class EdgeProbsPerPair(GraphDistribution):
    """Edges that are independent given the pair; ``logits`` $z$ may come from a custom network.

    >>> graph = EdgeProbsPerPair(torch.tensor([-torch.inf, torch.inf]).view(2, 1, 1).expand(2, 3, 3))
    >>> graph.sample_from(torch.full((1, 4, 3, 3), 0.5)).mean((1, 2, 3)).tolist()
    [0.0, 1.0]
    """

    independent_edges: ClassVar[bool] = True

    def __init__(
        self,
        logits: Float[Tensor, "batch row slot"],
        candidates: CandidateEdges | None = None,
        *,
        symmetric: bool = False,
    ) -> None:
        super().__init__()
        self.logits, self.candidates, self.symmetric = logits, candidates, symmetric

    @property
    def edge_shape(self) -> tuple[int, int]:
        """Shape of a tensor with one entry per edge."""
        rows, columns = self.logits.shape[-2:]
        return rows, columns

    @property
    def raw(self) -> Tensor:
        """The logits."""
        return self.logits

    @property
    def edge_probs(self) -> EdgeProbs:
        """The mean over the pairs."""
        return torch.sigmoid(self.logits).mean(0)

    def sample_from(self, uniforms: Uniforms) -> Graphs:
        r"""Return $1[u < \theta_b]$ for every pair; uniforms may be shared by the pairs."""
        return (self.symmetrize(uniforms) < torch.sigmoid(self.logits.detach())[:, None]).to(uniforms.dtype)

    def log_prob(self, graphs: Graphs) -> LogProb:
        r"""Return $\log P(A \mid c_b)$."""
        logits = self.logits[:, None]
        logs = torch.where(graphs > 0, logsigmoid(logits), logsigmoid(-logits))
        if self.symmetric:
            logs = torch.where(graphs == graphs.mT, logs, -torch.inf)
        return self.upper_triangle(logs).sum((-2, -1))

    def weighted_log_prob(self, weights: EdgeWeights, graphs: Graphs) -> Scalar:
        r"""Return $\mathrm{mean}_s \sum_{ij} w_{sij} \log P(A_{s,ij} \mid c_b)$ over all graphs of all pairs.

        Edges are counted over the graphs of a pair first: logarithms are taken once for each edge of each pair.
        """
        present = (weights * graphs).mean(1)  # (batch, row, slot)
        absent = (weights * (1 - graphs)).mean(1)
        logs = times(present, logsigmoid(self.logits)) + times(absent, logsigmoid(-self.logits))
        return self.upper_triangle(logs).mean(0).sum()

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return no parameters: the learned parameters are those that compute the logits."""
        del generator
        return {}

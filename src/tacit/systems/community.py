r"""The paper's synthetic system: communities of six nodes, a random graph per pair.

$$x \sim N(0, \sigma_x^2), \qquad A \sim P_{\theta^*}, \qquad y = f_{\psi^*}(x, A)$$
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from tacit.data import Pairs
from tacit.errors import require, require_int
from tacit.graph import BernoulliGraph, GraphDistribution
from tacit.predictors import HopPredictor
from tacit.randomness import generator_for
from tacit.shapes import EdgeProbs

NODES_PER_COMMUNITY = 6
# A triangle of side three, as drawn in the paper: undirected edges within one community.
COMMUNITY_EDGES = ((0, 1), (1, 2), (3, 4), (1, 3), (2, 4), (4, 5), (0, 3), (1, 4), (3, 5))
# psi* of the paper's appendix, (hop, in_channel).
PAPER_HOP_WEIGHTS = ((0.3, -0.2, 0.1, -0.2), (-0.3, 0.1, 0.2, -0.1))
# Pairs drawn at once: the graphs of a chunk stay below 50 MB at 120 nodes.
CHUNK_ENTRIES = 12_000_000


def community_edge_probs(num_communities: int = 2, edge_prob: float = 0.75) -> EdgeProbs:
    r"""Return $\theta^*$: ``edge_prob`` on both directions of every edge and on self-loops, 0 elsewhere.

    Neighbouring communities are joined by one edge, from the last node of one to the first of the next.

    >>> [int((community_edge_probs(c) > 0).sum()) for c in (2, 20)]
    [50, 518]
    """
    require_int("num_communities", num_communities)
    require(0 <= edge_prob <= 1, f"edge_prob must be in [0, 1], got {edge_prob}; pass a probability")
    starts = range(0, NODES_PER_COMMUNITY * num_communities, NODES_PER_COMMUNITY)
    edges = [(start + i, start + j) for start in starts for i, j in COMMUNITY_EDGES]
    edges += [(start - 1, start) for start in starts if start]
    probs = edge_prob * torch.eye(NODES_PER_COMMUNITY * num_communities)
    for i, j in edges:
        probs[i, j] = probs[j, i] = edge_prob
    return probs


def _paper_hop_weights() -> Tensor:
    return torch.tensor(PAPER_HOP_WEIGHTS)[..., None]  # (hop, in_channel, channel)


@dataclass(frozen=True)
class CommunitySystem:
    r"""A data-generating system $(\theta^*, \psi^*, \sigma_x)$; the default is the paper's with 12 nodes.

    >>> pairs = CommunitySystem().generate(100, seed=0)
    >>> pairs.inputs.shape, pairs.targets.shape
    (torch.Size([100, 12, 4]), torch.Size([100, 12, 1]))
    """

    true_edge_probs: EdgeProbs = field(default_factory=community_edge_probs)
    hop_weights: Tensor = field(default_factory=_paper_hop_weights)
    input_scale: float = 1.5

    def __post_init__(self) -> None:
        require(
            self.input_scale > 0,
            f"input_scale must be positive, got {self.input_scale}; raise input_scale",
        )
        self.true_graph(), self.true_predictor()  # run their checks

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.true_edge_probs.shape[0]

    def true_graph(self) -> GraphDistribution:
        r"""Return the distribution $P_{\theta^*}$."""
        return BernoulliGraph(self.true_edge_probs.to(self.hop_weights.dtype))

    def true_predictor(self) -> HopPredictor:
        r"""Return $f_{\psi^*}$, its parameters known (not trainable)."""
        predictor = HopPredictor(self.hop_weights)
        predictor.requires_grad_(False)
        return predictor

    def generate(self, num_pairs: int, seed: int = 0) -> Pairs:
        """Draw pairs, each with its own hidden graph, which is not returned."""
        require_int("num_pairs", num_pairs)
        generator = generator_for(seed, "system")
        graph, predictor = self.true_graph(), self.true_predictor()
        in_channels = self.hop_weights.shape[1]
        shape, dtype = (num_pairs, self.num_nodes, in_channels), self.hop_weights.dtype
        inputs = self.input_scale * torch.randn(shape, generator=generator, dtype=dtype)
        chunks = torch.split(inputs, max(1, CHUNK_ENTRIES // self.num_nodes**2))
        targets = [
            predictor(chunk, graph.sample(1, num_pairs=len(chunk), generator=generator))[:, 0] for chunk in chunks
        ]
        return Pairs(inputs, torch.cat(targets))

r"""The paper's communities at any size: a long chain of them, each node with a few candidates.

$$x \sim N(0, \sigma_x^2), \qquad A_{ij} \sim \mathrm{Bernoulli}(\theta^*_{ij}) \text{ on the chain's edges}, \qquad
  y = \tanh\Big( \sum_{l=0}^{2} S^l x\, \psi_l \Big), \quad S = A + I$$

The edges are those of :func:`~tacit.systems.community.community_edge_probs` without self-loops: a node has two to five
neighbours whatever the size. Its candidates are the nodes nearest to it along the chain, all true edges among them. The
walks of two edges are counted, not looked for, so that nothing of the size of a square is ever made.
"""

from dataclasses import dataclass, field
from functools import cached_property

import torch
from benchmarks.polynomial_filter import PolynomialFilter
from jaxtyping import Float
from torch import Tensor

from tacit.data import Pairs
from tacit.errors import require, require_int
from tacit.graph import BernoulliGraph, CandidateEdges
from tacit.randomness import generator_for
from tacit.shapes import EdgeProbs
from tacit.systems.community import COMMUNITY_EDGES, NODES_PER_COMMUNITY

# psi, (power, channel): none for the node itself, then as strong as the paper's, then half of that.
COEFFICIENTS = ((0.0, 0.0, 0.0, 0.0), (0.3, -0.2, 0.1, -0.2), (-0.15, 0.05, 0.1, -0.05))
CHUNK_ENTRIES = 20_000_000  # edges drawn at once


def _coefficients() -> Tensor:
    return torch.tensor(COEFFICIENTS)


@dataclass(frozen=True)
class LargeSystem:
    """A chain of communities of six nodes.

    >>> system = LargeSystem(num_communities=10, num_candidates=8)
    >>> system.num_nodes, system.candidates.num_edges, int((system.true_edge_probs > 0).sum())
    (60, 480, 198)
    >>> system.generate(5).targets.shape
    torch.Size([5, 60, 1])
    """

    num_communities: int
    num_candidates: int = 50
    edge_prob: float = 0.75
    coefficients: Float[Tensor, "power channel"] = field(default_factory=_coefficients)
    input_scale: float = 1.5

    def __post_init__(self) -> None:
        require_int("num_communities", self.num_communities)
        require(
            NODES_PER_COMMUNITY <= self.num_candidates < self.num_nodes,
            f"num_candidates must be from {NODES_PER_COMMUNITY}, so that no edge is left out, to below the number of "
            f"nodes, {self.num_nodes}, got {self.num_candidates}; pass for example 8",
        )

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return NODES_PER_COMMUNITY * self.num_communities

    @cached_property
    def true_edges(self) -> CandidateEdges:
        """The edges that can be there, and no others."""
        starts = NODES_PER_COMMUNITY * torch.arange(self.num_communities)[:, None]
        within = (starts[..., None] + torch.tensor(COMMUNITY_EDGES)).flatten(0, 1)  # (edge, 2)
        between = torch.cat([starts[1:] - 1, starts[1:]], 1)
        one, other = torch.cat([within, between]).unbind(1)
        return CandidateEdges.from_edges(torch.cat([one, other]), torch.cat([other, one]), self.num_nodes)

    @cached_property
    def candidates(self) -> CandidateEdges:
        """The candidates of every node: the nearest along the chain, as many for each."""
        nodes = torch.arange(self.num_nodes)
        first = (nodes - self.num_candidates // 2).clamp(0, self.num_nodes - self.num_candidates - 1)
        others = first[:, None] + torch.arange(self.num_candidates)
        others = others + (others >= nodes[:, None])  # the node itself is left out
        return CandidateEdges.from_edges(others.flatten(), nodes.repeat_interleave(self.num_candidates), self.num_nodes)

    @cached_property
    def true_edge_probs(self) -> EdgeProbs:
        r"""$\theta^*$ of every candidate."""
        probs = torch.zeros(self.candidates.sources.shape)
        probs.view(-1)[self.candidates.positions(*self.true_edges.edges())] = self.edge_prob
        return probs

    def true_predictor(self) -> PolynomialFilter:
        r"""Return $f_{\psi^*}$, its parameters known."""
        predictor = PolynomialFilter(self.coefficients)
        predictor.requires_grad_(False)
        return predictor

    def generate(self, num_pairs: int, seed: int = 0, device: torch.device | str = "cpu") -> Pairs:
        """Draw pairs, each with a hidden graph of its own that is then forgotten."""
        require_int("num_pairs", num_pairs)
        generator = generator_for(seed, "system", device)
        candidates = self.true_edges.to(device)
        graph = BernoulliGraph(self.edge_prob * candidates.used.float(), candidates=candidates)
        predictor = self.true_predictor().to(device)
        shape = (num_pairs, self.num_nodes, self.coefficients.shape[1])
        inputs = self.input_scale * torch.randn(shape, generator=generator, device=device)
        chunks = torch.split(inputs, max(1, CHUNK_ENTRIES // candidates.sources.numel()))
        targets = [
            predictor(chunk, graph.as_operator(graph.sample(1, num_pairs=len(chunk), generator=generator)))[:, 0]
            for chunk in chunks
        ]
        return Pairs(inputs, torch.cat(targets))

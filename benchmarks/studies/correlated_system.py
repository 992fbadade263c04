r"""Systems whose edges do not come one by one: the marginal probabilities are $\theta^*$, the edges are correlated.

$$A_{ij} = 1[v_{ij} < \theta_{ij}], \qquad v_{ij} = u_{s(ij)} \ \text{or} \ 1 - u_{s(ij)}$$

Each $v_{ij}$ is uniform by itself, so the marginals are kept; entries with one source $s$ are drawn together, and where
one of two is turned round and $\theta = 1/2$, exactly one of the two edges is there.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Int
from torch import Generator, Tensor

from tacit.errors import require
from tacit.graph import BernoulliGraph, GraphDistribution
from tacit.shapes import EdgeMask, EdgeProbs, Graphs, LogProb, Uniforms
from tacit.systems.community import CommunitySystem, community_edge_probs

Sources = Int[Tensor, "node node"]  # which uniform an entry takes: a place among the N x N


class CorrelatedGraph(GraphDistribution):
    r"""Edges that share their uniforms, those of one source in any combination that one uniform can make.

    An edge is there if $u < \theta$, or if $u > 1 - \theta$ where it is turned round. The uniforms that make given
    edges of a source are an interval, from the largest of what they must exceed to the least of what they must not:

    $$P(A) = \prod_s \max(0,\; \mathrm{high}_s(A) - \mathrm{low}_s(A))$$

    >>> graph = CorrelatedGraph(torch.full((2, 2), 0.5), *exclusive_pairs(torch.ones(2, 2).bool()))
    >>> graph.sample(1000, generator=torch.Generator().manual_seed(0)).sum(-1).unique().tolist()
    [1.0]
    >>> graph.log_prob(torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]])).exp().item()  # two sources, one of two edges each
    0.25
    """

    sources: Sources
    turned: EdgeMask

    def __init__(self, edge_probs: EdgeProbs, sources: Sources, turned: EdgeMask) -> None:
        super().__init__()
        self.marginals = BernoulliGraph(edge_probs)
        places = edge_probs.numel()
        require(
            sources.shape == turned.shape == edge_probs.shape
            and 0 <= int(sources.min()) <= int(sources.max()) < places,
            f"sources and turned need the shape of edge_probs, {tuple(edge_probs.shape)}, and sources places from 0 to "
            f"{places - 1}, got {tuple(sources.shape)} and {tuple(turned.shape)}; use rows_together or exclusive_pairs",
        )
        self.register_buffer("sources", sources.clone())
        self.register_buffer("turned", turned.clone())

    @property
    def edge_shape(self) -> tuple[int, int]:
        """Nodes and nodes."""
        return self.marginals.edge_shape

    @property
    def edge_probs(self) -> EdgeProbs:
        r"""The marginal probability $\theta_{ij}$ of each edge."""
        return self.marginals.edge_probs

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return where the marginals start."""
        return {f"marginals.{name}": value for name, value in self.marginals.initial_parameters(generator).items()}

    def sample_from(self, uniforms: Uniforms) -> Graphs:
        """Return the graphs that given uniforms make, those of the sources alone."""
        shared = uniforms.flatten(-2)[..., self.sources]  # (..., node, node)
        return self.marginals.sample_from(torch.where(self.turned, 1 - shared, shared))

    def log_prob(self, graphs: Graphs) -> LogProb:
        r"""Return $\log P(A)$: the sum over sources of the logarithm of the length of an interval."""
        bound = torch.where(self.turned, 1 - self.edge_probs, self.edge_probs)
        above = (graphs > 0) == self.turned  # whether the uniform of the source has to be above the bound
        high = torch.where(above, 1.0, bound).flatten(-2)  # (draw, graph, entry)
        low = torch.where(above, bound, 0.0).flatten(-2)
        sources = self.sources.flatten().expand_as(high)
        high = torch.ones_like(high).scatter_reduce(-1, sources, high, "amin")  # (draw, graph, source)
        low = torch.zeros_like(low).scatter_reduce(-1, sources, low, "amax")
        length = high - low
        possible = length > 0
        return torch.where(possible, torch.where(possible, length, 1.0).log(), -torch.inf).sum(-1)


def each_alone(edges: EdgeMask) -> tuple[Sources, EdgeMask]:
    """Return sources of which no two are the same: independent edges."""
    return torch.arange(edges.numel()).view_as(edges), torch.zeros_like(edges)


def rows_together(edges: EdgeMask) -> tuple[Sources, EdgeMask]:
    """Return one source for each row: a node reads all its neighbours or none.

    >>> rows_together(torch.ones(2, 2).bool())[0].tolist()
    [[0, 0], [2, 2]]
    """
    return torch.arange(0, edges.numel(), len(edges))[:, None].expand_as(edges), torch.zeros_like(edges)


def columns_together(edges: EdgeMask) -> tuple[Sources, EdgeMask]:
    """Return one source for each column: a node is read by all its neighbours or by none.

    >>> columns_together(torch.ones(2, 2).bool())[0].tolist()
    [[0, 1], [0, 1]]
    """
    return torch.arange(len(edges)).expand_as(edges), torch.zeros_like(edges)


def exclusive_pairs(edges: EdgeMask) -> tuple[Sources, EdgeMask]:
    """Return a source for the first and second edge of a row, the second turned round, and so on; an odd one is alone.

    >>> sources, turned = exclusive_pairs(torch.ones(3, 3).bool())
    >>> sources[0].tolist(), turned[0].tolist()
    ([0, 0, 2], [False, True, False])
    """
    sources, turned = each_alone(edges)
    for row, edge in enumerate(edges):
        places = edge.nonzero().flatten().tolist()
        for one, other in zip(places[::2], places[1::2], strict=False):
            sources[row, other], turned[row, other] = sources[row, one], True
    return sources, turned


@dataclass(frozen=True)
class CorrelatedSystem(CommunitySystem):
    """A community system with correlated edges; ``ties`` are their sources, and which are turned round.

    >>> CorrelatedSystem().generate(10).targets.shape
    torch.Size([10, 12, 1])
    """

    ties: tuple[Sources, EdgeMask] = field(default_factory=lambda: rows_together(community_edge_probs() > 0))

    def true_graph(self) -> CorrelatedGraph:
        r"""Return the distribution of $A$, with its correlations."""
        return CorrelatedGraph(self.true_edge_probs.to(self.hop_weights.dtype), *self.ties)

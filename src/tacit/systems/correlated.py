r"""Systems whose edges do not come one by one: the marginal probabilities are $\theta^*$, the edges are correlated.

$$A_{ij} = 1[v_{ij} < \theta_{ij}], \qquad v_{ij} = u_{s(ij)} \ \text{or} \ 1 - u_{s(ij)}$$

Each $v_{ij}$ is uniform by itself, so the marginals are kept; entries with one source $s$ are drawn together, and where
one of two is turned round and $\theta = 1/2$, exactly one of the two edges is there.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Int
from torch import Tensor

from tacit.errors import require
from tacit.graph import BernoulliGraph
from tacit.shapes import EdgeMask, EdgeProbs, Graphs, Uniforms
from tacit.systems.community import CommunitySystem, community_edge_probs

Sources = Int[Tensor, "node node"]  # which uniform an entry takes: a place among the N x N


class CorrelatedGraph(BernoulliGraph):
    """Edges that share their uniforms; its log-probability is of no use, for it counts edges as independent.

    >>> graph = CorrelatedGraph(torch.full((2, 2), 0.5), *exclusive_pairs(torch.ones(2, 2).bool()))
    >>> graph.sample(1000, generator=torch.Generator().manual_seed(0)).sum(-1).unique().tolist()
    [1.0]
    """

    sources: Sources
    turned: EdgeMask

    def __init__(self, edge_probs: EdgeProbs, sources: Sources, turned: EdgeMask) -> None:
        super().__init__(edge_probs)
        places = edge_probs.numel()
        require(
            sources.shape == turned.shape == edge_probs.shape
            and 0 <= int(sources.min()) <= int(sources.max()) < places,
            f"sources and turned need the shape of edge_probs, {tuple(edge_probs.shape)}, and sources places from 0 to "
            f"{places - 1}, got {tuple(sources.shape)} and {tuple(turned.shape)}; use rows_together or exclusive_pairs",
        )
        self.register_buffer("sources", sources.clone())
        self.register_buffer("turned", turned.clone())

    def sample_from(self, uniforms: Uniforms) -> Graphs:
        """Return the graphs that given uniforms make, those of the sources alone."""
        shared = uniforms.flatten(-2)[..., self.sources]  # (..., node, node)
        return super().sample_from(torch.where(self.turned, 1 - shared, shared))


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

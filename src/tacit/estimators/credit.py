r"""Credit: which part of the loss is assigned to which edges of the graph.

A mean of node losses has a cost $w_i$ per node. All of it may be credited to every edge (global). If the predictor is
local with $L$ hops, the cost of node $i$ may be credited only to the edges that can change its output: $A_{jk}$ can do
so only if $j$ is reached from $i$ over at most $L - 1$ edges. Whether $j$ is reached does not depend on $A_{jk}$
itself, so the gradient remains exact, with far less variance.

In a symmetric graph $A_{jk} = A_{kj}$ is one random variable in two rows. It is credited, once, with every node that
reaches $j$ or $k$ over at most $L - 1$ edges. A shortest path to the nearer of the two does not use the edge between
them, so this does not depend on $A_{jk}$ either. With $R_{ij} = 1$ if $j$ is reached from $i$, the weight is

$$\tfrac1N \sum_i w_i \max(R_{ij}, R_{ik}) = \tfrac1N \sum_i w_i (R_{ij} + R_{ik} - R_{ij} R_{ik})$$

Over a table of candidates a row has the weight of its node. For two hops, the costs of the nodes that read $j$ are
added along the edges; more than two hops are not supported, because the reached nodes would have to be listed.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from tacit.errors import require
from tacit.graph import CandidateEdges, reachability, walks_within
from tacit.shapes import Cost, DrawCost, EdgeWeights, Graphs


@runtime_checkable
class Credit(Protocol):
    """Interface of credit assignment.

    ``num_hops``  the locality that it assumes of the predictor; None if it is valid for any predictor
    """

    @property
    def num_hops(self) -> int | None:
        """See above."""
        ...

    def __call__(
        self, advantage: Cost, graphs: Graphs, *, symmetric: bool = False, candidates: CandidateEdges | None = None
    ) -> EdgeWeights:
        """Return the weight of each edge's log-probability (an axis of size 1 applies to all rows or sources).

        ``symmetric``   the two entries of a pair are one edge
        ``candidates``  the table of candidate edges; None for all pairs of nodes
        """
        ...


@dataclass(frozen=True)
class GlobalCredit:
    """Global credit: every edge is credited with the total loss; exact for any predictor."""

    num_hops: ClassVar[int | None] = None

    def __call__(
        self, advantage: Cost, graphs: Graphs, *, symmetric: bool = False, candidates: CandidateEdges | None = None
    ) -> EdgeWeights:
        """Return the mean advantage over units, the same for every edge."""
        del symmetric, candidates
        return _per_draw(advantage, graphs).mean(-1, keepdim=True)[..., None]


@dataclass(frozen=True)
class ReceptiveFieldCredit:
    """Credit by receptive field: a row is credited with the nodes that reach it; exact for a local predictor."""

    num_hops: int

    def __post_init__(self) -> None:
        require(self.num_hops >= 1, f"num_hops must be at least 1, got {self.num_hops}; raise num_hops")

    def __call__(
        self, advantage: Cost, graphs: Graphs, *, symmetric: bool = False, candidates: CandidateEdges | None = None
    ) -> EdgeWeights:
        r"""Return $\tfrac1N \sum_i w_i\, 1[j \text{ within } L-1 \text{ edges of } i]$ for all edges of row $j$."""
        weight = _per_draw(advantage, graphs)  # (draw, graph, node)
        if candidates is not None:
            return _along_candidates(weight, graphs, candidates, self.num_hops)
        if symmetric:
            return _of_either_end(weight, graphs, self.num_hops)
        if self.num_hops == 1:
            return weight[..., None] / weight.shape[-1]
        walks = walks_within(graphs, self.num_hops - 1)
        # Every node reaches itself: set the diagonal to 1. (A maximum with the identity is slower.)
        from_others = (weight[..., None, :] @ walks)[..., 0, :]
        itself = weight * (1 - walks.diagonal(dim1=-2, dim2=-1))
        return (from_others + itself)[..., None] / weight.shape[-1]


@dataclass(frozen=True)
class OwnRowCredit:
    """Own-row credit, "literature 2": a row is credited only with its own node. Exact for one hop, biased for more."""

    num_hops: ClassVar[int | None] = None

    def __call__(
        self, advantage: Cost, graphs: Graphs, *, symmetric: bool = False, candidates: CandidateEdges | None = None
    ) -> EdgeWeights:
        r"""Return $w_j / N$ for the edges of each row $j$; $(w_j + w_k) / N$ for a symmetric pair."""
        weight = _per_draw(advantage, graphs)
        if candidates is not None:
            return _along_candidates(weight, graphs, candidates, 1)
        return _of_either_end(weight, graphs, 1) if symmetric else weight[..., None] / weight.shape[-1]


def _of_either_end(weight: DrawCost, graphs: Graphs, num_hops: int) -> EdgeWeights:
    """Return, for each pair, the summed weights of the nodes that reach either end, each counted once."""
    reached = reachability(graphs, num_hops - 1)
    from_nodes = weight[..., None] * reached
    one_end = from_nodes.sum(-2)  # (draw, graph, node)
    both_ends = reached.mT @ from_nodes  # (draw, graph, node, node)
    return (one_end[..., :, None] + one_end[..., None, :] - both_ends) / weight.shape[-1]


def _along_candidates(weight: DrawCost, graphs: Graphs, candidates: CandidateEdges, num_hops: int) -> EdgeWeights:
    """Return, for each row, the weight of its node and, for two hops, of the nodes that read it."""
    if num_hops == 2:
        others = candidates.sources != candidates.row_node[:, None]  # an empty slot contains its own node
        read = graphs * others * weight[..., candidates.row_node, None]
        weight = weight.index_add(-1, candidates.sources.flatten(), read.flatten(-2))
    return weight[..., candidates.row_node, None] / candidates.num_nodes


def _per_draw(advantage: Cost, graphs: Graphs) -> DrawCost:
    """Average over the pairs that share their graphs: (draw, graph, unit)."""
    return advantage.mean(0, keepdim=True) if graphs.shape[0] == 1 else advantage

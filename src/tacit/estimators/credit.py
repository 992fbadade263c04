r"""Credit: which edges of the graph answer for which part of the loss.

A mean of node losses has a cost $w_i$ per node. All of it may be credited to every edge (global), or, when the
predictor is local with $L$ hops, only to the edges that could have changed node $i$'s output: $A_{jk}$ can do that
only when $j$ is reached from $i$ over at most $L - 1$ edges. Whether $j$ is reached does not depend on $A_{jk}$
itself, so that the gradient stays exact, with far less variance.

In a symmetric graph $A_{jk} = A_{kj}$ is one coin in two rows. It answers, once, for every node that reaches $j$ or $k$
over at most $L - 1$ edges: the first arrival at either does not pass the edge between them, so that this, too, does not
depend on the coin itself. With $R_{ij}$ = 1 where $j$ is reached from $i$, the weight is

$$\tfrac1N \sum_i w_i \max(R_{ij}, R_{ik}) = \tfrac1N \sum_i w_i (R_{ij} + R_{ik} - R_{ij} R_{ik})$$

Over a table of candidates a row has the weight of its node. For two hops, the nodes that read $j$ are added up along
the edges; who is reached over more edges would have to be listed, which is not done.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from tacit.errors import require
from tacit.graph import CandidateEdges, reachability, walks_within
from tacit.shapes import Cost, DrawCost, EdgeWeights, Graphs


@runtime_checkable
class Credit(Protocol):
    """The call that the score function makes.

    ``num_hops``  the locality of the predictor that it relies on; None where it takes any predictor
    """

    @property
    def num_hops(self) -> int | None:
        """See above."""
        ...

    def __call__(
        self, advantage: Cost, graphs: Graphs, *, symmetric: bool = False, candidates: CandidateEdges | None = None
    ) -> EdgeWeights:
        """Return what multiplies the log-probability of each edge (an axis of 1: the same for all rows or sources).

        ``symmetric``  the two entries of a pair are one coin
        ``candidates``      the table of candidates that the graphs are over, if not all pairs of nodes
        """
        ...


@dataclass(frozen=True)
class GlobalCredit:
    """Every edge gets credit for the total loss; correct for any predictor."""

    num_hops: ClassVar[int | None] = None

    def __call__(
        self, advantage: Cost, graphs: Graphs, *, symmetric: bool = False, candidates: CandidateEdges | None = None
    ) -> EdgeWeights:
        """Return the mean advantage over units, the same for every edge."""
        del symmetric, candidates
        return _per_draw(advantage, graphs).mean(-1, keepdim=True)[..., None]


@dataclass(frozen=True)
class ReceptiveFieldCredit:
    """A row answers for the nodes that reach it; right for a local predictor and a node-scope loss."""

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
        # Every node reaches itself, once: by a walk or without one. (A maximum with the identity is slower.)
        from_others = (weight[..., None, :] @ walks)[..., 0, :]
        itself = weight * (1 - walks.diagonal(dim1=-2, dim2=-1))
        return (from_others + itself)[..., None] / weight.shape[-1]


@dataclass(frozen=True)
class OwnRowCredit:
    """A row answers for its own node alone: what literature 2 does. Exact for one hop, biased for more."""

    num_hops: ClassVar[int | None] = None

    def __call__(
        self, advantage: Cost, graphs: Graphs, *, symmetric: bool = False, candidates: CandidateEdges | None = None
    ) -> EdgeWeights:
        r"""Return $w_j / N$ for the edges of each row $j$; $(w_j + w_k) / N$ for a coin that two rows share."""
        weight = _per_draw(advantage, graphs)
        if candidates is not None:
            return _along_candidates(weight, graphs, candidates, 1)
        return _of_either_end(weight, graphs, 1) if symmetric else weight[..., None] / weight.shape[-1]


def _of_either_end(weight: DrawCost, graphs: Graphs, num_hops: int) -> EdgeWeights:
    """Return for each pair what the nodes weigh that reach either of its ends, none of them twice."""
    reached = reachability(graphs, num_hops - 1)
    from_nodes = weight[..., None] * reached
    one_end = from_nodes.sum(-2)  # (draw, graph, node)
    both_ends = reached.mT @ from_nodes  # (draw, graph, node, node)
    return (one_end[..., :, None] + one_end[..., None, :] - both_ends) / weight.shape[-1]


def _along_candidates(weight: DrawCost, graphs: Graphs, candidates: CandidateEdges, num_hops: int) -> EdgeWeights:
    """Return for each row what its node weighs and, for two hops, what the nodes weigh that read it."""
    if num_hops == 2:
        others = candidates.sources != candidates.row_node[:, None]  # an empty slot holds its own node
        read = graphs * others * weight[..., candidates.row_node, None]
        weight = weight.index_add(-1, candidates.sources.flatten(), read.flatten(-2))
    return weight[..., candidates.row_node, None] / candidates.num_nodes


def _per_draw(advantage: Cost, graphs: Graphs) -> DrawCost:
    """Average over the pairs that share their graphs: (draw, graph, unit)."""
    return advantage.mean(0, keepdim=True) if graphs.shape[0] == 1 else advantage

r"""Walks over a table of candidates: $1[A^l \neq 0]$ without a matrix $A$.

The $l$-th power is stored in a separate table of the nodes that can be reached by $l$ candidate edges. An entry is 1 if
there is any walk,

$$P^{(l)}_{ij} = 1\Big[ \sum_k P^{(l-1)}_{ik} A_{kj} > 0 \Big],$$

and the sum runs over the walks that the table allows, listed once. Their number is about edges times degree, so this is
for tables of a few million walks; a stack of convolutions adds up walks without listing them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Int
from torch import Tensor

from tacit.errors import require
from tacit.graph.aggregation import CandidateGraphs
from tacit.graph.candidate_edges import CandidateEdges

MOST_WALKS = 20_000_000  # each takes three indices of eight bytes, and a number per graph
Walk = Int[Tensor, " walk"]


@dataclass(frozen=True, eq=False)
class Walks:
    """All walks that extend the entries of one table by an edge of another.

    ``first``   the flat position of the entry
    ``second``  the flat position of the edge
    ``place``   the flat position in ``table`` of the resulting entry
    """

    first: Walk
    second: Walk
    place: Walk
    table: CandidateEdges

    @classmethod
    def over(cls, before: CandidateEdges, edges: CandidateEdges) -> "Walks":
        """List the walks; raise an error if there are too many."""
        own = before.used.flatten().nonzero()[:, 0]  # entries (i, k)
        node, via = before.row_node[own // before.sources.shape[1]], before.sources.flatten()[own]
        after = edges.used.flatten().nonzero()[:, 0]  # edges (k, j), by k: rows are sorted by node
        degree = torch.bincount(edges.row_node[after // edges.sources.shape[1]], minlength=edges.num_nodes)
        count = int(degree[via].sum())
        require(
            count <= MOST_WALKS,
            f"powers of the graph over this table require {count:,} walks, but at most {MOST_WALKS:,} are listed; use "
            "fewer candidates per node, a predictor with one hop, or ConvolutionStack, which lists none",
        )
        many, start = degree[via], degree.cumsum(0) - degree
        within = torch.arange(count, device=own.device) - (many.cumsum(0) - many).repeat_interleave(many)
        second = after[start[via].repeat_interleave(many) + within]
        target, source = node.repeat_interleave(many), edges.sources.flatten()[second]
        pairs = torch.unique(target * edges.num_nodes + source)
        table = CandidateEdges.from_edges(pairs % edges.num_nodes, pairs // edges.num_nodes, edges.num_nodes)
        return cls(own.repeat_interleave(many), second, table.positions(source, target), table)

    def follow(self, before: CandidateGraphs, edges: CandidateGraphs) -> CandidateGraphs:
        """Return the entries that the present walks lead to."""
        there = before.values.flatten(-2)[..., self.first] * edges.values.flatten(-2)[..., self.second]
        shape = self.table.sources.shape
        sums = there.new_zeros(*there.shape[:-1], shape.numel()).index_add(-1, self.place, there)
        return CandidateGraphs((sums > 0).to(there.dtype).view(*sums.shape[:-1], *shape), self.table)


@lru_cache(maxsize=4)
def walks_over(before: CandidateEdges, edges: CandidateEdges) -> Walks:
    """Return the walks that extend one table by another, cached for every two tables."""
    return Walks.over(before, edges)


def candidate_powers(graphs: CandidateGraphs, num_hops: int) -> Iterator[CandidateGraphs]:
    r"""Yield $1[A^l \neq 0]$ for $l = 1, \dots,$ ``num_hops``, each over a separate table.

    >>> table = CandidateEdges.from_edges(torch.tensor([1, 2]), torch.tensor([0, 1]), 3)  # 1 -> 0, 2 -> 1
    >>> path = CandidateGraphs(torch.ones(1, 1, *table.sources.shape) * table.used, table)
    >>> messages = torch.tensor([1.0, 10.0, 100.0]).view(1, 1, 3, 1)
    >>> [(power @ messages).flatten().tolist() for power in candidate_powers(path, 2)]
    [[10.0, 100.0, 0.0], [100.0, 0.0, 0.0]]
    """
    power = graphs
    yield power
    for _ in range(num_hops - 1):
        power = walks_over(power.candidates, graphs.candidates).follow(power, graphs)
        yield power

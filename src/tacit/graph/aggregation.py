r"""Graphs over a table of candidate edges, with the operations of a matrix that predictors use.

$$(A m)_i = \sum_{k} A_{ik}\, m_{c(i, k)}$$

$c(i, k)$ is the node in slot $k$ of node $i$. Time and memory are proportional to the number of candidates, not to the
number of pairs of nodes. A predictor works with both matrices and tables if it uses only ``graphs @ messages``,
``graphs.sum(-1, keepdim=True)`` and ``graphs.diagonal(dim1=-2, dim2=-1)``.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.graph.candidate_edges import CandidateEdges
from tacit.shapes import Graphs, Samples

# Up to this many nodes a compiled sum is faster than small matrix products on a GPU (H200, 12 nodes: 4 us, not 10).
FEW_NODES = 32
Messages = Float[Tensor, "batch #graph node channel"]


@dataclass(frozen=True, eq=False)
class CandidateGraphs:
    """Sampled edges, 0 or 1 for each slot of a table.

    >>> table = CandidateEdges.from_edges(torch.tensor([1, 2, 0]), torch.tensor([0, 0, 2]), 3)  # source, target
    >>> graphs = CandidateGraphs(torch.ones(1, 1, *table.sources.shape) * table.used, table)
    >>> messages = torch.tensor([1.0, 10.0, 100.0]).view(1, 1, 3, 1)
    >>> (graphs @ messages).flatten().tolist(), graphs.sum(-1).flatten().tolist()
    ([110.0, 0.0, 1.0], [2.0, 0.0, 1.0])
    """

    values: Graphs
    candidates: CandidateEdges

    @property
    def shape(self) -> torch.Size:
        """(draw, graph, row, slot)."""
        return self.values.shape

    def __matmul__(self, messages: Messages) -> Float[Tensor, "batch graph node channel"]:
        """Sum, for every node, the messages of the nodes that it reads."""
        sent = self.from_sources(messages)  # (batch, graph or 1, row, slot, channel)
        if messages.shape[1] == 1:  # shared by all graphs: gather once, then one product per row
            return self.by_node(torch.einsum("bsrk,brkc->bsrc", self.values, sent[:, 0]), -2)
        return self.by_node((self.values[..., None] * sent).sum(-2), -2)  # compiled, one pass that gathers and adds

    def from_sources(self, values: Float[Tensor, "*any node channel"]) -> Float[Tensor, "*any row slot channel"]:
        """Return, for each slot, the values of its source node."""
        sources = self.candidates.sources
        chosen = values.index_select(-2, sources.flatten())
        return chosen.view(*values.shape[:-2], *sources.shape, values.shape[-1])

    def read_edges(self, messages: Float[Tensor, "batch row slot channel"]) -> Samples:
        """Sum, for every node, messages that differ from edge to edge."""
        return self.by_node(torch.einsum("bsrk,brkc->bsrc", self.values, messages), -2)

    def sum(self, dim: int, keepdim: bool = False) -> Tensor:
        """Return how many nodes each node reads: ``dim`` is the last axis, the sources."""
        if dim != -1:
            raise ValueError(f"dim must be -1, the sources, got {dim}; there is no other sum over a table")
        degree = self.by_node(self.values.sum(-1), -1)  # (draw, graph, node)
        return degree[..., None] if keepdim else degree

    def diagonal(self, *, dim1: int, dim2: int) -> Float[Tensor, "draw graph node"]:
        """Return the self-loops, 0 where a node is not its own candidate; requires dim1=-2 and dim2=-1."""
        if (dim1, dim2) != (-2, -1):
            raise ValueError(f"dim1, dim2 must be -2, -1, got {dim1}, {dim2}; a table has no other diagonal")
        return self.by_node((self.values * self.self_loops).sum(-1), -1)

    @cached_property
    def self_loops(self) -> Bool[Tensor, "row slot"]:
        """Mask of the slots in which a node is its own candidate."""
        return self.candidates.used & (self.candidates.sources == self.candidates.row_node[:, None])

    def by_node(self, rows: Tensor, dim: int) -> Tensor:
        """Add up the rows of each node along an axis."""
        candidates = self.candidates
        if len(candidates.row_node) == candidates.num_nodes:  # a row each, in order
            return rows
        shape = list(rows.shape)
        shape[dim] = candidates.num_nodes
        return rows.new_zeros(shape).index_add(dim, candidates.row_node, rows)


AnyGraphs = Graphs | CandidateGraphs  # over all pairs of nodes, or over a table of candidates


def aggregate(graphs: AnyGraphs, messages: Float[Tensor, "batch node channel"]) -> Samples:
    """Sum, for every node, pair and graph, the messages of the nodes that the node reads."""
    if isinstance(graphs, CandidateGraphs):
        return graphs @ messages[:, None]
    if len(graphs) > 1 and graphs.is_cuda and graphs.shape[-1] <= FEW_NODES:
        return (graphs[..., None] * messages[:, None, None]).sum(-2)
    if len(graphs) > 1:
        return torch.einsum("bsij,bjo->bsio", graphs, messages)
    # Shared graphs: one product of two matrices, with the samples of a pair side by side in the result.
    (_, num_graphs, nodes, _), (batch, _, channels) = graphs.shape, messages.shape
    product = messages.mT.reshape(batch * channels, nodes) @ graphs.reshape(num_graphs * nodes, nodes).mT
    return product.view(batch, channels, num_graphs, nodes).permute(0, 2, 3, 1)

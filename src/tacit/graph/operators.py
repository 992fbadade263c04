r"""Sampled graphs as predictors use them: products with messages, powers, and which nodes reach which.

Graphs over a table of candidate edges have the operations of a matrix that predictors use.

$$(A m)_i = \sum_{k} A_{ik}\, m_{c(i, k)}$$

$c(i, k)$ is the node in slot $k$ of node $i$. Time and memory are proportional to the number of candidates, not to the
number of pairs of nodes. A predictor works with both matrices and tables if it uses only ``graphs @ messages``,
``graphs.sum(-1, keepdim=True)``, ``graphs.diagonal(dim1=-2, dim2=-1)`` and the functions of this file.

Walks over a table of candidates: $1[A^l \neq 0]$ without a matrix $A$.

The $l$-th power is stored in a separate table of the nodes that can be reached by $l$ candidate edges. An entry is 1 if
there is any walk,

$$P^{(l)}_{ij} = 1\Big[ \sum_k P^{(l-1)}_{ik} A_{kj} > 0 \Big],$$

and the sum runs over the walks that the table allows, listed once. Their number is about edges times degree, so this is
for tables of a few million walks; a stack of convolutions adds up walks without listing them.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.errors import require
from tacit.graph.layouts import AllPairs, CandidateEdges, Layout
from tacit.shapes import DrawCost, Graphs, Samples

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
    self_loops: bool = False  # products have an edge from each node to itself, whatever the values say

    @property
    def shape(self) -> torch.Size:
        """(draw, graph, row, slot)."""
        return self.values.shape

    def __matmul__(self, messages: Messages) -> Float[Tensor, "batch graph node channel"]:
        """Sum, for every node, the messages of the nodes that it reads."""
        sent = self.from_sources(messages)  # (batch, graph or 1, row, slot, channel)
        if messages.shape[1] == 1:  # shared by all graphs: gather once, then one product per row
            total = self.by_node(torch.einsum("bsrk,brkc->bsrc", self.values, sent[:, 0]), -2)
        else:
            total = self.by_node((self.values[..., None] * sent).sum(-2), -2)  # compiled, one pass: gather and add
        if self.self_loops:  # add what the diagonal lacks to 1
            total = total + (1 - self.diagonal(dim1=-2, dim2=-1))[..., None] * messages
        return total

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
        return self.by_node((self.values * self.own_slots).sum(-1), -1)

    @cached_property
    def own_slots(self) -> Bool[Tensor, "row slot"]:
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


def disjoint_edges(graphs: AnyGraphs, num_pairs: int = 1) -> Int[Tensor, "2 edge"]:
    """Return the edges of all graphs as one disjoint union: node i of graph s of pair b has number (b S + s) N + i.

    Graphs that the pairs share are repeated for each of ``num_pairs``.

    >>> disjoint_edges(torch.tensor([[[[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]]])).tolist()
    [[1, 2], [0, 3]]
    """
    table = graphs.candidates if isinstance(graphs, CandidateGraphs) else None
    values = graphs.values if isinstance(graphs, CandidateGraphs) else graphs
    flat = values.expand(max(len(values), num_pairs), -1, -1, -1).flatten(0, 1)  # (copy, row, slot)
    # A trace is only valid for one number of edges; reading the number makes the tracer stop here.
    bool(flat.any())
    copy, row, slot = flat.nonzero(as_tuple=True)
    if table is None:
        return torch.stack([slot, row]) + copy * flat.shape[-1]
    return torch.stack([table.sources[row, slot], table.row_node[row]]) + copy * table.num_nodes


def weigh_edges(
    graphs: AnyGraphs, sent: Float[Tensor, "batch node sent"], weights: Float[Tensor, "row slot sent channel"]
) -> Samples:
    """Sum, for every node, pair and graph, the numbers that its sources send times the weights of the edges."""
    if isinstance(graphs, CandidateGraphs):
        return graphs.read_edges(torch.einsum("brsk,rskc->brsc", graphs.from_sources(sent), weights))
    messages = torch.einsum("bjk,ijkc->bijc", sent, weights)  # once per pair, independent of the graphs
    return torch.einsum("bsij,bijc->bsic", graphs, messages)


def with_self_loops(graphs: AnyGraphs) -> AnyGraphs:
    """Return the graphs with an edge from each node to itself, for products with messages.

    >>> (with_self_loops(torch.zeros(1, 1, 2, 2)) @ torch.tensor([[[[1.0], [2.0]]]])).flatten().tolist()
    [1.0, 2.0]
    """
    if isinstance(graphs, CandidateGraphs):
        return CandidateGraphs(graphs.values, graphs.candidates, self_loops=True)
    itself = torch.eye(graphs.shape[-1], dtype=graphs.dtype, device=graphs.device)
    return graphs * (1 - itself) + itself


def weight_within_reach(
    graphs: AnyGraphs, weight: DrawCost, num_steps: int, *, symmetric: bool = False
) -> Float[Tensor, "draw graph row #slot"]:
    """Sum, for each row, the weights of its node and of those that reach it over at most ``num_steps`` edges.

    Over a table ``num_steps`` is 0 or 1: with more, the reached nodes would have to be listed. In ``symmetric`` graphs,
    which are matrices, an edge has the weights of the nodes that reach either of its ends, each counted once.
    """
    if isinstance(graphs, CandidateGraphs):
        table = graphs.candidates
        if num_steps:
            others = table.sources != table.row_node[:, None]  # an empty slot contains its own node
            read = graphs.values * others * weight[..., table.row_node, None]
            weight = weight.index_add(-1, table.sources.flatten(), read.flatten(-2))
        return weight[..., table.row_node, None]
    if symmetric:
        reached = reachability(graphs, num_steps)
        from_nodes = weight[..., None] * reached
        one_end = from_nodes.sum(-2)  # (draw, graph, node)
        both_ends = reached.mT @ from_nodes  # (draw, graph, node, node)
        return one_end[..., :, None] + one_end[..., None, :] - both_ends
    if not num_steps:
        return weight[..., None]
    walks = walks_within(graphs, num_steps)
    # Every node reaches itself: set the diagonal to 1. (A maximum with the identity is slower.)
    from_others = (weight[..., None, :] @ walks)[..., 0, :]
    return (from_others + weight * (1 - walks.diagonal(dim1=-2, dim2=-1)))[..., None]


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

    @staticmethod
    @lru_cache(maxsize=4)
    def over(before: CandidateEdges, edges: CandidateEdges) -> "Walks":
        """List the walks, cached for every two tables; raise an error if there are too many."""
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
        return Walks(own.repeat_interleave(many), second, table.positions(source, target), table)

    def follow(self, before: CandidateGraphs, edges: CandidateGraphs) -> CandidateGraphs:
        """Return the entries that the present walks lead to."""
        there = before.values.flatten(-2)[..., self.first] * edges.values.flatten(-2)[..., self.second]
        shape = self.table.sources.shape
        sums = there.new_zeros(*there.shape[:-1], shape.numel()).index_add(-1, self.place, there)
        return CandidateGraphs((sums > 0).to(there.dtype).view(*sums.shape[:-1], *shape), self.table)


def powers(graphs: AnyGraphs, num_hops: int) -> Iterator[AnyGraphs]:
    """Yield the powers of graphs in either layout: which nodes are linked by a walk of 1, 2, ... edges."""
    if isinstance(graphs, CandidateGraphs):
        return candidate_powers(graphs, num_hops)
    return boolean_powers(graphs, num_hops)


def relaxed_powers(graphs: AnyGraphs, num_hops: int) -> Iterator[AnyGraphs]:
    """Yield powers that are differentiable in the graphs; over a table only the first."""
    if isinstance(graphs, CandidateGraphs):
        require(
            num_hops == 1,
            "gradients through the graph require HopPredictor with one hop over a table of candidates, got "
            f"{num_hops}; use ConvolutionStack, ScoreFunction(), or a graph over all pairs of nodes",
        )
        return iter([graphs])
    return soft_powers(graphs, num_hops)


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
        power = Walks.over(power.candidates, graphs.candidates).follow(power, graphs)
        yield power


WORD_BITS = 31  # usable bits of a signed 32-bit integer


def boolean_powers(graphs: Graphs, num_hops: int) -> Iterator[Graphs]:
    r"""Yield $1[A^l \neq 0]$ for $l = 1, \dots,$ ``num_hops``: is there a walk of exactly $l$ edges?

    >>> path = torch.tensor([[0., 1., 0.], [0., 0., 1.], [0., 0., 0.]])[None, None]
    >>> [power[0, 0, 0].tolist() for power in boolean_powers(path, 2)]
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    if graphs.is_cuda and graphs.shape[-1] <= WORD_BITS:
        yield from powers_by_words(graphs, num_hops)
        return
    power = graphs
    yield power
    for _ in range(num_hops - 1):
        power = ((power @ graphs) > 0).to(graphs.dtype)
        yield power


def powers_by_words(graphs: Graphs, num_hops: int) -> Iterator[Graphs]:
    """Yield the powers of small graphs with each row as one integer of bits; rows are combined by bitwise "or".

    On a GPU thousands of small matrix products are slow: 42 us of a step on an H200, and this takes 7. On a CPU the
    products are faster.
    """
    yield graphs
    if num_hops == 1:
        return
    places = torch.arange(graphs.shape[-1], dtype=torch.int32, device=graphs.device)
    rows = ((graphs > 0).to(torch.int32) << places).sum(-1, dtype=torch.int32)  # (draw, graph, row)
    power = rows
    for _ in range(num_hops - 1):
        leads = [torch.where((power >> node) & 1 > 0, rows[..., node, None], 0) for node in range(graphs.shape[-1])]
        power = functools.reduce(torch.bitwise_or, leads)
        yield ((power[..., None] >> places) & 1).to(graphs.dtype)


def soft_powers(graphs: Graphs, num_hops: int) -> Iterator[Graphs]:
    r"""Yield a differentiable version of :func:`boolean_powers` that also accepts edges between 0 and 1.

    $P_l = 1 - \prod_k (1 - P_{l-1, ik} A_{kj})$ is the probability of a walk if the edges were independent. For edges
    of 0 and 1 the values equal those of :func:`boolean_powers`, and the derivative for an edge is the change from
    flipping it (unless a self-loop puts one edge into two walks). It uses N times the memory.

    >>> path = torch.tensor([[0., 1., 0.], [0., 0., 0.5], [0., 0., 0.]])[None, None]
    >>> [power[0, 0, 0].tolist() for power in soft_powers(path, 2)]
    [[0.0, 1.0, 0.0], [0.0, 0.0, 0.5]]
    """
    power = graphs
    yield power
    for _ in range(num_hops - 1):
        power = 1 - _product(1 - power[..., :, :, None] * graphs[..., None, :, :])
        yield power


def _product(factors: Float[Tensor, "draw graph node via node"]) -> Graphs:
    """Multiply over the second to last axis by halving, which gives exact derivatives at 0 without a division."""
    while factors.shape[-2] > 1:
        half = factors.shape[-2] // 2
        halves = factors[..., :half, :] * factors[..., half : 2 * half, :]
        factors = torch.cat([halves, factors[..., 2 * half :, :]], -2)
    return factors[..., 0, :]


def walks_within(graphs: Graphs, num_steps: int) -> Graphs:
    """Return 1 at [i, j] where a walk of one to ``num_steps`` edges leads from i to j."""
    return functools.reduce(torch.maximum, boolean_powers(graphs, num_steps))


def reachability(graphs: Graphs, num_steps: int) -> Graphs:
    """Return 1 at [i, j] where j can be reached from i over at most ``num_steps`` edges; i reaches itself.

    >>> path = torch.tensor([[0., 1., 0.], [0., 0., 1.], [0., 0., 0.]])[None, None]
    >>> reachability(path, 1)[0, 0, 0].tolist()
    [1.0, 1.0, 0.0]
    """
    itself = torch.eye(graphs.shape[-1], dtype=graphs.dtype, device=graphs.device).expand_as(graphs)
    return torch.maximum(itself, walks_within(graphs, num_steps)) if num_steps else itself


def nodes_reaching(
    layout: Layout, graphs: Float[Tensor, "graph row slot"], node: Int[Tensor, " graph"], num_steps: int
) -> Bool[Tensor, "graph node"]:
    """Return which nodes reach one node of each graph over at most ``num_steps`` edges, itself included.

    Over a table ``num_steps`` is 0 or 1.
    """
    each = torch.arange(len(node), device=node.device)
    if isinstance(layout, AllPairs):
        return reachability(graphs[None], num_steps)[0, each, :, node] > 0
    reaching = torch.zeros(len(node), layout.num_nodes, dtype=torch.bool, device=node.device)
    reaching[each, node] = True
    if num_steps:
        graph, row, slot = (graphs > 0).nonzero(as_tuple=True)
        reads = layout.sources[row, slot] == node[graph]
        reaching[graph[reads], layout.row_node[row[reads]]] = True
    return reaching

r"""Layouts of tensors with a number per edge: a table of candidates, or a matrix of all pairs of nodes.

Candidate edges as a table: one row per node, with one slot per node that it may read.

    node 0 may read 1 and 4             row_node   sources    used
    node 1 may read 0, 2, 3 and 4          0       1  4  0    yes yes no
    node 2 may read none                   1       0  2  3    yes yes yes
    ...                                    1       4  1  1    yes no  no
                                           2       2  2  2    no  no  no

A node with more candidates than the table has columns gets several rows, so that one hub does not widen all rows. With
$E$ edges and $N$ nodes the table has at most $3E + 10N$ slots, and $E$ slots if all nodes have equally many candidates.

A matrix is the table in which every node may read every node, so that row $i$, slot $j$ is the edge from node $j$ to
node $i$. Both answer the same questions, and only this folder knows which of them a graph has.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from tacit.edges import EdgeIndex
from tacit.errors import InputError, require, require_int
from tacit.graph.memory import require_memory
from tacit.shapes import EdgeMask

# Peak bytes per edge while a table is built from edges: both ends, their sorted keys, the order, place and row of each
# edge, and the table itself. Measured: 103 to 105 at 5 and 9 million edges.
EDGE_BYTES = 105
# Cost of a row beside its candidates, in units of one candidate: storing its node, and adding its sum to those of the
# node's other rows. Any small number works; with 0, a table of one column would always be the smallest.
ROW_COST = 8
# A pass of a predictor gathers this many numbers per node or slot, and at most 2^27 (half a gigabyte) for all pairs.
GATHERED, MOST_GATHERED, MOST_PAIRS = 32, 2**27, 64
EVIDENCE_BYTES, PAIR_BYTES = 100, 800  # of the tests and results, for each candidate and for each pair of nodes
WHOLE = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)


@dataclass(frozen=True, eq=False)
class CandidateEdges:
    """The candidate sources of each node: one row per node (or several for a node with many), one slot per source.

    Rows are sorted by node, sources are sorted within a node, and each edge occurs once.

    >>> source, target = torch.tensor([[4, 1, 0, 2], [0, 0, 1, 3]])
    >>> candidates = CandidateEdges.from_edges(source, target, num_nodes=5)
    >>> candidates.sources.tolist()
    [[1, 4], [0, 1], [2, 2], [2, 3], [4, 4]]
    >>> candidates.used.sum(1).tolist()
    [2, 1, 0, 1, 0]
    >>> candidates.positions(source=torch.tensor([2, 2]), target=torch.tensor([3, 0])).tolist()
    [6, -1]
    """

    name: ClassVar[str] = "table"
    stored: ClassVar[tuple[str, ...]] = ("row_node", "sources", "used")  # names of the tensors in files
    longest_walk: ClassVar[int] = 1  # of :func:`~tacit.graph.nodes_reaching`: reached nodes are not listed

    num_nodes: int
    row_node: Int[Tensor, " row"]  # which node a row belongs to; arange(num_nodes) when every node has one row
    sources: Int[Tensor, "row slot"]  # the node in each slot; the row's own node where the slot is empty
    used: Bool[Tensor, "row slot"]  # false where a slot is empty

    def __post_init__(self) -> None:
        require_int("num_nodes", self.num_nodes)
        rows, sources, used = self.row_node, self.sources, self.used
        require(
            rows.ndim == 1 and sources.ndim == 2 and len(sources) == len(rows) and used.shape == sources.shape,
            "row_node, sources and used must have shapes (row,), (row, slot) and (row, slot), got "
            f"{tuple(rows.shape)}, {tuple(sources.shape)} and {tuple(used.shape)}; use CandidateEdges.from_edges",
        )
        steps = rows.diff()
        require(
            len(rows) > 0
            and bool((rows[0] == 0) & (rows[-1] == self.num_nodes - 1) & ((steps == 0) | (steps == 1)).all()),
            f"row_node must have each node from 0 to {self.num_nodes - 1}, in order; use CandidateEdges.from_edges",
        )
        require(
            bool((used | (sources == rows[:, None])).all()),
            "sources must contain the row's own node in empty slots; use CandidateEdges.from_edges",
        )
        source, target = self.edges()
        _require_nodes("sources", source, self.num_nodes)
        require(
            bool((_keys(source, target, self.num_nodes).diff() > 0).all()),
            "sources must ascend within a node, each once; use CandidateEdges.from_edges",
        )

    @classmethod
    def from_edges(cls, source: Int[Tensor, " edge"], target: Int[Tensor, " edge"], num_nodes: int) -> "CandidateEdges":
        """Build the table from edges in any order, each once; ``target`` reads ``source``."""
        require_int("num_nodes", num_nodes)
        _require_edges(source, target, num_nodes)
        keys = _keys(source, target, num_nodes).sort().values
        again = keys[1:] == keys[:-1]
        if again.any():
            end, start = divmod(int(keys[1:][again][0]), num_nodes)
            raise InputError(f"edge {start} -> {end} occurs twice; keep one of them")
        target, source = keys // num_nodes, keys % num_nodes
        del keys
        degree = torch.bincount(target, minlength=num_nodes)
        width = _width(degree)
        rows_of = _rows(degree, width)
        place = torch.arange(len(target), device=target.device) - _before(degree)[target]  # within its node
        row = _before(rows_of)[target] + place // width
        row_node = torch.arange(num_nodes, device=target.device).repeat_interleave(rows_of)
        sources = row_node[:, None].repeat(1, width)
        used = torch.zeros_like(sources, dtype=torch.bool)
        flat = row * width + place % width
        sources.view(-1)[flat] = source
        used.view(-1)[flat] = True
        return cls(num_nodes, row_node, sources, used)

    @classmethod
    def from_mask(cls, mask: EdgeMask) -> "CandidateEdges":
        """Build the table from a mask, true at [i, j] where node i may read node j."""
        require(
            isinstance(mask, Tensor) and mask.dtype == torch.bool and mask.ndim == 2 and len(mask) == mask.shape[1],
            "mask must be a square tensor of booleans; pass one true or false per ordered pair of nodes",
        )
        target, source = mask.nonzero().unbind(1)
        return cls.from_edges(source, target, len(mask))

    @property
    def num_edges(self) -> int:
        """Number of candidates that are used."""
        return int(self.used.sum())

    def edges(self) -> tuple[Int[Tensor, " edge"], Int[Tensor, " edge"]]:
        """Return source and target of each edge, in the order of the table: by target, then by source."""
        return self.sources[self.used], self.row_node.repeat_interleave(self.used.sum(1))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and slots."""
        rows, slots = self.sources.shape
        return rows, slots

    @property
    def num_candidates(self) -> int | None:
        """Number of candidates."""
        return self.num_edges

    @property
    def targets(self) -> Int[Tensor, "row slot"]:
        """The target of each slot."""
        return self.row_node[:, None].expand_as(self.sources)

    @property
    def between(self) -> EdgeMask:
        """Which slots link different nodes."""
        return self.used & (self.sources != self.targets)

    @property
    def evidence_bytes(self) -> int:
        """Memory of the tests of which edges exist."""
        return EVIDENCE_BYTES * self.num_edges

    @property
    def written_bytes(self) -> int:
        """Memory of the results that are written; less than that of a training."""
        return 0

    @property
    def words(self) -> str:
        """What a graph is over, for messages."""
        return f"{self.num_edges:,} candidates of {self.num_nodes:,} nodes"

    @property
    def smaller(self) -> str:
        """What a user can do for a smaller graph."""
        return "name fewer candidates"

    @property
    def others(self) -> "CandidateEdges":
        """The possible sources of each node, as a table."""
        return self

    def among(self, kept: EdgeMask) -> "CandidateEdges":
        """Return a table of the same shape in which only the candidates ``kept`` are used."""
        used = self.used & kept
        return replace(self, sources=torch.where(used, self.sources, self.row_node[:, None]), used=used)

    def ends(self, chosen: EdgeMask) -> tuple[Int[Tensor, " edge"], Int[Tensor, " edge"]]:
        """Return source and target of each chosen edge, in the order of ``chosen.nonzero()``."""
        row, slot = chosen.nonzero().unbind(1)
        return self.sources.to(chosen.device)[row, slot], self.row_node.to(chosen.device)[row]

    def index(self, nodes: Sequence[str], *, symmetric: bool = False) -> EdgeIndex:
        """Return the index of the edges, in the order of the table; a table has no symmetric graphs."""
        source, target = (ends.cpu().numpy() for ends in self.edges())
        return EdgeIndex(source, target, tuple(nodes), tuple(nodes), symmetric)

    def vector(self, values: Shaped[Tensor, "row slot"]) -> Shaped[np.ndarray, " edge"]:
        """Return numbers in the layout of the table as a vector over the index."""
        found: np.ndarray = values.detach().cpu()[self.used.cpu()].numpy()
        return found

    def placed(self, values: Shaped[np.ndarray, " edge"], fill: float = 0) -> Shaped[Tensor, "row slot"]:
        """Return a vector over the index in the layout of the table, with ``fill`` in empty slots."""
        found = torch.from_numpy(np.array(values))
        table = torch.full(self.used.shape, fill, dtype=found.dtype)
        table[self.used.cpu()] = found
        return table

    def entries(self, places: Int[Tensor, " edge"]) -> Int[Tensor, " edge"]:
        """Return flat positions in the table of edges given as target * number of nodes + source."""
        return self.positions(places % self.num_nodes, places // self.num_nodes)

    def in_matrix(self, values: Tensor, fill: float = 0.0, axis: int = 0) -> Tensor:
        """Return values with one entry per slot, axes ``axis`` and the next, with one entry per pair of nodes.

        >>> table = CandidateEdges.from_edges(torch.tensor([1, 2]), torch.tensor([0, 0]), num_nodes=3)
        >>> table.in_matrix(torch.tensor([[0.2, 0.3], [0.0, 0.0], [0.0, 0.0]]), fill=-1).tolist()[0]
        [-1.0, 0.20000000298023224, 0.30000001192092896]
        """
        size, device = self.num_nodes, values.device
        source, target = self.to(device).edges()
        listed = values.flatten(axis, axis + 1).index_select(axis, self.used.flatten().nonzero()[:, 0].to(device))
        before, after = listed.shape[:axis], listed.shape[axis + 1 :]
        full = listed.new_full((*before, size * size, *after), fill)
        return full.index_copy(axis, target * size + source, listed).view(*before, size, size, *after)

    def from_table(self, values: Tensor, table: "CandidateEdges") -> Tensor:
        """Return values over the table :attr:`others` or :meth:`among`, which have this layout."""
        del table
        return values

    def to_table(self, values: Tensor, table: "CandidateEdges", fill: float = 0.0) -> Tensor:
        """Return values over the table :attr:`others` or :meth:`among`, which have this layout."""
        del table, fill
        return values

    def most_pairs(self, num_graphs: int, *, local: bool) -> int:
        """Return how many pairs can share a pass of a predictor, which gathers numbers for each pair and graph.

        ``local``  whether it gathers per node; a predictor with two or more hops gathers per slot
        """
        gathered = num_graphs * GATHERED * (self.num_nodes if local else self.sources.numel())
        return max(1, min(MOST_PAIRS, MOST_GATHERED // gathered))

    def positions(self, source: Int[Tensor, " edge"], target: Int[Tensor, " edge"]) -> Int[Tensor, " edge"]:
        """Return the flat position of each edge in the table (row times width plus slot), -1 for edges not in it.

        A call scans the whole table once, so pass many edges together.
        """
        _require_edges(source, target, self.num_nodes)
        known, flat = _keys(*self.edges(), self.num_nodes), self.used.flatten().nonzero()[:, 0]
        if not len(known):
            return torch.full_like(source, -1, dtype=torch.long)
        wanted = _keys(source, target, self.num_nodes)
        found = torch.searchsorted(known, wanted).clamp_max(len(known) - 1)
        return torch.where(known[found] == wanted, flat[found], -1)

    def to_mask(self) -> EdgeMask:
        """Return a mask, true at [i, j] where node i may read node j; for small graphs, since it has every pair."""
        size = (self.num_nodes, self.num_nodes)
        what = f"a mask of {self.num_nodes:,} x {self.num_nodes:,} nodes"
        require_memory(self.num_nodes**2, self.sources.device, what, "keep the table of candidates")
        source, target = self.edges()
        mask = torch.zeros(size, dtype=torch.bool, device=self.sources.device)
        mask[target, source] = True
        return mask

    def to(self, device: torch.device | str) -> "CandidateEdges":
        """Return the same table on a device."""
        if self.sources.device == torch.device(device):
            return self
        return CandidateEdges(self.num_nodes, self.row_node.to(device), self.sources.to(device), self.used.to(device))


def _width(degree: Int[Tensor, " node"]) -> int:
    """Return the cheapest width of the table among the nodes' numbers of candidates and the powers of two.

    A power of two near the mean is one of the options, which bounds the size of the table.
    """
    nodes = torch.bincount(degree).cpu()  # number of nodes by number of candidates
    sizes = nodes.nonzero()[:, 0]
    most = max(int(sizes[-1]), 1)
    widths = {1 << power for power in range(most.bit_length())} | {size for size in sizes.tolist() if size}
    rows = {width: int((_rows(sizes, width) * nodes[sizes]).sum()) for width in sorted(widths)}
    return min(rows, key=lambda width: rows[width] * (width + ROW_COST))


def _rows(degree: Int[Tensor, " size"], width: int) -> Int[Tensor, " size"]:
    """Return the number of rows that each node needs for its candidates; a node without candidates has one row."""
    return ((degree + width - 1) // width).clamp_min(1)


def _before(counts: Int[Tensor, " node"]) -> Int[Tensor, " node"]:
    """Return the cumulative sum of the counts before each entry."""
    return counts.cumsum(0) - counts


def _keys(source: Int[Tensor, " edge"], target: Int[Tensor, " edge"], num_nodes: int) -> Int[Tensor, " edge"]:
    """Return one number per edge that orders edges by target, then by source."""
    return target.long() * num_nodes + source.long()


def _require_edges(source: Int[Tensor, " edge"], target: Int[Tensor, " edge"], num_nodes: int) -> None:
    _require_nodes("source", source, num_nodes)
    _require_nodes("target", target, num_nodes)
    require(
        len(source) == len(target),
        f"source and target must have equal length, got {len(source)} and {len(target)}; pass one node per edge",
    )


def _require_nodes(name: str, nodes: Int[Tensor, " edge"], num_nodes: int) -> None:
    require(
        isinstance(nodes, Tensor) and nodes.ndim == 1 and nodes.dtype in WHOLE,
        f"{name} must be a tensor of integers, one per edge; use torch.as_tensor(nodes)",
    )
    nodes = nodes.long()  # a small integer type could overflow
    outside = (nodes < 0) | (nodes >= num_nodes)
    if outside.any():
        edge = int(outside.nonzero()[0])
        raise InputError(
            f"{name} must have nodes from 0 to {num_nodes - 1}, got {int(nodes[edge])} for edge {edge}; correct it"
        )


class AllPairs(CandidateEdges):
    """A matrix over all ordered pairs of nodes.

    >>> pairs = AllPairs(2)
    >>> pairs.sources.tolist(), pairs.targets.tolist(), pairs.num_candidates
    ([[0, 1], [0, 1]], [[0, 0], [1, 1]], None)
    """

    name = "matrix"
    stored = ()
    longest_walk = sys.maxsize

    def __init__(self, num_nodes: int, device: torch.device | str = "cpu") -> None:
        nodes, used = torch.arange(num_nodes, device=device), torch.ones((), dtype=torch.bool, device=device)
        super().__init__(num_nodes, nodes, nodes.expand(num_nodes, -1), used.expand(num_nodes, num_nodes))

    def __post_init__(self) -> None:
        """Check nothing: the table is always valid."""

    def to(self, device: torch.device | str) -> "AllPairs":
        """Return the same layout on a device."""
        return AllPairs(self.num_nodes, device)

    @property
    def num_candidates(self) -> int | None:
        """None: nobody named candidates."""
        return None

    @property
    def evidence_bytes(self) -> int:
        """Memory of the tests of which edges exist."""
        return PAIR_BYTES * self.num_nodes**2

    @property
    def written_bytes(self) -> int:
        """Memory of the results that are written."""
        return PAIR_BYTES * self.num_nodes**2

    @property
    def words(self) -> str:
        """What a graph is over, for messages."""
        return f"all pairs of {self.num_nodes:,} nodes"

    @property
    def smaller(self) -> str:
        """What a user can do for a smaller graph."""
        return "limit the sources of each node (k_nearest, k_correlated or candidates in [graph])"

    @property
    def others(self) -> CandidateEdges:
        """The possible sources of each node besides itself, as a table."""
        return CandidateEdges.from_mask(self.between)

    def among(self, kept: EdgeMask) -> CandidateEdges:
        """Return the table of the edges ``kept`` between different nodes."""
        return CandidateEdges.from_mask(kept & self.between.to(kept.device))

    def index(self, nodes: Sequence[str], *, symmetric: bool = False) -> EdgeIndex:
        """Return the index of the edges, by target and then source."""
        return EdgeIndex.all_pairs(nodes, symmetric=symmetric)

    def entries(self, places: Int[Tensor, " edge"]) -> Int[Tensor, " edge"]:
        """Return flat positions of edges given as target * number of nodes + source: the same numbers."""
        return places

    def in_matrix(self, values: Tensor, fill: float = 0.0, axis: int = 0) -> Tensor:
        """Return the values, which have one entry per pair of nodes."""
        del fill, axis
        return values

    def from_table(self, values: Tensor, table: CandidateEdges) -> Tensor:
        """Return values over the table :attr:`others` or :meth:`among` as a matrix, 0 for other edges."""
        return table.in_matrix(values)

    def to_table(self, values: Tensor, table: CandidateEdges, fill: float = 0.0) -> Tensor:
        """Return a matrix over the table :attr:`others` or :meth:`among`, with ``fill`` in empty slots."""
        source, target = table.edges()
        found = values.new_full((*table.shape, *values.shape[2:]), fill)
        found[table.used] = values[target, source]
        return found

    def most_pairs(self, num_graphs: int, *, local: bool) -> int:
        """Return that any number of pairs can share a pass of a predictor: nothing is gathered."""
        del num_graphs, local
        return sys.maxsize


Layout = CandidateEdges


def layout_of(num_nodes: int, candidates: CandidateEdges | None = None) -> Layout:
    """Return the layout of a graph with these candidates; None: all pairs of nodes are possible."""
    return AllPairs(num_nodes) if candidates is None else candidates

r"""Candidate edges as a table: one row per node, with one slot per node that it may read.

    node 0 may read 1 and 4             row_node   sources    used
    node 1 may read 0, 2, 3 and 4          0       1  4  0    yes yes no
    node 2 may read none                   1       0  2  3    yes yes yes
    ...                                    1       4  1  1    yes no  no
                                           2       2  2  2    no  no  no

A node with more candidates than the table has columns gets several rows, so that one hub does not widen all rows. With
$E$ edges and $N$ nodes the table has at most $3E + 10N$ slots, and $E$ slots if all nodes have equally many candidates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from tacit.edges import EdgeIndex
from tacit.errors import InputError, require, require_int
from tacit.graph.footprint import require_memory
from tacit.shapes import EdgeMask

# Cost of a row beside its candidates, in units of one candidate: storing its node, and adding its sum to those of the
# node's other rows. Any small number works; with 0, a table of one column would always be the smallest.
ROW_COST = 8
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

    def among(self, kept: Bool[Tensor, "row slot"]) -> "CandidateEdges":
        """Return a table of the same shape in which only the candidates ``kept`` are used."""
        used = self.used & kept
        return replace(self, sources=torch.where(used, self.sources, self.row_node[:, None]), used=used)

    @property
    def num_edges(self) -> int:
        """Number of candidates that are used."""
        return int(self.used.sum())

    def edges(self) -> tuple[Int[Tensor, " edge"], Int[Tensor, " edge"]]:
        """Return source and target of each edge, in the order of the table: by target, then by source."""
        return self.sources[self.used], self.row_node.repeat_interleave(self.used.sum(1))

    def index(self, nodes: Sequence[str]) -> EdgeIndex:
        """Return the index of the edges, in the order of the table."""
        source, target = (ends.cpu().numpy() for ends in self.edges())
        return EdgeIndex(source, target, tuple(nodes), tuple(nodes))

    def placed(self, values: Shaped[np.ndarray, " edge"], fill: float = 0) -> Shaped[Tensor, "row slot"]:
        """Return a vector over the index in the layout of the table, with ``fill`` in empty slots."""
        found = torch.from_numpy(np.array(values))
        table = torch.full(self.used.shape, fill, dtype=found.dtype)
        table[self.used.cpu()] = found
        return table

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

r"""Candidate edges as a table, operations over it, which nodes can read which, and memory estimates.

Candidate edges as a table: one row per node, with one slot per node that it may read.

    node 0 may read 1 and 4             row_node   sources    used
    node 1 may read 0, 2, 3 and 4          0       1  4  0    yes yes no
    node 2 may read none                   1       0  2  3    yes yes yes
    ...                                    1       4  1  1    yes no  no
                                           2       2  2  2    no  no  no

A node with more candidates than the table has columns gets several rows, so that one hub does not widen all rows. With
$E$ edges and $N$ nodes the table has at most $3E + 10N$ slots, and $E$ slots if all nodes have equally many candidates.

Graphs over a table of candidate edges, with the operations of a matrix that predictors use.

$$(A m)_i = \sum_{k} A_{ik}\, m_{c(i, k)}$$

$c(i, k)$ is the node in slot $k$ of node $i$. Time and memory are proportional to the number of candidates, not to the
number of pairs of nodes. A predictor works with both matrices and tables if it uses only ``graphs @ messages``,
``graphs.sum(-1, keepdim=True)`` and ``graphs.diagonal(dim1=-2, dim2=-1)``.

Walks over a table of candidates: $1[A^l \neq 0]$ without a matrix $A$.

The $l$-th power is stored in a separate table of the nodes that can be reached by $l$ candidate edges. An entry is 1 if
there is any walk,

$$P^{(l)}_{ij} = 1\Big[ \sum_k P^{(l-1)}_{ik} A_{kj} > 0 \Big],$$

and the sum runs over the walks that the table allows, listed once. Their number is about edges times degree, so this is
for tables of a few million walks; a stack of convolutions adds up walks without listing them.

Memory estimates of a job, made before memory is allocated.

A training step uses a table of $R$ rows and $K$ columns, $S$ graphs for each of $D$ draws ($D$ is the batch size, or 1
if the batch shares its graphs), a batch of $B$ pairs, $N$ nodes, $C$ channels and $b$ bytes per number. It requires
about this many bytes:

$$17 R K + 8 b R K + (4 b + 1) D S R K + 2 b B R K C + 8 b B S N C$$

===================  =================================================================================================
$17 R K$             the table: a source (8 bytes) and a flag per slot, and a second index, as gathering keeps one
$8 b R K$            per edge: stored number, its gradient, Adam's two moments, two logarithms and their gradients
$(4 b + 1) D S R K$  per edge and graph: uniform, comparison with the probability, graph, and two products with the
                     weights of the score
$2 b B R K C$        the values of the sources, gathered for each slot, and their gradient
$8 b B S N C$        per node and graph: outputs, samples, differences to the target, costs, and their gradients
===================  =================================================================================================

The estimate is for one message-passing layer; measured peaks of 0.1 to 1.3 GB were 0.8 to 1.4 times the estimate.
"""

import functools
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from tacit.edges import EdgeIndex
from tacit.errors import InputError, require, require_int
from tacit.shapes import DrawCost, EdgeMask, Graphs, Samples

# Peak bytes per edge while a table is built from edges: both ends, their sorted keys, the order, place and row of each
# edge, and the table itself. Measured: 103 to 105 at 5 and 9 million edges.
EDGE_BYTES = 105


def step_bytes(
    *,
    rows: int,
    columns: int,
    num_graphs: int,
    draws: int,
    batch: int,
    nodes: int,
    channels: int,
    number_bytes: int = 4,
) -> int:
    """Return the bytes that a training step requires, by the sum in the module docstring.

    >>> step_bytes(rows=10_000, columns=50, num_graphs=16, draws=1, batch=32, nodes=10_000, channels=1) / 1e9
    0.45234
    """
    table = rows * columns
    edges = (17 + 8 * number_bytes) * table
    graphs = (4 * number_bytes + 1) * draws * num_graphs * table
    gathered = 2 * number_bytes * batch * table * channels
    values = 8 * number_bytes * batch * num_graphs * nodes * channels
    return edges + graphs + gathered + values


def free_bytes(device: torch.device | str = "cpu", root: Path = Path("/")) -> int | None:
    """Return the bytes that are still available on a device, or None if the system does not report them.

    On a CPU this is the kernel's available memory, or the remaining memory of a control group if that is less; both are
    read from files under ``root``. On a GPU it is the free memory plus the memory that torch has reserved but not used.
    """
    device = torch.device(device)
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + unused
    known = [size for size in (_available(root), *_left_in_groups(root)) if size is not None]
    return max(min(known), 0) if known else None


def require_memory(needed: int, device: torch.device | str, what: str, remedy: str) -> None:
    """Raise :class:`InputError` if ``needed`` exceeds the free bytes.

    >>> require_memory(520 * 10**15, "cpu", "a step over 10 edges", "use fewer graphs")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    tacit.errors.InputError: a step over 10 edges requires about 520,000,000 GB of memory, ... free; use fewer graphs
    """
    free = free_bytes(device)
    if free is not None and needed > free:
        where = f" on {device}" if torch.device(device).type != "cpu" else ""
        raise InputError(
            f"{what} requires about {size_in_words(needed)} of memory, but {size_in_words(free)} is free{where}; "
            f"{remedy}"
        )


def size_in_words(size: int) -> str:
    """Format a number of bytes with a readable unit.

    >>> size_in_words(520_400_000_000), size_in_words(2_340_000_000), size_in_words(1_200_000)
    ('520 GB', '2.3 GB', '2 MB')
    >>> size_in_words(10**400)
    '10^391 GB'
    """
    if size >= 10**18:
        return f"10^{math.floor(math.log10(size)) - 9} GB"
    if size >= 10**10:
        return f"{size / 1e9:,.0f} GB"
    return f"{size / 1e9:.1f} GB" if size >= 10**9 else f"{-(-size // 10**6)} MB"


def _available(root: Path) -> int | None:
    """Return the memory that Linux reports as available without swapping; on other systems, the total memory."""
    for line in _text(root / "proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    names = getattr(os, "sysconf_names", {})
    if root != Path("/") or "SC_PHYS_PAGES" not in names:
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _left_in_groups(root: Path) -> list[int]:
    """Return the remaining bytes of each control group of this process that has a limit (version 2, then 1)."""
    left = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, name = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        base = root / "sys/fs/cgroup" / controllers
        limit, used = (
            ("memory.limit_in_bytes", "memory.usage_in_bytes") if controllers else ("memory.max", "memory.current")
        )
        inside = base / name.lstrip("/")
        for group in (inside, *inside.parents):
            most, now = _text(group / limit).strip(), _text(group / used).strip()
            if most.isdigit() and now.isdigit():
                left.append(int(most) - int(now) + _reclaimable(group))
            if group == base:
                break
    return left


def _reclaimable(group: Path) -> int:
    """Return the bytes of the file cache that a group can release."""
    stats = dict(line.split() for line in _text(group / "memory.stat").splitlines() if len(line.split()) == 2)
    return int(stats.get("total_inactive_file", stats.get("inactive_file", 0)))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


# Cost of a row beside its candidates, in units of one candidate: storing its node, and adding its sum to those of the
# node's other rows. Any small number works; with 0, a table of one column would always be the smallest.
ROW_COST = 8
# A pass of a predictor gathers this many numbers per node or slot, and at most 2^27 (half a gigabyte) for all pairs.
GATHERED, MOST_GATHERED, MOST_PAIRS = 32, 2**27, 64
EVIDENCE_BYTES = 100  # of the tests, for each candidate
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
    longest_walk: ClassVar[int] = 1  # of :meth:`reaching`: reached nodes are not listed

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
    def num_candidates(self) -> int:
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

    def reaching(
        self, graphs: Float[Tensor, "graph row slot"], node: Int[Tensor, " graph"], num_steps: int
    ) -> Bool[Tensor, "graph node"]:
        """Return which nodes reach one node of each graph over at most ``num_steps`` edges, 0 or 1; itself included."""
        reaching = torch.zeros(len(node), self.num_nodes, dtype=torch.bool, device=node.device)
        reaching[torch.arange(len(node), device=node.device), node] = True
        if num_steps:
            graph, row, slot = (graphs > 0).nonzero(as_tuple=True)
            reads = self.sources[row, slot] == node[graph]
            reaching[graph[reads], self.row_node[row[reads]]] = True
        return reaching

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
        power = walks_over(power.candidates, graphs.candidates).follow(power, graphs)
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

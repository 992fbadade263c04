"""Layouts of tensors with a number per edge: a matrix of all pairs of nodes, or a table of candidates.

A tensor has the axes (row, slot). In a matrix row $i$, slot $j$ is the edge from node $j$ to node $i$. In a table
(:class:`~tacit.graph.candidate_edges.CandidateEdges`) slots are candidates, and some are empty. Both layouts have the
attributes and methods of :class:`AllPairs`, so only this folder knows which of them a graph has.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from tacit.edges import EdgeIndex
from tacit.graph.candidate_edges import CandidateEdges, reachability
from tacit.shapes import EdgeMask

PAIR_BYTES = 800  # of the tests and of the results, for each pair of nodes


@dataclass(frozen=True)
class AllPairs:
    """A matrix over all ordered pairs of nodes.

    >>> pairs = AllPairs(2)
    >>> pairs.sources.tolist(), pairs.targets.tolist()
    ([[0, 1], [0, 1]], [[0, 0], [1, 1]])
    """

    num_nodes: int
    device: torch.device | str = "cpu"
    name: ClassVar[str] = "matrix"
    stored: ClassVar[tuple[str, ...]] = ()
    num_candidates: ClassVar[int | None] = None
    longest_walk: ClassVar[int] = sys.maxsize

    def to(self, device: torch.device | str) -> "AllPairs":
        """Return the same layout on a device."""
        return AllPairs(self.num_nodes, device)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and slots."""
        return self.num_nodes, self.num_nodes

    @property
    def row_node(self) -> Int[Tensor, " row"]:
        """The node of each row."""
        return torch.arange(self.num_nodes, device=self.device)

    @property
    def sources(self) -> Int[Tensor, "row slot"]:
        """The source in each slot."""
        return self.row_node.expand(self.shape)

    @property
    def targets(self) -> Int[Tensor, "row slot"]:
        """The target of each slot."""
        return self.row_node[:, None].expand(self.shape)

    @property
    def used(self) -> Bool[Tensor, "row slot"]:
        """Which slots are not empty."""
        return torch.ones(self.shape, dtype=torch.bool, device=self.device)

    @property
    def between(self) -> EdgeMask:
        """Which slots link different nodes."""
        return ~torch.eye(self.num_nodes, dtype=torch.bool, device=self.device)

    @property
    def others(self) -> CandidateEdges:
        """The possible sources of each node besides itself, as a table."""
        return CandidateEdges.from_mask(self.between)

    def ends(self, chosen: EdgeMask) -> tuple[Int[Tensor, " edge"], Int[Tensor, " edge"]]:
        """Return source and target of each chosen edge, in the order of ``chosen.nonzero()``."""
        target, source = chosen.nonzero().unbind(1)
        return source, target

    def index(self, nodes: Sequence[str], *, symmetric: bool = False) -> EdgeIndex:
        """Return the index of the edges, by target and then source."""
        return EdgeIndex.all_pairs(nodes, symmetric=symmetric)

    def vector(self, values: Shaped[Tensor, "row slot"]) -> Shaped[np.ndarray, " edge"]:
        """Return numbers in this layout as a vector over the index."""
        found: np.ndarray = values.detach().cpu().flatten().numpy()
        return found

    def placed(self, values: Shaped[np.ndarray, " edge"], fill: float = 0) -> Shaped[Tensor, "row slot"]:
        """Return a vector over the index in this layout, with ``fill`` in empty slots."""
        del fill
        return torch.from_numpy(np.array(values)).view(self.shape)

    def entries(self, places: Int[Tensor, " edge"]) -> Int[Tensor, " edge"]:
        """Return flat positions in this layout of edges given as target * number of nodes + source."""
        return places

    def in_matrix(self, values: Tensor, fill: float = 0.0, axis: int = 0) -> Tensor:
        """Return values with one entry per slot, axes ``axis`` and the next, with one entry per pair of nodes."""
        del fill, axis
        return values

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

    def among(self, kept: EdgeMask) -> CandidateEdges:
        """Return the table of the edges ``kept`` between different nodes."""
        return CandidateEdges.from_mask(kept & self.between)

    def from_table(self, values: Tensor, table: CandidateEdges) -> Tensor:
        """Return values over the table :attr:`others` or :meth:`among` in this layout, 0 for other edges."""
        return table.in_matrix(values)

    def to_table(self, values: Tensor, table: CandidateEdges, fill: float = 0.0) -> Tensor:
        """Return values in this layout over the table :attr:`others` or :meth:`among`, ``fill`` in empty slots."""
        source, target = table.edges()
        found = values.new_full((*table.shape, *values.shape[2:]), fill)
        found[table.used] = values[target, source]
        return found

    def reaching(
        self, graphs: Float[Tensor, "graph row slot"], node: Int[Tensor, " graph"], num_steps: int
    ) -> Bool[Tensor, "graph node"]:
        """Return which nodes reach one node of each graph over at most ``num_steps`` edges, itself included."""
        return reachability(graphs[None], num_steps)[0, torch.arange(len(node), device=node.device), :, node] > 0

    def most_pairs(self, num_graphs: int, *, local: bool) -> int:
        """Return how many pairs can share a pass of a predictor, as far as the layout limits it."""
        del num_graphs, local
        return sys.maxsize


Layout = AllPairs | CandidateEdges


def layout_of(num_nodes: int, candidates: CandidateEdges | None = None) -> Layout:
    """Return the layout of a graph with these candidates; None: all pairs of nodes are possible."""
    return AllPairs(num_nodes) if candidates is None else candidates

"""Nodes by name or by number, and edges between them, written as (source, target)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor

from tacit.errors import InputError, did_you_mean, require
from tacit.graph.candidate_edges import CandidateEdges
from tacit.shapes import EdgeMask

Node = int | str
Edge = tuple[Node, Node]  # (source, target)
Places = Int[Tensor, " edge"]  # flat positions of edges in a matrix: target * number of nodes + source
NAMED = 5  # number of isolated nodes that a message names


@dataclass(frozen=True)
class NamedNodes:
    """The names of the nodes of a graph, in order.

    >>> nodes = NamedNodes(("a", "b", "c"))
    >>> nodes.place("required", ("c", "a")), nodes.edge(2, 0)
    ((0, 2), "'c -> a'")
    """

    names: tuple[str, ...]
    symmetric: bool = False

    def __post_init__(self) -> None:
        require_names(self.names)

    def edge(self, source: int, target: int) -> str:
        """Return an edge as text: ``'a -> b'``, or ``'a -- b'`` without a direction."""
        return f"'{self.names[source]} {'--' if self.symmetric else '->'} {self.names[target]}'"

    def number(self, argument: str, node: Node) -> int:
        """Return the number of a node; ``argument`` is the name used in error messages."""
        if isinstance(node, str):
            if node not in self._numbers:
                raise InputError(f"{argument} names unknown node '{node}'{did_you_mean(node, self.names)}")
            return self._numbers[node]
        require(
            isinstance(node, int) and not isinstance(node, bool) and 0 <= node < len(self.names),
            f"{argument} must be nodes by name or by number from 0 to {len(self.names) - 1}, got {node!r}; correct it",
        )
        return node

    def place(self, argument: str, edge: Edge) -> tuple[int, int]:
        """Return row and column of an edge in a graph: (target, source)."""
        require(
            isinstance(edge, tuple) and len(edge) == 2,
            f"{argument} must be edges as (source, target), got {edge!r}; pass for example (0, 1)",
        )
        source, target = (self.number(argument, node) for node in edge)
        return target, source

    def places(self, argument: str, edges: Collection[Edge] | EdgeMask | CandidateEdges) -> Places:
        """Return the flat position of each edge, sorted and without duplicates; undirected edges have two positions.

        >>> NamedNodes(("a", "b", "c")).places("required", {("c", "a"), ("a", "b")}).tolist()
        [2, 3]
        """
        count = len(self.names)
        if isinstance(edges, CandidateEdges):
            require(
                edges.num_nodes == count,
                f"{argument} must be a table of {count} nodes, got one of {edges.num_nodes}; make it for these nodes",
            )
            source, target = (ends.cpu() for ends in edges.edges())
        elif isinstance(edges, Tensor):
            require(
                edges.dtype == torch.bool and tuple(edges.shape) == (count, count),
                f"{argument} must be a mask of booleans of shape {(count, count)}, got {edges.dtype} of "
                f"{tuple(edges.shape)}; pass one true or false per ordered pair of nodes",
            )
            target, source = edges.cpu().nonzero().unbind(1)
        else:
            require(
                isinstance(edges, Collection) and not isinstance(edges, str),
                f"{argument} must be a set of edges (source, target), got {edges!r}; pass for example {{(0, 1)}}",
            )
            ends = [self.place(argument, edge) for edge in edges]
            target, source = torch.tensor(ends, dtype=torch.long).view(-1, 2).unbind(1)
        found = target * count + source
        places: Places = torch.unique(torch.cat([found, source * count + target]) if self.symmetric else found)
        return places

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}


def require_names(names: Sequence[str]) -> None:
    """Raise :class:`InputError` unless the names of the nodes are distinct strings."""
    require(
        isinstance(names, tuple | list) and len(names) > 0 and all(isinstance(name, str) and name for name in names),
        f"nodes must be a tuple of names, got {names!r}; pass for example ('a', 'b')",
    )
    seen: set[str] = set()
    for name in names:
        require(name not in seen, f"nodes must have names that differ, got '{name}' twice; rename one")
        seen.add(name)


def isolated_nodes(candidates: CandidateEdges, nodes: tuple[str, ...]) -> str:
    """Return text that names the nodes without a candidate edge to or from another node; "" if there are none."""
    source, target = candidates.edges()
    linked = torch.zeros(candidates.num_nodes, dtype=torch.bool, device=source.device)
    for ends in (source, target):
        linked[ends[source != target]] = True
    alone = (~linked).nonzero()[:, 0]
    names = [repr(nodes[node]) for node in alone[:NAMED].tolist()]
    more = ", ..." if len(alone) > NAMED else ""
    return f"{len(alone):,} of {candidates.num_nodes:,} nodes ({', '.join(names)}{more})" if names else ""

"""The index of edges: every result about edges is a vector over it.

Row $e$ is the edge from ``source[e]`` to ``target[e]``. How a graph stores its edges, as a matrix of all pairs or as a
table of candidates, is known to :mod:`tacit.graph` only, which converts there and back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Int, Shaped

from tacit.errors import require

Places = Int[np.ndarray, " edge"]
Values = Shaped[np.ndarray, " edge"]
Mask = Bool[np.ndarray, " edge"]


@dataclass(frozen=True, eq=False)
class EdgeIndex:
    """Sources and targets of edges as places in two lists of names, which may differ.

    ``symmetric``  edges have no direction; both entries of a pair are in the index and have the same values

    >>> index = EdgeIndex.all_pairs(("a", "b"))
    >>> index.source.tolist(), index.target.tolist()
    ([0, 1, 0, 1], [0, 0, 1, 1])
    >>> index.vector(np.array([[0.0, 0.5], [0.25, 0.0]])).tolist()
    [0.0, 0.5, 0.25, 0.0]
    >>> index.dense(np.arange(4)).tolist(), index.into(1).tolist()
    ([[0, 1], [2, 3]], [2, 3])
    """

    source: Places
    target: Places
    source_names: tuple[str, ...]
    target_names: tuple[str, ...]
    symmetric: bool = False

    @classmethod
    def all_pairs(cls, names: Sequence[str], *, symmetric: bool = False) -> "EdgeIndex":
        """Return the index of all ordered pairs of nodes, by target and then source."""
        target, source = np.indices((len(names), len(names))).reshape(2, -1)
        return cls(source, target, tuple(names), tuple(names), symmetric)

    def __len__(self) -> int:
        return len(self.source)

    @property
    def has_all_pairs(self) -> bool:
        """Whether every pair of a source and a target is in the index."""
        return len(self) == len(self.source_names) * len(self.target_names)

    @property
    def between(self) -> Mask:
        """The edges that link different nodes."""
        return np.asarray(self.source != self.target)

    @cached_property
    def once(self) -> Mask:
        """One entry of each pair without direction; all edges of a directed index."""
        return np.asarray(self.source <= self.target) if self.symmetric else np.ones(len(self), dtype=bool)

    def dense(self, values: Values, fill: Any = 0) -> Shaped[np.ndarray, "target source"]:
        """Return values of edges as a matrix, with ``fill`` where there is no edge."""
        matrix = np.full((len(self.target_names), len(self.source_names)), fill, dtype=values.dtype)
        matrix[self.target, self.source] = values
        return matrix

    def vector(self, matrix: Shaped[np.ndarray, "target source"]) -> Values:
        """Return the entries of a matrix that are edges."""
        found: Values = matrix[self.target, self.source]
        return found

    def into(self, node: int) -> Places:
        """Return the places of the edges into a node."""
        return np.flatnonzero(self.target == node)

    def find(self, source: Int[np.ndarray, " some"], target: Int[np.ndarray, " some"]) -> Int[np.ndarray, " some"]:
        """Return the places of edges by their ends; -1 for edges that are not in the index.

        >>> EdgeIndex.all_pairs("ab").at(np.array([1, 3])).find(np.array([1, 0]), np.array([1, 0])).tolist()
        [1, -1]
        """
        if not len(self) or not len(source):
            return np.full(len(source), -1)
        wanted = target.astype(np.int64) * len(self.source_names) + source
        order, keys = self._sorted
        place = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
        return np.where(keys[place] == wanted, order[place], -1)

    @cached_property
    def _sorted(self) -> tuple[Places, Places]:
        keys = self.target.astype(np.int64) * len(self.source_names) + self.source
        order = np.argsort(keys, kind="stable")
        return order, keys[order]

    @cached_property
    def reverse(self) -> Places:
        """The place of the opposite direction of each edge; -1 if it is not in the index."""
        return self.find(self.target, self.source)

    def mirrored(self, values: Values, fill: Any = 0) -> Values:
        """Return the values of the opposite directions, with ``fill`` where there is none."""
        if values.dtype == bool and not values.any() and not fill:
            return values
        if len(self) and self.reverse.min() >= 0:
            return np.asarray(values[self.reverse])
        return np.where(self.reverse >= 0, values[self.reverse], fill).astype(values.dtype) if len(self) else values

    def moved(self, values: Values, to: "EdgeIndex", fill: Any = 0) -> Shaped[np.ndarray, " other"]:
        """Return values of edges over another index of the same nodes, with ``fill`` for edges that are not in this."""
        if to is self:
            return values
        place = self.find(to.source, to.target)
        found = np.full(len(to), fill, dtype=values.dtype)
        found[place >= 0] = values[place[place >= 0]]
        return found

    def at(self, places: Any) -> "EdgeIndex":
        """Return the index of the edges at some places."""
        return EdgeIndex(self.source[places], self.target[places], self.source_names, self.target_names, self.symmetric)

    def ends(self) -> tuple[Shaped[np.ndarray, " edge"], Shaped[np.ndarray, " edge"]]:
        """Return the names of source and target of each edge."""
        sources, targets = (np.array(names, dtype=object) for names in (self.source_names, self.target_names))
        return sources[self.source], targets[self.target]

    def require_all_pairs(self, what: str, most: int) -> None:
        """Refuse a table of candidates."""
        require(
            self.has_all_pairs,
            f"{what} requires at most {most} nodes, for which all pairs are kept, got {len(self.target_names):,}; "
            "use edges_, which lists the candidates",
        )

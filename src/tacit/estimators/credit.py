r"""Credit: which rows of the graph answer for which part of the loss.

A mean of node losses has a cost $w_i$ per node. All of it may be credited to every edge (global), or, when the
predictor is local with $L$ hops, only to the edges that could have changed node $i$'s output: $A_{jk}$ can do that
only when $j$ is reached from $i$ over at most $L - 1$ edges. Whether $j$ is reached does not depend on $A_{jk}$
itself, so that the gradient stays exact, with far less variance.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tacit.errors import require
from tacit.graph import walks_within
from tacit.shapes import Cost, DrawCost, Graphs, RowWeights


@runtime_checkable
class Credit(Protocol):
    """The call that the score function makes."""

    def __call__(self, advantage: Cost, graphs: Graphs) -> RowWeights:
        """Return what multiplies the log-probability of each row (last axis 1: the same for all rows)."""
        ...


@dataclass(frozen=True)
class GlobalCredit:
    """Every edge answers for the whole loss; right for any predictor."""

    def __call__(self, advantage: Cost, graphs: Graphs) -> RowWeights:
        """Return the mean advantage over units, the same for every row."""
        return _per_draw(advantage, graphs).mean(-1, keepdim=True)


@dataclass(frozen=True)
class ReceptiveFieldCredit:
    """A row answers for the nodes that reach it; right for a local predictor and a node-scope loss."""

    num_hops: int

    def __post_init__(self) -> None:
        require(self.num_hops >= 1, f"num_hops needs to be at least 1, got {self.num_hops}; raise num_hops")

    def __call__(self, advantage: Cost, graphs: Graphs) -> RowWeights:
        r"""Return $\tfrac1N \sum_i w_i\, 1[j \text{ within } L-1 \text{ edges of } i]$ for each row $j$."""
        weight = _per_draw(advantage, graphs)  # (draw, graph, node)
        if self.num_hops == 1:
            return weight / weight.shape[-1]
        walks = walks_within(graphs, self.num_hops - 1)
        # Every node reaches itself, once: by a walk or without one. (A maximum with the identity is slower.)
        from_others = (weight[..., None, :] @ walks)[..., 0, :]
        itself = weight * (1 - walks.diagonal(dim1=-2, dim2=-1))
        return (from_others + itself) / weight.shape[-1]


@dataclass(frozen=True)
class OwnRowCredit:
    """A row answers for its own node alone: what literature 2 does. Exact for one hop, biased for more."""

    def __call__(self, advantage: Cost, graphs: Graphs) -> RowWeights:
        r"""Return $w_j / N$ for each row $j$."""
        weight = _per_draw(advantage, graphs)
        return weight / weight.shape[-1]


def _per_draw(advantage: Cost, graphs: Graphs) -> DrawCost:
    """Average over the pairs that share their graphs: (draw, graph, unit)."""
    return advantage.mean(0, keepdim=True) if graphs.shape[0] == 1 else advantage

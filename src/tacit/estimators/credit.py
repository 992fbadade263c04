r"""Credit: which part of the loss is assigned to which edges of the graph.

A mean of node losses has a cost $w_i$ per node. All of it may be credited to every edge (global). If the predictor is
local with $L$ hops, the cost of node $i$ may be credited only to the edges that can change its output: $A_{jk}$ can do
so only if $j$ is reached from $i$ over at most $L - 1$ edges. Whether $j$ is reached does not depend on $A_{jk}$
itself, so the gradient remains exact, with far less variance.

In a symmetric graph $A_{jk} = A_{kj}$ is one random variable in two rows. It is credited, once, with every node that
reaches $j$ or $k$ over at most $L - 1$ edges. A shortest path to the nearer of the two does not use the edge between
them, so this does not depend on $A_{jk}$ either. With $R_{ij} = 1$ if $j$ is reached from $i$, the weight is

$$\tfrac1N \sum_i w_i \max(R_{ij}, R_{ik}) = \tfrac1N \sum_i w_i (R_{ij} + R_{ik} - R_{ij} R_{ik})$$

Over a table of candidates a row has the weight of its node. For two hops, the costs of the nodes that read $j$ are
added along the edges; more than two hops are not supported, because the reached nodes would have to be listed.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from tacit.errors import require
from tacit.graph import AnyGraphs, weight_within_reach
from tacit.shapes import Cost, DrawCost, EdgeWeights


@runtime_checkable
class Credit(Protocol):
    """Interface of credit assignment.

    ``num_hops``  the locality that it assumes of the predictor; None if it is valid for any predictor
    """

    @property
    def num_hops(self) -> int | None:
        """See above."""
        ...

    def __call__(self, advantage: Cost, graphs: AnyGraphs, *, symmetric: bool = False) -> EdgeWeights:
        """Return the weight of each edge's log-probability (an axis of size 1 applies to all rows or sources).

        ``symmetric``  the two entries of a pair are one edge; such graphs are matrices
        """
        ...


@dataclass(frozen=True)
class GlobalCredit:
    """Global credit: every edge is credited with the total loss; exact for any predictor."""

    num_hops: ClassVar[int | None] = None

    def __call__(self, advantage: Cost, graphs: AnyGraphs, *, symmetric: bool = False) -> EdgeWeights:
        """Return the mean advantage over units, the same for every edge."""
        del symmetric
        return _per_draw(advantage, graphs).mean(-1, keepdim=True)[..., None]


@dataclass(frozen=True)
class ReceptiveFieldCredit:
    """Credit by receptive field: a row is credited with the nodes that reach it; exact for a local predictor."""

    num_hops: int

    def __post_init__(self) -> None:
        require(self.num_hops >= 1, f"num_hops must be at least 1, got {self.num_hops}; raise num_hops")

    def __call__(self, advantage: Cost, graphs: AnyGraphs, *, symmetric: bool = False) -> EdgeWeights:
        r"""Return $\tfrac1N \sum_i w_i\, 1[j \text{ within } L-1 \text{ edges of } i]$ for all edges of row $j$."""
        weight = _per_draw(advantage, graphs)  # (draw, graph, node)
        return weight_within_reach(graphs, weight, self.num_hops - 1, symmetric=symmetric) / weight.shape[-1]


@dataclass(frozen=True)
class OwnRowCredit:
    """Own-row credit, "literature 2": a row is credited only with its own node. Exact for one hop, biased for more."""

    num_hops: ClassVar[int | None] = None

    def __call__(self, advantage: Cost, graphs: AnyGraphs, *, symmetric: bool = False) -> EdgeWeights:
        r"""Return $w_j / N$ for the edges of each row $j$; $(w_j + w_k) / N$ for a symmetric pair."""
        weight = _per_draw(advantage, graphs)
        return weight_within_reach(graphs, weight, 0, symmetric=symmetric) / weight.shape[-1]


def _per_draw(advantage: Cost, graphs: AnyGraphs) -> DrawCost:
    """Average over the pairs that share their graphs: (draw, graph, unit)."""
    return advantage.mean(0, keepdim=True) if graphs.shape[0] == 1 else advantage

"""Candidates: of all edges, the few that are worth learning, as a table (:class:`Slots`) or as a mask for small graphs.

The ways to get them leave self-loops out; :func:`with_self_loops` adds one for every node.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.errors import InputError, require_whole
from tacit.graph.correlated import correlated_slots
from tacit.graph.footprint import EDGE_BYTES, require_memory
from tacit.graph.nearest import Metric, nearest_slots
from tacit.graph.slots import Slots
from tacit.shapes import EdgeMask

NAMED = 5  # so many nodes are named in a message, and the others are counted


def nearest_candidates(coordinates: Float[Tensor, "node dimension"], k: int, *, metric: Metric) -> EdgeMask:
    """Return :func:`nearest_slots` as a mask, true at [i, j] where node i may read node j.

    >>> places = torch.tensor([[0.0, 0.0], [0.0, 179.0], [0.0, -179.0]])  # two of them meet at the date line
    >>> nearest_candidates(places, 1, metric="great_circle").nonzero()[1:].tolist()
    [[1, 2], [2, 1]]
    """
    return nearest_slots(coordinates, k, metric=metric).to_mask()


def correlated_candidates(series: Float[Tensor, "time node"], k: int, *, lag: int = 1) -> EdgeMask:
    """Return :func:`correlated_slots` as a mask, true at [i, j] where node i may read node j."""
    return correlated_slots(series, k, lag=lag).to_mask()


def all_slots(num_nodes: int, *, self_loops: bool = False) -> Slots:
    """Let each node read all others, and itself with ``self_loops``; refused where memory does not hold all pairs.

    >>> all_slots(3).senders.tolist()
    [[1, 2], [0, 2], [0, 1]]
    """
    require_whole("num_nodes", num_nodes)
    count = num_nodes * (num_nodes if self_loops else num_nodes - 1)
    require_memory(
        EDGE_BYTES * count,
        "cpu",
        f"a table of {count:,} candidate edges, all pairs of {num_nodes:,} nodes,",
        "use fewer (k nearest, k most correlated, or a file)",
    )
    target = torch.arange(num_nodes).repeat_interleave(num_nodes)
    source = torch.arange(num_nodes).repeat(num_nodes)
    kept = torch.ones_like(source, dtype=torch.bool) if self_loops else source != target
    return Slots.from_edges(source[kept], target[kept], num_nodes)


def with_self_loops(slots: Slots) -> Slots:
    """Return the candidates with (i, i) for every node.

    >>> with_self_loops(all_slots(2)).senders.tolist()
    [[0, 1], [0, 1]]
    """
    loops = torch.arange(slots.num_nodes, device=slots.senders.device)
    return _with_edges(slots, loops, loops)


def with_reversed(slots: Slots) -> Slots:
    """Return the candidates with (j, i) for every (i, j), as a graph without directions needs them."""
    source, target = slots.edges()
    return _with_edges(slots, target, source)


def require_linked(slots: Slots, nodes: Sequence[str] | None = None, where: str = "candidates") -> None:
    """Raise :class:`InputError` if a node neither reads another nor is read by one; ``nodes`` are the names.

    >>> require_linked(Slots.from_edges(torch.tensor([0]), torch.tensor([1]), num_nodes=4))
    Traceback (most recent call last):
    ...
    tacit.errors.InputError: candidates has no edge for 2 of 4 nodes (2, 3), so that nothing can be learned of them; add
    edges, leave the nodes out of the data, or allow it by allow_isolated=True
    """
    alone = isolated(slots, nodes)
    if alone:
        raise InputError(
            f"{where} has no edge for {alone}, so that nothing can be learned of them; add edges, leave the "
            "nodes out of the data, or allow it by allow_isolated=True"
        )


def isolated(slots: Slots, nodes: Sequence[str] | None = None) -> str:
    """Return in words which nodes neither read another nor are read by one; nothing where there are none.

    >>> isolated(Slots.from_edges(torch.tensor([0]), torch.tensor([1]), num_nodes=4))
    '2 of 4 nodes (2, 3)'
    """
    source, target = slots.edges()
    linked = torch.zeros(slots.num_nodes, dtype=torch.bool, device=source.device)
    for ends in (source, target):
        linked[ends[source != target]] = True
    alone = (~linked).nonzero()[:, 0]
    names = [repr(nodes[node]) if nodes is not None else str(node) for node in alone[:NAMED].tolist()]
    more = ", ..." if len(alone) > NAMED else ""
    return f"{len(alone):,} of {slots.num_nodes:,} nodes ({', '.join(names)}{more})" if names else ""


def _with_edges(slots: Slots, source: Tensor, target: Tensor) -> Slots:
    """Return the candidates with more edges, those that are not among them yet."""
    new = slots.positions(source, target) < 0
    known_source, known_target = slots.edges()
    return Slots.from_edges(
        torch.cat([known_source, source[new]]), torch.cat([known_target, target[new]]), slots.num_nodes
    )

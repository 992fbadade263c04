"""A check of the declared locality of a predictor: flip edges that must have no effect."""

import torch
from jaxtyping import Bool
from torch import Generator, Tensor, nn

from tacit.errors import InputError
from tacit.estimators.flips import Flips, flip_edges
from tacit.graph import GraphDistribution, reachability


def check_locality(
    predictor: nn.Module, graph: GraphDistribution, in_channels: int, num_hops: int, *, generator: Generator
) -> None:
    """Raise :class:`InputError` if flipping an edge changes a node that it cannot reach in ``num_hops`` hops.

    The output of every node that does not reach the flipped row within ``num_hops - 1`` edges must not change. If no
    flip changes the output, that is an error as well, because the check would have no power.
    """
    flips = flip_edges(predictor, graph, in_channels, generator=generator)
    name = type(predictor).__name__
    if not bool(torch.isfinite(flips.change).all() and flips.change.max() > 0):
        raise InputError(
            "credit by receptive field requires a predictor that depends on the graph, but no edge changed the output "
            f'of {name} for random inputs; check it, or use credit="global"'
        )
    broken = flips.changed & ~_reaching(flips, graph, num_hops - 1)
    if broken.any():
        trial, node = (int(i) for i in broken.nonzero()[0])
        edge = f"[{int(flips.node[trial])}, {_source(flips, graph, trial)}]"
        raise InputError(
            f"credit by receptive field requires a local predictor, but {name} declares "
            f"num_hops={num_hops} and its output"
            f" at node {node} changed with edge {edge}, which is out of reach; "
            'use credit="global", or correct num_hops'
        )


def _reaching(flips: Flips, graph: GraphDistribution, num_steps: int) -> Bool[Tensor, "flip node"]:
    """Return which nodes reach the flipped row over at most ``num_steps`` edges; at most one over a table."""
    if graph.candidates is None:
        return reachability(flips.graphs[None], num_steps)[0, flips.trials, :, flips.row] > 0
    reaching = torch.zeros(len(flips.row), graph.num_nodes, dtype=torch.bool, device=flips.row.device)
    reaching[flips.trials, flips.node] = True
    if num_steps:
        trial, row, slot = (flips.graphs > 0).nonzero(as_tuple=True)
        reads = graph.candidates.sources[row, slot] == flips.node[trial]
        reaching[trial[reads], graph.candidates.row_node[row[reads]]] = True
    return reaching


def _source(flips: Flips, graph: GraphDistribution, trial: int) -> int:
    column = int(flips.column[trial])
    return column if graph.candidates is None else int(graph.candidates.sources[int(flips.row[trial]), column])

"""Does a predictor keep its promise of locality? Flip edges that must not matter and look."""

import torch
from torch import Generator, nn

from tacit.errors import InputError
from tacit.estimators.flips import flip_edges
from tacit.graph import reachability


def check_locality(
    predictor: nn.Module, num_nodes: int, in_channels: int, num_hops: int, *, generator: Generator
) -> None:
    """Raise :class:`InputError` if flipping an edge changes a node that it cannot reach in ``num_hops`` hops.

    The output of every node that does not reach the flipped row within ``num_hops - 1`` edges must stay the same.
    A predictor whose output no flip changes is refused too: it would pass without showing anything.
    """
    flips = flip_edges(predictor, num_nodes, in_channels, generator=generator)
    name = type(predictor).__name__
    if not bool(torch.isfinite(flips.change).all() and flips.change.max() > 0):
        raise InputError(
            "credit by receptive field needs a predictor that depends on the graph, but no edge changed the output "
            f'of {name} for random inputs; check it, or use credit="global"'
        )
    out_of_reach = reachability(flips.graphs[None], num_hops - 1)[0, flips.trials, :, flips.row] == 0  # (flip, node)
    broken = flips.changed & out_of_reach
    if broken.any():
        trial, node = (int(i) for i in broken.nonzero()[0])
        raise InputError(
            f"credit by receptive field needs a local predictor, but {name} declares num_hops={num_hops} and its output"
            f" at node {node} changed with edge [{int(flips.row[trial])}, {int(flips.column[trial])}], which is out of "
            'reach; use credit="global", or correct num_hops'
        )

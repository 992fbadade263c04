"""Does a predictor keep its promise of locality? Flip edges that must not matter and look."""

from collections.abc import Callable

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call

from tacit.errors import InputError
from tacit.graph import reachability
from tacit.predictors import initial_parameters

# Expected degrees of the graphs tried: sparse ones leave most nodes out of reach, in denser ones normalisations show.
DEGREES = (0.5, 1.5, 3.0)
FLIPS = 192
PAIRS = 3
TOLERANCE = 1e-4


@torch.no_grad()
def check_locality(
    predictor: nn.Module, num_nodes: int, in_channels: int, num_hops: int, *, generator: Generator
) -> None:
    """Raise :class:`InputError` if flipping an edge changes a node that it cannot reach in ``num_hops`` hops.

    Random inputs, fresh random parameters where the predictor has trainable ones, and in each trial one random graph
    and one random flip; the output of every node that does not reach the flipped row within ``num_hops - 1`` edges
    must stay the same. A predictor whose output no flip changes is refused too: it would pass without showing anything.
    """
    reference = next(predictor.parameters(), torch.zeros(()))
    device, dtype = reference.device, reference.dtype

    def draw(kind: Callable[..., Tensor], *shape: int) -> Tensor:
        return kind(shape, generator=generator, device=generator.device).to(device)

    degrees = torch.tensor(DEGREES, device=device).repeat_interleave(FLIPS // len(DEGREES))
    density = (degrees / num_nodes).clamp(max=0.9)[:, None, None]
    graphs = (draw(torch.rand, len(degrees), num_nodes, num_nodes) < density).to(dtype)  # (flip, node, node)
    row, column = ((draw(torch.rand, len(degrees)) * num_nodes).long().clamp(max=num_nodes - 1) for _ in range(2))
    inputs = draw(torch.randn, PAIRS, num_nodes, in_channels).to(dtype)
    trials = torch.arange(len(degrees), device=device)
    flipped = graphs.clone()
    flipped[trials, row, column] = 1 - flipped[trials, row, column]

    parameters = {k: v.to(device, dtype) for k, v in initial_parameters(predictor, generator).items()}
    before, after = (functional_call(predictor, parameters, (inputs, g[None])) for g in (graphs, flipped))
    change = (after - before).abs().amax((0, -1))  # (flip, node)
    name = type(predictor).__name__
    if not bool(torch.isfinite(change).all() and change.max() > 0):
        raise InputError(
            "credit by receptive field needs a predictor that depends on the graph, but no edge changed the output "
            f'of {name} for random inputs; check it, or use credit="global"'
        )
    out_of_reach = reachability(graphs[None], num_hops - 1)[0, trials, :, row] == 0  # (flip, node)
    broken = (change > TOLERANCE * before.abs().max().clamp_min(1e-3)) & out_of_reach
    if broken.any():
        trial, node = (int(i) for i in broken.nonzero()[0])
        raise InputError(
            f"credit by receptive field needs a local predictor, but {name} declares num_hops={num_hops} and its output"
            f" at node {node} changed with edge [{int(row[trial])}, {int(column[trial])}], which is out of reach; "
            'use credit="global", or correct num_hops'
        )

"""Does a predictor keep its promise of locality? Flip edges that must not matter and look."""

import torch
from torch import Generator, nn

from tacit.errors import InputError
from tacit.graph import reachability
from tacit.shapes import Inputs

# Expected degrees of the graphs tried: sparse ones leave most nodes out of reach, in denser ones normalisations show.
DEGREES = (0.5, 1.5, 3.0)
FLIPS = 192
TOLERANCE = 1e-4


@torch.no_grad()
def check_locality(predictor: nn.Module, inputs: Inputs, num_hops: int, *, generator: Generator) -> None:
    """Raise :class:`InputError` if flipping an edge changes a node that it cannot reach in ``num_hops`` hops.

    One random graph and one random flip per trial; the output of every node that does not reach the flipped row
    within ``num_hops - 1`` edges must stay the same.
    """
    num_nodes, device = inputs.shape[1], inputs.device
    degrees = torch.tensor(DEGREES, device=device).repeat_interleave(FLIPS // len(DEGREES))
    density = (degrees / num_nodes).clamp(max=0.9)[:, None, None]
    uniforms = torch.rand(len(degrees), num_nodes, num_nodes, generator=generator, device=generator.device)
    graphs = (uniforms.to(device) < density).to(inputs.dtype)  # (flip, node, node)
    row, column = (
        torch.randint(num_nodes, (len(degrees),), generator=generator, device=generator.device).to(device)
        for _ in range(2)
    )
    trials = torch.arange(len(degrees), device=device)
    flipped = graphs.clone()
    flipped[trials, row, column] = 1 - flipped[trials, row, column]

    before, after = predictor(inputs[:1], graphs[None]), predictor(inputs[:1], flipped[None])
    change = (after - before).abs().amax(-1)[0]  # (flip, node)
    out_of_reach = reachability(graphs[None], num_hops - 1)[0, trials, :, row] == 0  # (flip, node)
    broken = (change > TOLERANCE * before.abs().max().clamp_min(1e-3)) & out_of_reach
    if broken.any():
        trial, node = (int(i) for i in broken.nonzero()[0])
        raise InputError(
            f"credit by receptive field needs a local predictor, but {type(predictor).__name__} declares num_hops="
            f"{num_hops} and its output at node {node} changed with edge [{int(row[trial])}, {int(column[trial])}], "
            'which is out of reach; use credit="global", or correct num_hops'
        )

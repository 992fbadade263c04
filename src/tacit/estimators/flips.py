"""Flip single edges of random graphs and compare the predictions, to test the declared locality."""

import copy
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tacit.errors import require
from tacit.graph import GraphDistribution
from tacit.predictors import random_parameters
from tacit.shapes import Inputs

# Expected degrees of the random graphs: sparse graphs leave most nodes out of reach, dense ones reveal normalisations.
DEGREES = (0.5, 1.5, 3.0)
FLIPS = 192
MOST_ENTRIES = 2**24  # limit on the entries of all graphs: large graphs use fewer flips
PAIRS = 3
TOLERANCE = 1e-4


class Flips(NamedTuple):
    """One random graph and one flipped edge per trial.

    ``predictor``    the predictor with random values of its trainable parameters
    ``row, column``  the flipped edge of each graph: its row, and its column or slot
    ``node``         the node of that row
    ``before``       the output before the flips
    ``change``       the largest change at each node
    ``scale``        changes below ``TOLERANCE`` times this are rounding errors
    """

    predictor: nn.Module
    inputs: Inputs
    graphs: Float[Tensor, "flip row slot"]
    row: Int[Tensor, " flip"]
    column: Int[Tensor, " flip"]
    node: Int[Tensor, " flip"]
    before: Float[Tensor, "pair flip node channel"]
    change: Float[Tensor, "flip node"]
    scale: Float[Tensor, ""]

    @property
    def trials(self) -> Int[Tensor, " flip"]:
        """Indices of the trials."""
        return torch.arange(len(self.row), device=self.row.device)

    @property
    def changed(self) -> Tensor:
        """Mask of the nodes that changed by more than the rounding error: (flip, node)."""
        return self.change > TOLERANCE * self.scale


@torch.no_grad()
def flip_edges(predictor: nn.Module, graph: GraphDistribution, in_channels: int, *, generator: Generator) -> Flips:
    """Flip random edges of random graphs, with random inputs and random parameters."""
    reference = next(predictor.parameters(), torch.zeros(()))
    device, dtype = reference.device, reference.dtype

    def draw(kind: Callable[..., Tensor], *shape: int) -> Tensor:
        return kind(shape, generator=generator, device=generator.device).to(device)

    shape, candidates = torch.Size(graph.edge_shape), graph.candidates
    used = torch.ones(shape, dtype=torch.bool, device=device) if candidates is None else candidates.used
    require(bool(used.any()), "candidates must have at least one edge, got none; name some")
    each = max(1, min(FLIPS, MOST_ENTRIES // shape.numel()) // len(DEGREES))
    degrees = torch.tensor(DEGREES, device=device).repeat_interleave(each)
    density = (degrees * graph.num_nodes / used.sum()).clamp(max=0.9)[:, None, None]
    graphs = ((draw(torch.rand, len(degrees), *shape) < density) & used).to(dtype)  # (flip, row, slot)
    row, column = ((draw(torch.rand, len(degrees)) * most).long().clamp(max=most - 1) for most in shape)
    if candidates is not None:  # used slots only
        row, column = (part[(row * shape[1] + column) % int(used.sum())] for part in used.nonzero(as_tuple=True))
    inputs = draw(torch.randn, PAIRS, graph.num_nodes, in_channels).to(dtype)
    trials = torch.arange(len(degrees), device=device)
    flipped = graphs.clone()
    flipped[trials, row, column] = 1 - flipped[trials, row, column]

    fresh = copy.deepcopy(predictor)
    fresh.load_state_dict(random_parameters(predictor, generator), strict=False)
    before, after = (fresh(inputs, graph.as_operator(some[None])) for some in (graphs, flipped))
    change = (after - before).abs().amax((0, -1))
    node = row if candidates is None else candidates.row_node[row]
    return Flips(fresh, inputs, graphs, row, column, node, before, change, before.abs().max().clamp_min(1e-3))

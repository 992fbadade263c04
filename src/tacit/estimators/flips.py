"""Checks of what a predictor declares, by flips of single edges of random graphs.

Locality: flips of edges out of reach must not change the prediction of a node. A derivative for the graph: where a flip
changes a prediction, the derivative must not be 0.
"""

import copy
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tacit.errors import InputError, require
from tacit.graph import GraphDistribution, nodes_reaching
from tacit.predictors import random_parameters, relaxed_call
from tacit.shapes import Inputs

# Expected degrees of the random graphs: sparse graphs leave most nodes out of reach, dense ones reveal normalisations.
DEGREES = (0.5, 1.5, 3.0)
FLIPS = 192
MOST_ENTRIES = 2**24  # limit on the entries of all graphs: large graphs use fewer flips
PAIRS = 3
TOLERANCE = 1e-4
# Saturated units (ReLU) hide a few changes from the derivative; a threshold on the graph hides at least half of them.
HIDDEN_SHARE = 0.25
# The derivative is taken this far inside of 0 and 1: at 0 a ReLU without active neighbours has derivative 0.
INSIDE = 0.05
REMEDY = "or use estimator ScoreFunction() or DisARM()"


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

    shape, layout = torch.Size(graph.edge_shape), graph.layout.to(device)
    used = layout.used
    require(bool(used.any()), "candidates must have at least one edge, got none; name some")
    each = max(1, min(FLIPS, MOST_ENTRIES // shape.numel()) // len(DEGREES))
    degrees = torch.tensor(DEGREES, device=device).repeat_interleave(each)
    density = (degrees * graph.num_nodes / used.sum()).clamp(max=0.9)[:, None, None]
    graphs = ((draw(torch.rand, len(degrees), *shape) < density) & used).to(dtype)  # (flip, row, slot)
    row, column = ((draw(torch.rand, len(degrees)) * most).long().clamp(max=most - 1) for most in shape)
    # In a table of candidates only used slots; in a matrix these are the same row and column.
    row, column = (part[(row * shape[1] + column) % int(used.sum())] for part in used.nonzero(as_tuple=True))
    inputs = draw(torch.randn, PAIRS, graph.num_nodes, in_channels).to(dtype)
    trials = torch.arange(len(degrees), device=device)
    flipped = graphs.clone()
    flipped[trials, row, column] = 1 - flipped[trials, row, column]

    fresh = copy.deepcopy(predictor)
    fresh.load_state_dict(random_parameters(predictor, generator), strict=False)
    before, after = (fresh(inputs, graph.as_operator(some[None])) for some in (graphs, flipped))
    change = (after - before).abs().amax((0, -1))
    node = layout.row_node[row]
    return Flips(fresh, inputs, graphs, row, column, node, before, change, before.abs().max().clamp_min(1e-3))


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
    layout = graph.layout.to(flips.row.device)
    broken = flips.changed & ~nodes_reaching(layout, flips.graphs, flips.node, num_hops - 1)
    if broken.any():
        trial, node = (int(i) for i in broken.nonzero()[0])
        source = layout.sources[flips.row[trial], flips.column[trial]]
        edge = f"[{int(flips.node[trial])}, {int(source)}]"
        raise InputError(
            f"credit by receptive field requires a local predictor, but {name} declares num_hops={num_hops} and its "
            f'output at node {node} changed with edge {edge}, which is out of reach; use credit="global", or correct '
            "num_hops"
        )


@torch.enable_grad()
def check_relaxation(predictor: nn.Module, graph: GraphDistribution, in_channels: int, *, generator: Generator) -> None:
    """Raise :class:`InputError` unless the predictor's relaxed form agrees with it and has derivatives for the graph.

    Each trial selects one node that a flip changed, preferably not the flipped row itself, because derivatives are most
    easily lost along longer paths. Its derivative for the flipped edge must be nonzero in at least three quarters of
    the trials.
    """
    flips = flip_edges(predictor, graph, in_channels, generator=generator)
    name = type(predictor).__name__
    relaxed = relaxed_call(flips.predictor)
    gap = float((relaxed(flips.inputs, graph.as_operator(flips.graphs[None])) - flips.before).detach().abs().max())
    if not gap <= TOLERANCE * float(flips.scale):
        raise InputError(
            f"{name}.relaxed must equal {name} for graphs of 0 and 1, got a difference of {gap:.2g}; "
            f"correct it, {REMEDY}"
        )
    some = flips.changed.any(-1)
    if not bool(some.any()):
        raise InputError(
            "gradients through the graph require a predictor that depends on the graph, but no edge changed the "
            f"output of {name} for random inputs; check it"
        )
    others = torch.arange(graph.num_nodes, device=flips.row.device) != flips.node[:, None]
    chances = torch.rand(flips.changed.shape, generator=generator, device=generator.device).to(flips.row.device)
    node = ((chances + others) * flips.changed).argmax(-1)  # (flip): one of the nodes that changed
    graphs = (INSIDE + (1 - 2 * INSIDE) * flips.graphs).requires_grad_()
    chosen = relaxed(flips.inputs, graph.as_operator(graphs[None]))[:, flips.trials, node].sum()
    (slope,) = torch.autograd.grad(chosen, graphs, allow_unused=True) if chosen.requires_grad else (None,)
    at_flip = (torch.zeros_like(graphs) if slope is None else slope)[flips.trials, flips.row, flips.column]
    hidden = float(((at_flip == 0) & some).sum() / some.sum().clamp_min(1))
    if hidden > HIDDEN_SHARE:
        raise InputError(
            f"gradients through the graph require a predictor with derivatives for the graph, but {hidden:.0%} of the "
            f"changes that edges made in {name} had none; give it a method relaxed(inputs, graphs), {REMEDY}"
        )

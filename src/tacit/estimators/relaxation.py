"""Check that a predictor is differentiable in the graph: flip edges and compare the change with the derivative."""

import torch
from torch import Generator, nn

from tacit.errors import InputError
from tacit.estimators.flips import TOLERANCE, flip_edges
from tacit.graph import GraphDistribution
from tacit.predictors import relaxed_call

# Saturated units (ReLU) hide a few changes from the derivative; a threshold on the graph hides at least half of them.
HIDDEN_SHARE = 0.25
# The derivative is taken this far inside of 0 and 1: at 0 a ReLU without active neighbours has derivative 0.
INSIDE = 0.05
REMEDY = "or use estimator ScoreFunction() or DisARM()"


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

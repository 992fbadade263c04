"""Probabilities of regimes at 0 and 1, which training approaches ever slower."""

import copy
import math

import torch

from tacit.assessment.uncertainty import loss_difference
from tacit.data import Pairs
from tacit.graph import GraphDistribution, MixtureGraph
from tacit.training import LatentGraphModel

NEAR = (0.05, 0.03, 0.02, 0.01)  # distances from 0 and 1 that are tried, the largest first
BOUNDARY = 1e-6  # edges that were held at 0 or 1 are put so near to it


@torch.no_grad()
def put_at_boundary(model: LatentGraphModel, validation: Pairs) -> LatentGraphModel:
    """Return the model with probabilities near 0 or 1 put there: as far from it as the validation loss does not rise.

    Training approaches 0 and 1 ever slower. An edge that a regime never has still has 1 or 2% of it at the end, and a
    row of such edges is a mixture that the regimes do not have.
    """
    graph, nearest = model.graph, math.log((1 - BOUNDARY) / BOUNDARY)
    assert isinstance(graph, MixtureGraph)
    probs, logits = graph.regime_probs, graph.edge_logits.detach()
    for near in NEAR:
        at_end = graph.learned & ((probs < near) | (probs > 1 - near))
        moved = {"graph.edge_logits": torch.where(at_end, (2 * probs.round() - 1) * nearest, logits)}
        if at_end.any() and loss_difference(model, validation, moved, {}).mean <= 0:
            model.load_state_dict(moved, strict=False)
            break
    return model


def released(graph: MixtureGraph, constant: GraphDistribution) -> MixtureGraph:
    """Return the graph with the fixed edges of the constant fit: edges held at 0 or 1 are put next to it."""
    free = copy.deepcopy(graph)
    held = (graph.fixed & ~constant.fixed).expand_as(graph.edge_logits)
    nearest = math.log((1 - BOUNDARY) / BOUNDARY)
    with torch.no_grad():
        free.edge_logits[held] = (2 * graph.regime_probs[held] - 1) * nearest
        free.fixed.copy_(constant.fixed)
        free.fixed_probs.copy_(constant.fixed_probs)
    return free

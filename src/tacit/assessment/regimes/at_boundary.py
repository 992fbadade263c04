"""Edge probabilities of regimes at 0 and 1, which training approaches slowly."""

import copy
import math

import torch

from tacit.assessment.uncertainty import loss_difference
from tacit.data import Pairs
from tacit.graph import GraphDistribution, MixtureGraph
from tacit.training import LatentGraphModel

NEAR = (0.05, 0.03, 0.02, 0.01)  # tested distances from 0 and 1, the largest first
RISE = 2.0  # standard errors by which the validation loss may rise
BOUNDARY = 1e-6  # distance from 0 or 1 of edges that were fixed there


@torch.no_grad()
def put_at_boundary(model: LatentGraphModel, validation: Pairs) -> LatentGraphModel:
    """Set probabilities near 0 or 1 to 0 or 1, up to the largest distance that the validation loss permits.

    Training approaches 0 and 1 slowly. An edge that is absent from a regime still has a probability of 1 or 2% at the
    end, and a row with many such edges has a notable probability of some extra edge. As in a fit with constant edges, a
    distance is permitted if the validation loss rises by at most ``RISE`` standard errors.
    """
    graph, nearest = model.graph, math.log((1 - BOUNDARY) / BOUNDARY)
    assert isinstance(graph, MixtureGraph)
    probs, logits = graph.regime_probs, graph.edge_logits.detach()
    for near in NEAR:
        at_end = graph.learned & ((probs < near) | (probs > 1 - near))
        moved = {"graph.edge_logits": torch.where(at_end, (2 * probs.round() - 1) * nearest, logits)}
        if not at_end.any():
            break
        rise, error = loss_difference(model, validation, moved, {})
        if rise <= RISE * error:
            model.load_state_dict(moved, strict=False)
            break
    return model


def released(graph: MixtureGraph, constant: GraphDistribution) -> MixtureGraph:
    """Return the graph with the fixed edges of the constant fit; other edges fixed at 0 or 1 are moved next to it."""
    free = copy.deepcopy(graph)
    held = (graph.fixed & ~constant.fixed).expand_as(graph.edge_logits)
    nearest = math.log((1 - BOUNDARY) / BOUNDARY)
    with torch.no_grad():
        free.edge_logits[held] = (2 * graph.regime_probs[held] - 1) * nearest
        free.fixed.copy_(constant.fixed)
        free.fixed_probs.copy_(constant.fixed_probs)
    return free

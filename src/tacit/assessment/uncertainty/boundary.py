r"""Edges at the boundary: probabilities that are nearly 0 or 1.

A fit drives the probability of an edge that is not there towards 0, ever slower, and ends a little above; so do the
replicas of a bootstrap, all alike. Two things follow. What is left of many such edges, however little of each, bends
the others: those nearly at 0 or 1 that the validation pairs do not miss are put there, and held while the replicas
train. And the spread of replicas says nothing about them: they get the error that is usual inside the boundary, which
is about what it would be there, as neither curvature nor the spread of gradients vanishes at 0.
"""

import copy

import torch

from tacit.assessment.uncertainty.comparison import loss_difference
from tacit.data import Pairs
from tacit.shapes import EdgeMask, EdgeProbs
from tacit.training import LatentGraphModel

NEARLY = 0.01  # this near to 0 or 1 an edge is put there, unless the data contradict it
INTERIOR = 0.03  # a probability nearer to 0 or 1 than this is at the boundary
NOTHING_KNOWN = 0.5  # no probability has a larger deviation
MISSED = 2.0  # standard errors by which the validation loss rises


def interior_edges(edge_probs: EdgeProbs) -> EdgeMask:
    """Return which edges are well inside (0, 1)."""
    return (edge_probs > INTERIOR) & (edge_probs < 1 - INTERIOR)


def with_usual_errors(edge_probs: EdgeProbs, std_errors: EdgeProbs, learned: EdgeMask, num_pairs: int) -> EdgeProbs:
    r"""Return the errors, at the boundary no less than the median of those inside.

    Where no edge is inside, no less than that of someone who sees every graph, $\sqrt{\theta (1 - \theta) / n}$, with
    $\theta$ at the boundary.

    >>> probs, errors = torch.tensor([[0.5, 0.001], [0.4, 0.0]]), torch.tensor([[0.1, 0.001], [0.3, 0.0]])
    >>> with_usual_errors(probs, errors, torch.tensor([[True, True], [True, False]]), 100)
    tensor([[0.1000, 0.1000],
            [0.3000, 0.0000]])
    """
    inside = interior_edges(edge_probs)
    seen = std_errors[inside & learned & (std_errors < NOTHING_KNOWN)]
    usual = float(seen.median()) if len(seen) else (INTERIOR * (1 - INTERIOR) / num_pairs) ** 0.5
    return torch.where(learned & ~inside, std_errors.clamp_min(usual), std_errors)


@torch.no_grad()
def rounded_at_boundary(model: LatentGraphModel, validation: Pairs) -> LatentGraphModel:
    """Return a copy of the model whose edges nearly at 0 or 1 are fixed there, unless the validation loss rises."""
    graph, copied = model.graph, copy.deepcopy(model)
    probs = graph.edge_probs
    near = ~graph.fixed & ((probs < NEARLY) | (probs > 1 - NEARLY))
    if not near.any():
        return copied
    held = {"graph.fixed": graph.fixed | near}
    held["graph.fixed_probs"] = torch.where(near, probs.round(), graph.fixed_probs)
    rise, error = loss_difference(model, validation, held, {})
    if rise <= MISSED * error:
        copied.load_state_dict(held, strict=False)
    return copied

r"""Edges at the boundary: probabilities that are nearly 0 or 1.

A fit slowly drives the probability of an absent edge towards 0 and ends slightly above 0, and so do all replicas of a
bootstrap. This has two consequences. The remaining small probabilities of many absent edges bias the other edges.
Therefore probabilities near 0 or 1 are set to 0 or 1 and fixed during the replicas' training, unless the validation
loss rises. And the spread of replicas is not informative about these edges. Therefore they get the typical error of
edges inside the boundary, which is about right because neither the curvature nor the variance of gradients vanishes at
0.
"""

import copy

import torch

from tacit.assessment.uncertainty.comparison import loss_difference
from tacit.data import Pairs
from tacit.shapes import EdgeMask, EdgeProbs
from tacit.training import LatentGraphModel

NEARLY = 0.01  # distance from 0 or 1 within which an edge is set to it, unless the data contradict it
INTERIOR = 0.03  # a probability nearer to 0 or 1 than this is at the boundary
NOTHING_KNOWN = 0.5  # the largest possible standard deviation of a probability


def interior_edges(edge_probs: EdgeProbs) -> EdgeMask:
    """Return which edges are well inside (0, 1)."""
    return (edge_probs > INTERIOR) & (edge_probs < 1 - INTERIOR)


def with_usual_errors(edge_probs: EdgeProbs, std_errors: EdgeProbs, learned: EdgeMask, num_pairs: int) -> EdgeProbs:
    r"""Return the errors; at the boundary at least the median of those inside.

    If no edge is inside, at least the error of an observer of every graph, $\sqrt{\theta (1 - \theta) / n}$, with
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
    """Return a copy of the model with edges near 0 or 1 fixed there, unless the validation loss clearly rises."""
    graph, copied = model.graph, copy.deepcopy(model)
    probs = graph.edge_probs
    near = ~graph.fixed & ((probs < NEARLY) | (probs > 1 - NEARLY))
    if not near.any():
        return copied
    held = {"graph.fixed": graph.fixed | near}
    held["graph.fixed_probs"] = torch.where(near, probs.round(), graph.fixed_probs)
    if not loss_difference(model, validation, held, {}).clearly_higher:
        copied.load_state_dict(held, strict=False)
    return copied

"""Paired comparison of parameters, and edges at the boundary.

Edges at the boundary: probabilities that are nearly 0 or 1.

A fit slowly drives the probability of an absent edge towards 0 and ends slightly above 0, and so do all replicas of a
bootstrap. This has two consequences. The remaining small probabilities of many absent edges bias the other edges.
Therefore probabilities near 0 or 1 are set to 0 or 1 and fixed during the replicas' training, unless the validation
loss rises. And the spread of replicas is not informative about these edges. Therefore they get the typical error of
edges inside the boundary, which is about right because neither the curvature nor the variance of gradients vanishes at
0.
"""

import copy

import torch
from torch import Tensor

from tacit.data import Pairs
from tacit.local import CLEAR, Difference, paired_difference
from tacit.randomness import generator_for
from tacit.shapes import EdgeMask, EdgeProbs
from tacit.training import LatentGraphModel, pair_losses

State = dict[str, Tensor]


@torch.no_grad()
def loss_difference(model: LatentGraphModel, pairs: Pairs, one: State, other: State) -> Difference:
    """Return the mean loss of ``pairs`` with state ``one`` minus that with ``other``, and its standard error.

    States are parameters and buffers of the model by name; missing ones are those of the model. The penalty of a prior,
    which excludes fixed edges, is not included; the shrinkage of a graph is. Every pair has separate graphs.
    """
    (first, weights), (second, _) = (_losses(model, pairs, state) for state in (one, other))
    return paired_difference(first, second, weights)


@torch.no_grad()
def mean_loss(model: LatentGraphModel, pairs: Pairs, state: State) -> float:
    """Return the mean loss of ``pairs`` with a state, as in :func:`loss_difference`."""
    losses, weights = _losses(model, pairs, state)
    return float(losses.sum() / weights.sum())


@torch.no_grad()
def adopt(
    model: LatentGraphModel,
    parameters: dict[str, Tensor],
    validation: Pairs,
    *,
    worse: float = CLEAR,
    tolerance: float = 0.0,
) -> bool:
    """Set the model to these parameters unless its validation loss rises; return whether this was done.

    A rise must exceed both ``worse`` standard errors and a share ``tolerance`` of the loss.
    """
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(parameters, strict=False)
    after = {name: value.clone() for name, value in model.state_dict().items()}
    rise, error = loss_difference(model, validation, after, before)
    adopted = rise <= worse * error or (tolerance > 0 and rise <= tolerance * abs(mean_loss(model, validation, before)))
    model.load_state_dict(after if adopted else before)
    return adopted


def _losses(model: LatentGraphModel, pairs: Pairs, state: State) -> tuple[Tensor, Tensor]:
    judge = copy.deepcopy(model)
    judge.prior, judge.share_graphs = None, False
    given = {name: value for name, value in state.items() if not name.startswith("prior.")}
    return pair_losses(judge, given, pairs, generator=generator_for(0, "comparison", pairs.inputs.device))


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

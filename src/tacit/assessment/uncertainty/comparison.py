"""Paired comparison of two sets of parameters, by losses of the same pairs with the same random numbers."""

import copy

import torch
from torch import Tensor

from tacit.data import Pairs
from tacit.local import CLEAR, Difference, paired_difference
from tacit.randomness import generator_for
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

"""Is one set of parameters better than another? Losses of the same pairs under the same random numbers."""

import copy

import torch
from torch import Tensor

from tacit.data import Pairs
from tacit.randomness import generator_for
from tacit.training import Difference, LatentGraphModel, pair_losses, paired_difference

State = dict[str, Tensor]


@torch.no_grad()
def loss_difference(model: LatentGraphModel, pairs: Pairs, one: State, other: State) -> Difference:
    """Return how much higher the mean loss of ``pairs`` is with one state than with the other, and its standard error.

    States are parameters and buffers of the model by name; what they lack is taken from the model. The data alone
    decides: a prior's penalty, which leaves out fixed edges, does not count. Every pair has graphs of its own.
    """
    judge = copy.deepcopy(model)
    judge.prior, judge.share_graphs = None, False
    losses = []
    for state in (one, other):
        given = {name: value for name, value in state.items() if not name.startswith("prior.")}
        generator = generator_for(0, "comparison", pairs.inputs.device)
        losses.append(pair_losses(judge, given, pairs, generator=generator))
    (first, weights), (second, _) = losses
    return paired_difference(first, second, weights)

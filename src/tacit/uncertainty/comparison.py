"""Is one set of parameters better than another? Losses of the same pairs under the same random numbers."""

import torch
from torch import Tensor
from torch.func import functional_call

from tacit.data import Pairs
from tacit.data.pairs import covering_batches
from tacit.randomness import draw_uniforms, generator_for
from tacit.training import LatentGraphModel

CHUNK = 128
State = dict[str, Tensor]


@torch.no_grad()
def loss_difference(model: LatentGraphModel, pairs: Pairs, one: State, other: State) -> tuple[float, float]:
    """Return how much higher the mean loss of ``pairs`` is with one state than with the other, and its standard error.

    States are parameters and buffers of the model by name; what they lack is taken from the model.
    """
    size, device = min(CHUNK, len(pairs)), pairs.inputs.device
    generator, parts = generator_for(0, "comparison", device), []
    for rows, new in covering_batches(len(pairs), size):
        batch = pairs[rows.to(device)]
        uniforms = draw_uniforms(*model.uniforms_shape(size), generator=generator, dtype=pairs.inputs.dtype)
        given = (batch.inputs, batch.targets, uniforms, batch.observed)
        first, second = (functional_call(model, state, given)[1][0][:new] for state in (one, other))
        parts.append(first - second)
    differences = torch.cat(parts).double()
    deviation = differences.std() if len(differences) > 1 else differences.new_zeros(())
    return float(differences.mean()), float(deviation / len(differences) ** 0.5)

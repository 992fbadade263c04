"""The residual standard deviation of a model."""

import torch

from tacit.assessment.uncertainty.sandwich import some_pairs
from tacit.data import Pairs
from tacit.graph import Context
from tacit.randomness import generator_for
from tacit.training import LatentGraphModel

RESIDUAL_PAIRS, RESIDUAL_GRAPHS = 512, 64


@torch.no_grad()
def residual_deviation(model: LatentGraphModel, train: Pairs, seed: int = 0) -> float:
    r"""Return $\sigma$, the root mean square of $y - E\,\hat y$, from some of the pairs; above 0."""
    some = some_pairs(train, RESIDUAL_PAIRS, 1)
    generator = generator_for(seed, "residual", train.inputs.device)
    described = model.outputs(some.inputs, RESIDUAL_GRAPHS, generator=generator, context=Context.of(some))
    left = some.targets - model.observation.mean(described).mean(1)
    seen = torch.ones_like(left) if some.observed is None else some.observed
    squares = torch.where(seen > 0, left, 0.0).square().sum() / seen.sum().clamp_min(1)
    return float(squares.sqrt().clamp_min(torch.finfo(torch.float32).eps))

"""Units: the parts a loss is made of, one per node or one for the whole output, and what of them was observed."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.shapes import Observed, UnitLoss

Scope = Literal["node", "joint"]


def unit_mean(values: Float[Tensor, "..."], scope: Scope, observed: Observed | None) -> Float[Tensor, "..."]:
    """Average (batch, ..., node, channel) over what each unit observes: (batch, ..., unit); 0 where that is nothing."""
    axes = (-1,) if scope == "node" else (-2, -1)
    if observed is None:
        means = values.mean(axes)
    else:
        seen = _aligned(observed, values)
        means = (values * seen).sum(axes) / seen.sum(axes).clamp_min(1)
    return means if scope == "node" else means[..., None]


def unit_counts(observed: Observed, scope: Scope) -> UnitLoss:
    """Return how many numbers each unit of a pair observes: (batch, unit)."""
    counts = observed.sum(-1)
    return counts if scope == "node" else counts.sum(-1, keepdim=True)


def unit_weights(observed: Observed, scope: Scope, *, by_count: bool) -> UnitLoss:
    """Return weights of mean 1 that share out a batch among its units.

    By count every observed number weighs the same; otherwise every unit that observes anything does.
    """
    counts = unit_counts(observed, scope)
    weights = counts if by_count else (counts > 0).to(counts.dtype)
    return weights / weights.mean().clamp_min(torch.finfo(weights.dtype).tiny)


def _aligned(observed: Observed, values: Tensor) -> Tensor:
    """Insert the axes that values have between batch and node."""
    return observed.view(len(observed), *[1] * (values.ndim - 3), *observed.shape[1:])

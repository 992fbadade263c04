"""Units of a loss, one per node or one for the whole output, and their means over the observed targets."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.errors import InputError, did_you_mean
from tacit.shapes import Observed, UnitLoss

Scope = Literal["node", "joint"]


def require_one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    """Raise :class:`InputError` with a suggestion unless ``value`` is a known word."""
    if value not in known:
        near = did_you_mean(str(value), known)
        hint = near if "did you mean" in near else f"; use '{known[0]}'"
        raise InputError(f"{name} must be one of {', '.join(known)}, got '{value}'{hint}")


def unit_mean(values: Float[Tensor, "..."], scope: Scope, observed: Observed | None) -> Float[Tensor, "..."]:
    """Average (batch, ..., node, channel) over the observed values of each unit, 0 if there are none."""
    axes = (-1,) if scope == "node" else (-2, -1)
    if observed is None:
        means = values.mean(axes)
    else:
        seen = _aligned(observed, values)
        means = torch.where(seen > 0, values, 0.0).sum(axes) / seen.sum(axes).clamp_min(1)
    return means if scope == "node" else means[..., None]


def unit_counts(observed: Observed, scope: Scope) -> UnitLoss:
    """Return the number of observed values of each unit of a pair: (batch, unit)."""
    counts = observed.sum(-1)
    return counts if scope == "node" else counts.sum(-1, keepdim=True)


def unit_weights(observed: Observed, scope: Scope, *, by_count: bool) -> UnitLoss:
    """Return the weight of each unit of a pair: 1 if all of its values are observed, 0 if none is.

    With ``by_count`` the weight is the share of observed values; otherwise it is 1 if any value is observed.
    """
    counts = unit_counts(observed, scope)
    size = observed.shape[-1] if scope == "node" else observed.shape[-1] * observed.shape[-2]
    return counts / size if by_count else (counts > 0).to(counts.dtype)


def _aligned(observed: Observed, values: Tensor) -> Tensor:
    """Insert the axes that values have between batch and node."""
    return observed.view(len(observed), *[1] * (values.ndim - 3), *observed.shape[1:])

"""Checks of the arguments of this folder's functions."""

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.errors import InputError, require
from tacit.shapes import EdgeMask, EdgeProbs

ReplicaProbs = Float[Tensor, "replica node node"]

# Means over replicas need not be summed in the same order in both entries of a pair.
ROUNDING = 1e-6


def learned_edges(edge_probs: ReplicaProbs | EdgeProbs, learned: EdgeMask | None) -> EdgeMask:
    """Return ``learned``, or a mask of all edges if it is None."""
    shape = tuple(edge_probs.shape[-2:])
    if learned is None:
        return torch.ones(shape, dtype=torch.bool, device=edge_probs.device)
    require_mask("learned", learned, edge_probs)
    return learned.to(edge_probs.device)


def distinct_edges(name: str, edge_probs: EdgeProbs, learned: EdgeMask | None, symmetric: bool) -> EdgeMask:
    """Return the learned edges, in a symmetric graph without those of i > j; ``name`` is used in error messages."""
    mask = learned_edges(edge_probs, learned)
    if not symmetric:
        return mask
    for argument, values in ((name, edge_probs), ("learned", mask)):
        differs = ((values.double() - values.mT.double()).abs() > ROUNDING).nonzero().tolist()
        require(
            not differs,
            f"{argument} must equal its transpose in a symmetric graph, got two values for the pair at "
            f"{differs[:1]}; leave symmetric out",
        )
    return mask.triu()


def checked_errors(std_errors: EdgeProbs, edge_probs: EdgeProbs, places: EdgeMask) -> Tensor:
    """Return the standard errors of the edges at ``places``; infinite values are allowed and mean unknown."""
    require(
        isinstance(std_errors, Tensor) and std_errors.shape == edge_probs.shape,
        f"std_errors must have the shape of edge_probs, {tuple(edge_probs.shape)}, got "
        f"{tuple(getattr(std_errors, 'shape', ())) or type(std_errors).__name__}; pass those of the same edges",
    )
    errors = std_errors.detach().to(edge_probs.device).double()[places]
    wrong = errors[~(errors >= 0)]
    require(
        len(wrong) == 0,
        f"std_errors must be at least 0 for each learned edge, got {wrong[:1].tolist()} for {len(wrong)}; mark those "
        "edges in identifiable or learned as false",
    )
    return errors


def require_share(name: str, value: object, example: float) -> None:
    """Raise :class:`InputError` unless ``value`` is a number strictly between 0 and 1."""
    require(
        isinstance(value, int | float) and 0 < value < 1,
        f"{name} must be a number between 0 and 1, got {value!r}; pass for example {example}",
    )


def require_mask(name: str, mask: EdgeMask, edge_probs: ReplicaProbs | EdgeProbs) -> None:
    """Raise :class:`InputError` unless ``mask`` has one true or false per edge."""
    shape = tuple(edge_probs.shape[-2:])
    require(
        isinstance(mask, Tensor) and mask.dtype == torch.bool and tuple(mask.shape) == shape,
        f"{name} must be a tensor of booleans of shape {shape}, got {getattr(mask, 'dtype', type(mask).__name__)} of "
        f"{tuple(getattr(mask, 'shape', ()))}; pass one true or false per ordered pair of nodes",
    )


def require_probabilities(name: str, values: Tensor, num_axes: int = 2) -> None:
    """Raise :class:`InputError` unless ``values`` are probabilities of the edges of a graph, or of each replica."""
    axes = "(replica, node, node)" if num_axes == 3 else "(node, node)"
    shape = tuple(getattr(values, "shape", ()))
    require(
        isinstance(values, Tensor) and values.is_floating_point() and len(shape) == num_axes and shape[-1] == shape[-2],
        f"{name} must be a tensor of floats {axes}, got {getattr(values, 'dtype', type(values).__name__)} of {shape}; "
        "pass one probability per ordered pair of nodes",
    )
    outside = ~((values >= 0) & (values <= 1))
    if outside.any():
        place = outside.nonzero()[0].tolist()
        value = values[tuple(place)].item()
        raise InputError(f"{name} must have values in [0, 1], got {value} at {place}; leave out fits that broke down")

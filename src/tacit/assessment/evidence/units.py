"""The units of an edge list: directed edges, pairs of nodes whose direction is open, and groups of copied sources."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.assessment.evidence.copies import first_members
from tacit.assessment.evidence.within_step import undirected_pairs

SAME = 1e-5  # difference below which two directions are equally likely: files have six digits
Exists = Float[Tensor, "row slot"]


@dataclass(frozen=True, eq=False)
class EdgeUnits:
    """The edges that can be listed, each once.

    ``values``      the probability ``exists``; for an undirected pair that of either direction, in one of its two
                    entries, and 0 in the other; for a group of copies that of any member, in the entry of the first,
                    and 0 in the others
    ``undirected``  the entry that represents each undirected pair: the one with the smaller lag, else the likelier one
    ``other``       the other entries of these pairs and groups, which are not separate edges
    """

    values: Exists
    undirected: Bool[Tensor, "row slot"]
    other: Bool[Tensor, "row slot"]


def edge_units(
    exists: Exists,
    either: Exists | None,
    directions: Int[Tensor, "row slot"] | None,
    lag: Exists | None = None,
    groups: Int[Tensor, "row slot"] | None = None,
) -> EdgeUnits:
    """Return the edges of a fit; without effects within a step and groups (None) every entry is an edge.

    A fit has groups of copies, which are numbered in each row, or effects within a step, not both.

    >>> exists, either = torch.tensor([[0.0, 0.5], [0.4, 0.0]]), torch.full((2, 2), 0.9)
    >>> units = edge_units(exists, either, torch.full((2, 2), 4))  # the direction is open
    >>> units.values.tolist(), units.other.tolist()
    ([[0.0, 0.8999999761581421], [0.0, 0.0]], [[False, False], [True, False]])
    >>> edge_units(exists, either, None, groups=torch.tensor([[0, 0], [1, 1]])).values.tolist()
    [[0.0, 0.5], [0.8999999761581421, 0.0]]
    """
    if either is not None and groups is not None:
        first = first_members(groups)
        other = (groups > 0) & ~first
        values = torch.where(first, either.to(exists), exists).masked_fill(other, 0.0)
        return EdgeUnits(values, torch.zeros_like(other), other)
    if either is None or directions is None:
        none = torch.zeros_like(exists, dtype=torch.bool)
        return EdgeUnits(exists, none, none)
    pairs = undirected_pairs(directions)  # above the diagonal
    below = exists.mT > exists + SAME
    if lag is not None:  # the model has the effect within the step in one of the directions
        lag = lag.nan_to_num(torch.inf)
        below = (lag.mT < lag) | ((lag.mT == lag) & below)
    below = pairs & below
    undirected = (pairs & ~below) | below.mT
    values = torch.where(undirected, either.to(exists), exists).masked_fill(undirected.mT, 0.0)
    return EdgeUnits(values, undirected, undirected.mT)

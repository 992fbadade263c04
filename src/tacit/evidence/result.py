"""What the evidence stage finds out about every edge, whatever method found it."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Evidence:
    """Whether each edge is needed at all, and what it does where it is there.

    ``exists``  probability that the edge is needed: (node, node), rows receive; over a table of candidates (row, slot)
    ``effect``  of the same shape: signed, in deviations of the target per deviation of the source
    ``prior``   what was believed before the data, for the record
    ``method``  "regression" or "model"
    ``notes``   sentences for the user
    """

    exists: Tensor
    effect: Tensor
    prior: dict[str, float | str]
    method: str
    notes: tuple[str, ...]

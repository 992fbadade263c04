"""The result of the evidence stage: the probability that each edge exists, and the size of its effect."""

from dataclasses import dataclass, field

from jaxtyping import Float, Int
from torch import Tensor

from tacit.shapes import EdgeMask

KEEP = 0.1  # edges that exist with at least this probability are learned; the others are fixed at 0
EdgeNumbers = Float[Tensor, "row slot"]  # (node, node), rows are targets; over a table of candidates (row, slot)


def may_exist(exists: EdgeNumbers) -> EdgeMask:
    """Return the edges that may exist, including those with unknown probability (NaN)."""
    return ~(exists < KEEP)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The probability that each edge exists, given the data.

    ``exists``  0 for a forbidden edge, 1 for a required one
    ``effect``  signed and standardised: standard deviations of the target per standard deviation of the source
    ``prior``   the prior that was used, for the record
    ``method``  "regression" or "model"
    ``notes``   sentences for the user
    ``groups``  numbers of groups of copies in each row, 0 for other edges; None if there are none
    ``either``  the probability that any edge of a group exists, NaN for other edges
    """

    exists: EdgeNumbers
    effect: EdgeNumbers
    prior: dict[str, float | str]
    method: str
    notes: tuple[str, ...] = field(default=())
    groups: Int[Tensor, "row slot"] | None = None
    either: EdgeNumbers | None = None

    @property
    def kept(self) -> EdgeMask:
        """The edges that may exist: only these are learned."""
        return may_exist(self.exists)

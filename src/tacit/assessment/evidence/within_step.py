r"""What is found about effects within a step: which edges act at lag 0, and how their direction is known.

$$y_t = B_0\, y_t + \text{lagged part} + e_t$$
"""

from dataclasses import dataclass, field

from jaxtyping import Bool, Float, Int
from torch import Tensor

DIRECTIONS = ("", "time", "learned", "lagged parents", "open", "rule")
TIME = 1  # the edge acts after its step, if it exists: time gives the direction
LEARNED = 2  # from noise that is not Gaussian
LAGGED_PARENTS = 3  # from what the past of both nodes explains
OPEN = 4  # either direction fits the data
RULE = 5  # a rule requires the edge, or forbids the other direction within the step
NOT_GAUSSIAN = 0.01  # level of the test of Gaussian noise


@dataclass(frozen=True, eq=False)
class WithinStep:
    """Effects within a step; rows are targets, columns are sources.

    ``probs``       the probability that each edge acts within the step; ``lagged``  that it acts later
    ``either``      the probability that there is an edge in one direction or the other, at any lag; symmetric
    ``directions``  how the direction of an edge that may act within the step is known, a place in ``DIRECTIONS``:
                    ``OPEN`` for both directions of a pair, ``TIME`` where there is no such effect
    ``acyclic``     the edges within the step of the model that is fitted: a most likely graph without cycles
    ``gaussian``    the p-value of the test that all noise is Gaussian
    ``notes``       what the user has to know about it, in sentences
    """

    probs: Float[Tensor, "node node"]
    lagged: Float[Tensor, "node node"]
    either: Float[Tensor, "node node"]
    directions: Int[Tensor, "node node"]
    acyclic: Bool[Tensor, "node node"]
    gaussian: float
    notes: tuple[str, ...] = field(default=())

    @property
    def not_gaussian(self) -> bool:
        """Does the test reject Gaussian noise, so that its shape says something about directions?"""
        return self.gaussian < NOT_GAUSSIAN

    def modelled(self, keep: float) -> Bool[Tensor, "node node"]:
        """Return the edges of the model: those that may act later, and those within the step of its graph."""
        return (self.lagged >= keep) | self.acyclic

    @property
    def undirected(self) -> Bool[Tensor, "node node"]:
        """The pairs, once each above the diagonal, that are listed without an arrow: their direction is open."""
        return undirected_pairs(self.directions)


def undirected_pairs(directions: Int[Tensor, "node node"]) -> Bool[Tensor, "node node"]:
    """Return the pairs of :attr:`WithinStep.undirected`, from the column of ``edges.csv``."""
    return (directions == OPEN).triu(1)

r"""Effects within a step: the edges that act at lag 0, and how their direction was determined.

$$y_t = B_0\, y_t + \text{lagged part} + e_t$$
"""

from dataclasses import dataclass, field

from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.edges import OPEN

# places in tacit.edges.DIRECTIONS
TIME = 1  # the edge acts at later lags, if it exists: time gives the direction
LEARNED = 2  # from noise that is not Gaussian
LAGGED_PARENTS = 3  # from lagged parents of both nodes
RULE = 5  # a rule requires the edge, or forbids the other direction within the step
NOT_GAUSSIAN = 0.01  # level of the test of Gaussian noise


@dataclass(frozen=True, eq=False)
class WithinStep:
    """Effects within a step; rows are targets, columns are sources.

    ``probs``       the probability that each edge acts within the step; ``lagged``  that it acts at later lags
    ``either``      the probability of an edge in either direction, at any lag; symmetric
    ``directions``  how the direction of an edge within the step was determined, a place in ``tacit.edges.DIRECTIONS``:
                    ``OPEN`` for both directions of a pair, ``TIME`` if there is no such effect
    ``acyclic``     the edges within the step of the fitted model: a most likely acyclic graph
    ``gaussian``    the p-value of the test that all noise is Gaussian
    ``notes``       sentences for the user
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
        """True if the test rejects Gaussian noise, so that its shape is informative about directions."""
        return self.gaussian < NOT_GAUSSIAN

    def modelled(self, keep: float) -> Bool[Tensor, "node node"]:
        """Return the edges of the model: those that may act at later lags, and those within the step of its graph."""
        return (self.lagged >= keep) | self.acyclic

    @property
    def undirected(self) -> Bool[Tensor, "node node"]:
        """The undirected pairs, whose direction is open; each once, above the diagonal."""
        return (self.directions == OPEN).triu(1)

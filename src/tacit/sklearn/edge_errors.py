"""How far each edge probability may be off, as an estimator keeps it: what a bootstrap found, without its replicas."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from tacit.graph import GraphDistribution
from tacit.shapes import EdgeProbs
from tacit.uncertainty import EdgeIntervals, EdgeTests, EdgeUncertainty, intervals_around, significant_edges


@dataclass(frozen=True, eq=False)
class EdgeErrors:
    """The bagged estimate and its standard errors; intervals and tests follow from them.

    ``degrees``  of freedom of the standard errors
    ``notes``    what did not go as it should in the replicas
    """

    bagged: EdgeProbs
    std_errors: EdgeProbs
    degrees: int
    notes: list[str]

    @classmethod
    def of(cls, found: EdgeUncertainty, graph: GraphDistribution) -> "EdgeErrors":
        """Return what is kept; without directions both entries of a pair are one number, to the last digit."""
        bagged, errors = (graph.mirrored(values).cpu() for values in (found.edge_probs, found.std_errors))
        return cls(bagged, errors, found.degrees, list(found.warnings))

    def intervals(self, graph: GraphDistribution, level: float = 0.95, *, simultaneous: bool = False) -> EdgeIntervals:
        """Return intervals around the bagged estimate, for each edge or for all at once."""
        return intervals_around(
            self.bagged,
            self.std_errors,
            self.degrees,
            level,
            simultaneous=simultaneous,
            learned=~graph.fixed.cpu(),
            symmetric=graph.symmetric,
        )

    def tests(self, graph: GraphDistribution, identifiable: Tensor | None, **options: Any) -> EdgeTests:
        """Return a test of every edge that is learned and can be told from the data."""
        return significant_edges(
            self.bagged,
            self.std_errors,
            degrees=self.degrees,
            learned=~graph.fixed.cpu(),
            identifiable=identifiable,
            symmetric=graph.symmetric,
            **options,
        )

    def text(self) -> dict[str, Any]:
        """Return what JSON can hold of it."""
        return {"degrees": self.degrees, "notes": self.notes}

    def tensors(self) -> dict[str, Tensor]:
        """Return the rest."""
        return {"bagged": self.bagged, "std_errors": self.std_errors}

    @classmethod
    def restored(cls, text: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> "EdgeErrors":
        """Return what was stored."""
        return cls(tensors["bagged"], tensors["std_errors"], text["degrees"], text["notes"])

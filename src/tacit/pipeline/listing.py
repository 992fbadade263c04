"""The listed and the required edges of a fit, the same for the answer, tables and graphs."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tacit.assessment.evidence import edge_units
from tacit.assessment.identification import FLAGS
from tacit.assessment.uncertainty import listed_edges
from tacit.graph import GraphDistribution
from tacit.records import EdgeFindings


@dataclass(frozen=True, eq=False)
class Listing:
    """The edges of a fit, in the shape of its graph; a graph without directions has both entries of a pair.

    ``values``      the values used for the decision; one entry of an undirected pair has that of either direction
    ``listed``      edges found in the data at a false discovery rate; an undirected pair is included once
    ``required``    known edges, which are not listed
    ``undirected``  the entries of pairs whose direction is open
    """

    values: Tensor
    listed: Tensor
    required: Tensor
    undirected: Tensor

    @classmethod
    def of(cls, graph: GraphDistribution, edges: EdgeFindings, fdr: float) -> "Listing":
        """Return the list; without evidence it uses the probabilities of the identifiable edges."""
        probs, learned = graph.edge_probs.detach().cpu().float(), graph.learned.cpu()
        symmetric, units = graph.symmetric and graph.candidates is None, edges.units
        required = ~learned & (probs > 0)
        if units is None:
            if edges.identifiable is not None:
                learned = learned & (edges.identifiable == FLAGS.index("yes"))
            units = edge_units(probs, None, None)
        learned = learned | (units.undirected & learned.mT) if units.undirected.any() else learned
        values = units.values.float()
        return cls(values, listed_edges(values, fdr, learned, symmetric=symmetric), required, units.undirected)

    def mirrored(self, values: Tensor) -> Tensor:
        """Return numbers of edges with both entries filled for undirected pairs."""
        return torch.where(self.undirected.mT, values.mT, values) if self.undirected.any() else values

    @property
    def both_ways(self) -> Tensor:
        """The listed edges, with both entries of undirected pairs."""
        return self.listed | (self.listed & self.undirected).mT if self.undirected.any() else self.listed

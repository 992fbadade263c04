"""Which edges of a fit are listed and which are required: one decision for the answer, tables and graphs."""

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
    """The edges of a fit, in the shape of its graph; both entries of a pair of a graph without directions.

    ``values``      what decides; of a pair without an arrow, in one entry, the probability of either direction
    ``listed``      found in the data at a false discovery rate; a pair without an arrow is there once
    ``required``    known, hence not listed
    ``undirected``  the entries of pairs without an arrow
    """

    values: Tensor
    listed: Tensor
    required: Tensor
    undirected: Tensor

    @classmethod
    def of(cls, graph: GraphDistribution, edges: EdgeFindings, fdr: float) -> "Listing":
        """Return the list; without evidence the probabilities decide, and what is not identifiable is left out."""
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
        """Return numbers of edges, those of a pair without an arrow in both of its entries."""
        return torch.where(self.undirected.mT, values.mT, values) if self.undirected.any() else values

    @property
    def both_ways(self) -> Tensor:
        """What is listed, pairs without an arrow in both entries."""
        return self.listed | (self.listed & self.undirected).mT if self.undirected.any() else self.listed

"""What a fit says about the edges, as tables and graphs: all of them, or those that can be believed."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tacit.errors import require
from tacit.graph import GraphDistribution, edge_table, listed_table, to_networkx, to_pyg
from tacit.pipeline.fitted import Fitted
from tacit.pipeline.layout import MOST_EXPANDED
from tacit.uncertainty import EdgeIntervals, edges_at_fdr, intervals_around, significant_edges

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.data import Data

FLAGS = ("", "no", "yes")  # can the edge be identified? Nothing is said of one that is fixed.
NUMBERS = ("std_error", "low", "high", "bagged")


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges of a fit; rows receive, columns send."""

    fitted: Fitted

    @property
    def graph(self) -> GraphDistribution:
        """The learned distribution of graphs."""
        return self.fitted.graph

    def probs(self, name: str = "edge_probs_") -> Tensor:
        """Return the probability of every ordered pair; refused over a table of candidates."""
        require(
            self.graph.slots is None,
            f"{name} needs all pairs of nodes, which are kept for up to {MOST_EXPANDED} nodes, got "
            f"{len(self.fitted.nodes):,}; use edges_, which lists the candidates",
        )
        return self.graph.edge_probs.detach().cpu()

    def number(self, key: str) -> Tensor:
        """Return ``std_error``, ``low``, ``high`` or ``bagged`` of every edge; an error where it was not computed."""
        values = getattr(self.fitted.edges, key)
        if values is None:
            raise AttributeError(
                f"{key} of the edges is not computed; call estimate_std_errors, or set bootstrap_replicas in "
                "AssessmentOptions"
            )
        return torch.tensor(values)

    @property
    def identifiable(self) -> Tensor | None:
        """True for each edge that can be identified from the data; None where that was not computed."""
        flags = self.fitted.edges.identifiable
        return None if flags is None else torch.tensor([[flag == "yes" for flag in row] for row in flags])

    @property
    def learned(self) -> Tensor:
        """True for each edge that is learned, not fixed."""
        return self.graph.learned.cpu()

    def attributes(self) -> dict[str, Tensor]:
        """Return what is known of every edge besides its probability; ``identifiable`` as a place in ``FLAGS``."""
        edges = self.fitted.edges
        found = {key: self.number(key) for key in NUMBERS if getattr(edges, key) is not None}
        if edges.identifiable is not None:
            flags = [[FLAGS.index(flag) for flag in row] for row in edges.identifiable]
            found["identifiable"] = torch.tensor(flags, dtype=torch.uint8)
        return found

    def table(self, attributes: dict[str, Tensor] | None = None, chosen: Tensor | None = None) -> "pandas.DataFrame":
        """Return all edges with their attributes, or those that are chosen; over a table, the candidates."""
        attributes = self.attributes() if attributes is None else attributes
        if self.graph.slots is not None and chosen is None:
            return listed_table(self.graph.edge_probs, self.graph.slots, self.fitted.nodes)
        if chosen is not None:
            attributes = {**attributes, "chosen": chosen.triu() if self.graph.symmetric else chosen}
        table = edge_table(self.probs(), self.fitted.nodes, attributes=attributes)
        if "identifiable" in attributes:
            table["identifiable"] = [FLAGS[number] for number in table["identifiable"]]
        return table if chosen is None else table[table.pop("chosen")].reset_index(drop=True)

    def intervals(self, level: float = 0.95, *, simultaneous: bool = False) -> EdgeIntervals:
        """Return intervals around the bagged estimate, for each edge or for all at once."""
        return intervals_around(
            self.number("bagged"),
            self.number("std_error"),
            int(self.fitted.record.uncertainty["degrees"]),
            level,
            simultaneous=simultaneous,
            learned=self.learned,
            symmetric=self.graph.symmetric,
        )

    def at_fdr(self, rate: float) -> "pandas.DataFrame":
        """Return the largest set of edges of which a share ``rate`` is expected to be absent in an observation."""
        chosen = edges_at_fdr(
            self.probs(), rate, self.learned, identifiable=self.identifiable, symmetric=self.graph.symmetric
        )
        return self.table(chosen=chosen)

    def significant(self, **options: Any) -> "pandas.DataFrame":
        """Return the edges whose bagged probability is above a level, with the ``p_value`` of each."""
        tests = significant_edges(
            self.number("bagged"),
            self.number("std_error"),
            degrees=int(self.fitted.record.uncertainty["degrees"]),
            learned=self.learned,
            identifiable=self.identifiable,
            symmetric=self.graph.symmetric,
            **options,
        )
        return self.table({**self.attributes(), "p_value": tests.p_values}, tests.chosen)

    def to_networkx(self, threshold: float) -> "networkx.DiGraph | networkx.Graph":
        """Return the edges above a probability as a networkx graph, each with what the table says of it."""
        attributes = self.attributes()
        graph = to_networkx(
            self.probs(), self.fitted.nodes, threshold, symmetric=self.graph.symmetric, attributes=attributes
        )
        if "identifiable" in attributes:
            for _, _, edge in graph.edges(data=True):
                edge["identifiable"] = FLAGS[edge["identifiable"]]
        return graph

    def to_pyg(self, threshold: float) -> "Data":
        """Return the edges above a probability as a PyG graph with ``edge_index`` and ``edge_prob``."""
        return to_pyg(self.probs(), self.fitted.nodes, threshold)

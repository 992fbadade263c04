"""The edges of a fit as tables and graphs: all edges, or the listed ones.

Edges are selected by ``exists``, or by ``probability`` in a fit without evidence.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from tacit.assessment.evidence import group_names
from tacit.assessment.identification import FLAGS
from tacit.assessment.uncertainty import FDR, EdgeIntervals, intervals_around, significant_edges
from tacit.errors import require
from tacit.graph import GraphDistribution, edge_table, listed_table, to_networkx, to_pyg
from tacit.pipeline.fitted import Fitted
from tacit.pipeline.layout import MOST_EXPANDED
from tacit.pipeline.listing import Listing
from tacit.records import CHANGED, EDGE_COLUMNS, GROUP, WORDS, EdgesBy

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.data import Data

# columns on how often an edge acts: empty if it is not kept
ACTING = ("std_error", "low", "high", "bagged", "gate_nats", "together")

WITHIN = ("within_step", "direction", "exists_either")


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges of a fit; rows are targets, columns are sources."""

    fitted: Fitted

    @property
    def graph(self) -> GraphDistribution:
        """The learned distribution of graphs."""
        return self.fitted.graph

    def probs(self, name: str = "edge_probs_") -> Tensor:
        """Return the probability of every ordered pair; refused for a table of candidates."""
        require(
            self.graph.candidates is None,
            f"{name} requires at most {MOST_EXPANDED} nodes, for which all pairs are kept, got "
            f"{len(self.fitted.nodes):,}; use edges_, which lists the candidates",
        )
        return self.graph.edge_probs.detach().cpu()

    def number(self, key: str) -> Tensor:
        """Return a number for every edge, such as ``std_error`` or ``effect``; raise if it was not computed."""
        values = getattr(self.fitted.edges, key)
        if values is None:
            remedy = (
                "set simultaneous=True in GraphOptions"
                if key in WITHIN
                else "leave evidence in GraphOptions at 'auto'" + ", and fit a series" * (key == "lag")
                if key in ("exists", "effect", "lag")
                else "call estimate_std_errors, or set bootstrap_replicas in AssessmentOptions"
            )
            raise AttributeError(f"{key} of the edges was not computed; {remedy}")
        return torch.as_tensor(values).float()

    def words(self, key: str) -> np.ndarray:
        """Return a text column for every edge, such as ``direction``."""
        words: np.ndarray = np.array(WORDS[key], dtype=object)[self.number(key).long().numpy()]
        return words

    @property
    def exists(self) -> Tensor | None:
        """The probability that each edge exists, in the shape of the graph; None without evidence."""
        values = self.fitted.edges.exists
        return None if values is None else values.float()

    @property
    def kept(self) -> Tensor:
        """True for each edge that may exist, whose probability was learned; all edges without evidence.

        Of a group of copies only the first edge was learned.
        """
        dropped = self.fitted.edges.dropped(self.fitted.record.keep)
        return torch.ones(self.graph.edge_shape, dtype=torch.bool) if dropped is None else ~dropped

    @property
    def acts(self) -> Tensor:
        """How often each edge acts; NaN if this is not known."""
        found = self.fitted.edges.probability
        probs = self.graph.edge_probs.detach().cpu() if found is None else found.float()
        return probs.masked_fill(~self.kept, torch.nan)

    @property
    def identifiable(self) -> Tensor | None:
        """True for each edge that is identifiable from the data; None if this was not computed."""
        flags = self.fitted.edges.identifiable
        return None if flags is None else flags == FLAGS.index("yes")

    @property
    def learned(self) -> Tensor:
        """True for each edge that is learned, not fixed."""
        return self.graph.learned.cpu()

    def attributes(self) -> dict[str, Tensor]:
        """Return the columns besides ``exists`` and ``probability`` that were computed, in the order of ``edges.csv``.

        Text columns are indices: ``identifiable`` in ``FLAGS``, ``direction`` in ``DIRECTIONS``, ``varies`` in
        ``VARIES``, ``acting`` in ``ACTS``, ``changed`` in the moments of the edges; ``group`` has the number of a group
        in its row.
        """
        edges, found = self.fitted.edges, dict[str, Tensor]()
        for key in EDGE_COLUMNS:
            if key not in edges.known or key in ("exists", "probability"):
                continue
            found[key] = edges.known[key] if key in (*WORDS, GROUP, CHANGED) else self.number(key)
            if key in ACTING:
                found[key] = found[key].masked_fill(~self.kept, torch.nan)
            elif key == "acting":
                found[key] = found[key].masked_fill(~self.kept, 0)
        return found

    def table(
        self,
        attributes: dict[str, Tensor] | None = None,
        chosen: Tensor | None = None,
        exists: Tensor | None = None,
    ) -> "pandas.DataFrame":
        """Return all edges with their attributes, or the chosen ones; for a table of candidates, the candidates."""
        attributes, candidates, exists = (
            self.attributes() if attributes is None else attributes,
            self.graph.candidates,
            self.exists if exists is None else exists,
        )
        probs = self.acts
        if chosen is not None:
            attributes = {
                **attributes,
                "chosen": chosen.triu() if self.graph.symmetric and candidates is None else chosen,
            }
        if candidates is not None:
            known = {} if exists is None else {"exists": exists}
            table = listed_table(probs, candidates, self.fitted.nodes, attributes={**known, **attributes})
        else:
            table = edge_table(probs, self.fitted.nodes, exists=exists, attributes=attributes)
        for name in attributes.keys() & {*WORDS, CHANGED}:
            words = self.fitted.edges.words(name)
            table[name] = [words[number] for number in table[name]]
        if GROUP in attributes:
            places = {name: number for number, name in enumerate(self.fitted.nodes)}
            source, target = ([places[name] for name in table[key]] for key in ("source", "target"))
            table[GROUP] = group_names(source, target, table[GROUP].tolist(), self.fitted.nodes)
        return table if chosen is None else table[table.pop("chosen")].reset_index(drop=True)

    def lag_table(self) -> "pandas.DataFrame":
        """Return the effect of each kept edge at each lag; raise if there are no lags."""
        import pandas

        lags = self.fitted.edges.lags
        if lags is None:
            raise AttributeError(
                "lags of the edges are not known; fit a series, with evidence in GraphOptions at 'auto'"
            )
        return pandas.DataFrame(lags.columns(self.fitted.nodes))

    def by_table(self) -> "pandas.DataFrame":
        """Return how often edges act in each situation or regime; no rows if no edge varies."""
        graph, by = self.fitted.config.graph, self.fitted.edges.by
        if not graph.depends_on and graph.regimes is None:
            raise AttributeError(
                "it was not tested whether edges depend on the situation; set depends_on or regimes in GraphOptions"
            )
        return (by or EdgesBy()).frame(self.fitted.nodes)

    @property
    def centres(self) -> Tensor:
        """The estimates that the standard errors belong to: those of the regressions, or the bagged ones."""
        bagged = self.number("bagged")
        return self.probs() if "always" in self.fitted.record.uncertainty else bagged

    def intervals(self, level: float = 0.95, *, simultaneous: bool = False) -> EdgeIntervals:
        """Return confidence intervals around ``centres``, for each edge or for all at once."""
        return intervals_around(
            self.centres,
            self.number("std_error"),
            int(self.fitted.record.uncertainty["degrees"]),
            level,
            simultaneous=simultaneous,
            learned=self.learned,
            symmetric=self.graph.symmetric,
        )

    def listing(self, fdr: float | None = None) -> Listing:
        """Return which edges are listed at a false discovery rate, by default that of the fit."""
        rate = self.fitted.record.evidence.get("fdr", FDR) if fdr is None else fdr
        return Listing.of(self.graph, self.fitted.edges, rate)

    def listed_table(self, fdr: float | None = None) -> "pandas.DataFrame":
        """Return the listed edges; ``exists`` of a pair without direction is the probability of either direction."""
        found = self.listing(fdr)
        return self.table(chosen=found.listed, exists=None if self.exists is None else found.values)

    def significant(self, **options: Any) -> "pandas.DataFrame":
        """Return the edges whose probability is above a level, with the ``p_value`` of each."""
        tests = significant_edges(
            self.centres,
            self.number("std_error"),
            degrees=int(self.fitted.record.uncertainty["degrees"]),
            learned=self.learned,
            identifiable=self.identifiable,
            symmetric=self.graph.symmetric,
            **options,
        )
        return self.table({**self.attributes(), "p_value": tests.p_values}, tests.chosen)

    def to_networkx(self, threshold: float | None = None) -> "networkx.DiGraph | networkx.Graph":
        """Return the listed edges, or those above a threshold, as a networkx graph with the columns of the table.

        A pair without direction is included in both directions, with ``undirected`` true.
        """
        probs, attributes, found = self._dense_acts("to_networkx"), self.attributes(), self.listing()
        if self.fitted.edges.direction is not None:
            attributes["undirected"] = found.undirected | found.undirected.mT
            attributes |= {name: found.mirrored(attributes[name]) for name in ("effect", "lag") if name in attributes}
        graph = to_networkx(
            probs,
            self.fitted.nodes,
            threshold or 0.0,
            symmetric=self.graph.symmetric,
            exists=self._either_way(found),
            chosen=self._exported(threshold, found),
            attributes=attributes,
        )
        for name in attributes.keys() & {*WORDS, CHANGED}:
            words = self.fitted.edges.words(name)
            for _, _, edge in graph.edges(data=True):
                edge[name] = words[edge[name]]
        if GROUP in attributes:
            table = self.table()
            names = dict(zip(zip(table["source"], table["target"], strict=True), table[GROUP], strict=True))
            for source, target, edge in graph.edges(data=True):
                edge[GROUP] = names[source, target]
        return graph

    def to_pyg(self, threshold: float | None = None) -> "Data":
        """Return the listed edges, or those above a threshold, as a PyG graph; undirected ones in both directions."""
        found, edges = self.listing(), self.fitted.edges
        return to_pyg(
            self._dense_acts("to_pyg"),
            self.fitted.nodes,
            threshold or 0.0,
            exists=self._either_way(found),
            effect=None if edges.effect is None else found.mirrored(self.number("effect")),
            lag=None if edges.lag is None else found.mirrored(self.number("lag")),
            within_step=None if edges.within_step is None else self.number("within_step"),
            undirected=None if edges.direction is None else found.undirected | found.undirected.mT,
            chosen=self._exported(threshold, found),
        )

    def _dense_acts(self, name: str) -> Tensor:
        self.probs(name)  # refuses a table
        return self.acts

    def _either_way(self, found: Listing) -> Tensor | None:
        """Return ``exists``; both entries of a pair without direction have the probability of either direction.

        The first edge of a group of copies has the probability of any of them.
        """
        if self.exists is not None and self.fitted.edges.group is not None:
            return torch.where(found.listed, found.values, self.exists)
        if self.exists is None or not found.undirected.any():
            return self.exists
        return torch.where(found.undirected | found.undirected.mT, found.values.maximum(found.values.mT), self.exists)

    def _exported(self, threshold: float | None, found: Listing) -> Tensor | None:
        """Return the listed and the required edges; None if a threshold is used."""
        if threshold is not None or self.exists is None:
            return None
        return found.both_ways | found.required

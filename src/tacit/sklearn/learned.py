"""The learned graph of a fitted estimator, as attributes, tables and graphs of other packages."""

from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from tacit.assessment.uncertainty import intervals_around, significant_edges
from tacit.edges import FLAGS, EdgesBy, EdgeTable
from tacit.graph import GraphDistribution
from tacit.pipeline import MOST_EXPANDED, Fitted
from tacit.records import Record, Run
from tacit.sklearn.options import to_python

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.data import Data


def _edge_number(key: str, words: str) -> property:
    """Return a property with a number for every edge; its error explains how to compute it."""

    def read(self: "LearnedGraph") -> np.ndarray:
        return self._matrix(key)

    return property(read, doc=words)


class LearnedGraph:
    """Attributes of a fitted estimator; matrices of edges have a row per target and a column per source."""

    @property
    def edges_(self) -> "pandas.DataFrame":
        """All ordered pairs of nodes as a table, with the columns of ``edges.csv`` that were computed.

        With too many nodes for ``edge_probs_``, only the candidates; all other edges have probability 0.
        """
        return self._edges().frame()

    @property
    def lags_(self) -> "pandas.DataFrame":
        """The table ``lags.csv``: the effect of each kept edge at each lag, and how certain the largest is."""
        import pandas

        lags = self._edges().lags
        if lags is None:
            raise AttributeError(
                "lags of the edges are not known; fit a series, with evidence in GraphOptions at 'auto'"
            )
        return pandas.DataFrame(lags.columns(self.nodes_))

    @property
    def edges_by_(self) -> "pandas.DataFrame":
        """The table ``edges_by.csv``: how often edges act in each situation or regime."""
        graph = self._ready().config.graph
        if not graph.depends_on and graph.regimes is None:
            raise AttributeError(
                "it was not tested whether edges depend on the situation; set depends_on or regimes in GraphOptions"
            )
        return (self._edges().by or EdgesBy()).frame(self.nodes_)

    @property
    def exists_(self) -> np.ndarray:
        """The probability that each edge exists, given the data; rows are targets, columns are sources."""
        return self._matrix("exists", "exists_")

    @property
    def edge_probs_(self) -> np.ndarray:
        """How often each edge acts, given that it exists; rows are targets, columns sources; 0 if it is not kept."""
        fitted = self._ready()
        fitted.table.index.require_all_pairs("edge_probs_", MOST_EXPANDED)
        return fitted.graph.edge_probs.detach().cpu().numpy()

    edge_effects_ = _edge_number(
        "effect", "The effect of each edge, in deviations of the target per deviation of the source."
    )

    edge_lags_ = _edge_number("lag", "The lag at which each edge has its largest effect, in steps before the target.")

    within_step_ = _edge_number("within_step", "The probability that each edge acts within a step, at lag 0.")

    @property
    def direction_(self) -> np.ndarray:
        """How the direction of each edge was found: time, learned, lagged parents or open; "" on the diagonal."""
        return self._matrix("direction")

    edge_probs_bagged_ = _edge_number("bagged", "The mean probability of each edge over the bootstrap replicas.")
    edge_std_errors_ = _edge_number(
        "std_error", "Standard errors of the centres of the intervals; 0 where an edge is fixed."
    )
    edge_low_ = _edge_number("low", "Lower ends of the 95% intervals; for other levels see :meth:`edge_intervals`.")
    edge_high_ = _edge_number("high", "Upper ends of the 95% intervals of the edge probabilities.")

    @property
    def edge_identifiable_(self) -> np.ndarray:
        """True for each edge that is identifiable from the data; false for fixed edges."""
        if "identifiable" not in self._edges():
            raise AttributeError("edge_identifiable_ was not computed; call identify, or leave the assessment enabled")
        return np.asarray(self._matrix("identifiable") == "yes")

    @property
    def record_(self) -> Record:
        """The content of ``record.json``: config, metrics, references, findings, warnings and more."""
        return self._ready().record

    @property
    def run_(self) -> Run:
        """What a run directory holds: record, table of edges, history, lags. Plots and pages are drawn from it."""
        return self._ready().run

    @property
    def answer_(self) -> list[str]:
        """The answer in a few sentences: whether there is a graph, which edges are listed, and how often they act."""
        return self._ready().record.answer

    @property
    def findings_(self) -> list[str]:
        """The findings of the assessment, as sentences."""
        return self._ready().record.findings

    @property
    def notes_(self) -> list[str]:
        """Options that were chosen from the data, with the reasons, and warnings."""
        record = self._ready().record
        return [*record.choices, *record.warnings]

    @property
    def nodes_(self) -> list[str]:
        """The names of the nodes, or their positions as text."""
        return list(self._ready().nodes)

    @property
    def graph_(self) -> GraphDistribution:
        """The learned distribution of graphs."""
        return self._ready().graph

    @property
    def history_(self) -> list[dict[str, Any]]:
        """The losses of all replicas in each epoch; None for dropped replicas."""
        return self._ready().history

    @property
    def replicas_(self) -> list[dict[str, Any]]:
        """Seed, validation loss and, for a replica that was dropped, the last epoch."""
        return self._ready().record.replicas

    @property
    def best_replica_(self) -> int:
        """The index of the kept replica in ``replicas_``."""
        return self._ready().record.best_replica

    def to_networkx(self, threshold: float | None = None) -> "networkx.DiGraph | networkx.Graph":
        """Return the listed and the required edges as a networkx graph, with the columns of ``edges_`` as attributes.

        With a ``threshold``, return the edges whose ``exists`` is above it. A fit without evidence uses ``probability``
        instead, and without a threshold returns every edge above 0. A pair whose direction within a step is open is
        included in both directions, with ``undirected`` true.
        """
        return self._edges().to_networkx(to_python(threshold))

    def to_pyg(self, threshold: float | None = None) -> "Data":
        """Return the edges of :meth:`to_networkx` as a PyG graph with ``edge_index`` and ``edge_prob``.

        If they were computed, it also has ``edge_exists``, ``edge_effect`` and ``edge_lag``; with effects within a step
        also ``edge_within_step`` and ``edge_undirected``: an edge without direction is included in both directions.
        """
        return self._edges().to_pyg(to_python(threshold))

    def edge_intervals(self, level: float = 0.95, *, simultaneous: bool = False) -> "pandas.DataFrame":
        """Return confidence intervals of all edge probabilities, with columns ``bagged``, ``low`` and ``high``.

        An interval contains the true probability with probability ``level``; with ``simultaneous``, all intervals do at
        once. Intervals are around ``probability`` if it comes from regressions of mean and variance, otherwise around
        ``bagged``.
        """
        fitted, edges = self._ready(), self._edges()
        bagged = edges.known("bagged")
        ends = intervals_around(
            *self._estimates(),
            int(fitted.record.uncertainty["degrees"]),
            to_python(level),
            simultaneous=simultaneous,
            learned=fitted.graph.learned.cpu(),
            symmetric=fitted.graph.symmetric,
        )
        low, high = (fitted.graph.vector(one) for one in (ends.low, ends.high))
        shown = ["source", "target", *(["exists"] if "exists" in edges else []), "probability", "bagged", "low", "high"]
        return edges.frame(bagged=bagged, low=low, high=high)[shown]

    def listed_edges(self, fdr: float | None = None) -> "pandas.DataFrame":
        """Return the listed rows of ``edges_``: the longest list with a false discovery rate of at most ``fdr``.

        Every listed edge has ``exists`` of at least 0.5, and the mean of 1 - ``exists`` over the list is at most
        ``fdr`` (default: that of ``AssessmentOptions``). Required edges are known and therefore not listed. Without
        evidence, ``probability`` is used instead of ``exists``, and edges that are not identifiable are not listed. An
        edge without direction is one row. So is a pair whose direction within a step is open; ``exists`` is then the
        probability of an edge in either direction.
        """
        edges = self._edges()
        return edges.frame(edges.listed(to_python(fdr)), **({"exists": edges.values} if "exists" in edges else {}))

    def significant_edges(
        self, above: float = 0.05, rate: float = 0.05, *, dependence: str = "positive"
    ) -> "pandas.DataFrame":
        """Return the rows of ``edges_`` whose probability is significantly above a level, with a ``p_value`` each.

        ``rate`` limits the false discovery rate (:func:`tacit.assessment.uncertainty.significant_edges`, which also
        explains ``dependence``). The tested value is the centre of :meth:`edge_intervals`. Fixed edges and edges that
        are not identifiable are left out.
        """
        fitted, edges = self._ready(), self._edges()
        flags = edges["identifiable"]
        tests = significant_edges(
            *self._estimates(),
            degrees=int(fitted.record.uncertainty["degrees"]),
            learned=fitted.graph.learned.cpu(),
            identifiable=None if flags is None else fitted.graph.placed(flags == FLAGS.index("yes")),
            symmetric=fitted.graph.symmetric,
            above=to_python(above),
            rate=to_python(rate),
            dependence=dependence,  # type: ignore[arg-type]  # it is checked
        )
        chosen = fitted.graph.vector(tests.chosen) & edges.index.once
        return edges.frame(chosen, p_value=fitted.graph.vector(tests.p_values))

    def _ready(self) -> Fitted:
        raise NotImplementedError

    def _edges(self) -> EdgeTable:
        return self._ready().table

    def _matrix(self, name: str, asked: str = "") -> np.ndarray:
        """Return a column with a row per target and a column per source; raise if it was not computed."""
        edges = self._edges()
        if not asked:
            edges.known(name)
        edges.index.require_all_pairs(asked or f"the matrix of {name}", MOST_EXPANDED)
        return edges.matrix(name)

    def _estimates(self) -> tuple[Tensor, Tensor]:
        """Return the estimates that the standard errors belong to, of the regressions or bagged, and these errors."""
        fitted, edges = self._ready(), self._edges()
        centres, errors = (fitted.graph.placed(edges.known(name)) for name in ("bagged", "std_error"))
        if "always" in fitted.record.uncertainty:
            centres = fitted.graph.edge_probs.detach().cpu()
        return centres, errors

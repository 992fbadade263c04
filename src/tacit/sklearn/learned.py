"""The learned graph of a fitted estimator, as attributes, tables and graphs of other packages."""

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.graph import GraphDistribution
from tacit.pipeline import Edges, Fitted
from tacit.records import Record, Run
from tacit.sklearn.options import to_python

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.data import Data


def _edge_number(key: str, words: str) -> property:
    """Return an attribute of every edge, target row and source column; an error says how to compute it."""

    def read(self: "LearnedGraph") -> np.ndarray:
        return self._edges().number(key).numpy()

    return property(read, doc=words)


class LearnedGraph:
    """Attributes of an estimator that has been fitted; those of the edges have target rows and source columns."""

    @property
    def edges_(self) -> "pandas.DataFrame":
        """All ordered pairs as a table, with the columns of ``edges.csv`` that were computed.

        Of more nodes than ``edge_probs_`` is kept for, the candidates: all other edges are 0.
        """
        return self._edges().table()

    @property
    def lags_(self) -> "pandas.DataFrame":
        """The columns of ``lags.csv``: the effect of each kept edge at each lag, and how sure the largest is."""
        return self._edges().lag_table()

    @property
    def edges_by_(self) -> "pandas.DataFrame":
        """The columns of ``edges_by.csv``: how often edges act in each situation, or in each regime."""
        return self._edges().by_table()

    @property
    def exists_(self) -> np.ndarray:
        """The probability that each edge exists, given the data: target row, source column."""
        self._edges().probs("exists_")  # refused over a table of candidates
        return self._edges().number("exists").numpy()

    @property
    def edge_probs_(self) -> np.ndarray:
        """How often each edge acts, given that it exists: target row, source column; 0 for those that are not kept."""
        return self._edges().probs().numpy()

    edge_effects_ = _edge_number("effect", "The effect of each edge, in deviations of the target per deviation.")

    edge_lags_ = _edge_number("lag", "The lag at which each edge has its largest effect, in steps before the target.")

    within_step_ = _edge_number("within_step", "The probability that each edge acts within a step, at lag 0.")

    @property
    def direction_(self) -> np.ndarray:
        """How the direction of each edge is known: time, learned, lagged parents or open; "" on the diagonal."""
        return self._edges().words("direction")

    edge_probs_bagged_ = _edge_number("bagged", "The mean probability of each edge over the bootstrap replicas.")
    edge_std_errors_ = _edge_number(
        "std_error", "Standard errors of the centres of the intervals; 0 where an edge is fixed."
    )
    edge_low_ = _edge_number("low", "Lower ends of the 95% intervals; for other levels see :meth:`edge_intervals`.")
    edge_high_ = _edge_number("high", "Upper ends of the 95% intervals of the edge probabilities.")

    @property
    def edge_identifiable_(self) -> np.ndarray:
        """True for each edge that can be identified from the data; false too where one is fixed."""
        identifiable = self._edges().identifiable
        if identifiable is None:
            raise AttributeError("edge_identifiable_ is not computed; call identify, or leave the assessment enabled")
        return identifiable.numpy()

    @property
    def record_(self) -> Record:
        """The content of ``record.json``: config, metrics, references, findings, warnings."""
        return self._ready().record

    @property
    def run_(self) -> Run:
        """What a run directory holds: record, table of edges, history, lags. Plots and pages are drawn from it."""
        return self._ready().run

    @property
    def answer_(self) -> list[str]:
        """The answer in a few sentences: is there a graph, which edges are listed, how often do they act."""
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
        """The names of the nodes, or their positions as words."""
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
        """Seed, validation loss and, if it was given up, the last epoch of each replica."""
        return self._ready().record.replicas

    @property
    def best_replica_(self) -> int:
        """The index of the kept replica in ``replicas_``."""
        return self._ready().record.best_replica

    def to_networkx(self, threshold: float | None = None) -> "networkx.DiGraph | networkx.Graph":
        """Return the listed and the required edges as a networkx graph, each with what ``edges_`` says of it.

        With a ``threshold`` those whose ``exists`` is above it. A fit without evidence decides by ``probability``, and
        without a threshold returns every edge above 0. A pair whose direction within a step is open is there in both
        directions, with ``undirected`` true.
        """
        return self._edges().to_networkx(to_python(threshold))

    def to_pyg(self, threshold: float | None = None) -> "Data":
        """Return the same edges as a PyG graph: ``edge_index`` and ``edge_prob``, and what else is known of them.

        That is ``edge_exists``, ``edge_effect`` and ``edge_lag``; with effects within a step also
        ``edge_within_step`` and ``edge_undirected``: an edge without an arrow is there in both directions.
        """
        return self._edges().to_pyg(to_python(threshold))

    def edge_intervals(self, level: float = 0.95, *, simultaneous: bool = False) -> "pandas.DataFrame":
        """Return all ordered pairs with ``bagged``, ``low`` and ``high``, which hold the truth with chance ``level``.

        The chance is that of each edge, or with ``simultaneous`` that of all edges at once. Intervals are around
        ``probability`` where it came from regressions of mean and variance, else around ``bagged``.
        """
        edges = self._edges()
        ends = edges.intervals(to_python(level), simultaneous=simultaneous)
        bagged = edges.number("bagged")
        return edges.table({"bagged": bagged, "low": ends.low, "high": ends.high})

    def listed_edges(self, fdr: float | None = None) -> "pandas.DataFrame":
        """Return the rows of ``edges_`` that are listed: the largest list with at most a share ``fdr`` false.

        Every listed edge has ``exists`` of at least 0.5, and the mean of 1 - ``exists`` over the list is at most
        ``fdr``; if it is left out, that of ``AssessmentOptions``. Required edges are known, hence not listed. Without
        evidence ``probability`` takes the place of ``exists``, and what cannot be identified is not listed. Without
        directions each pair is one row; so is a pair whose direction within a step is open, and ``exists`` is then the
        probability of an edge in either direction.
        """
        return self._edges().listed_table(to_python(fdr))

    def significant_edges(
        self, above: float = 0.05, rate: float = 0.05, *, dependence: str = "positive"
    ) -> "pandas.DataFrame":
        """Return the rows of ``edges_`` whose probability is above a level, with the ``p_value`` of each.

        At most a share ``rate`` of them is there by the luck of the data
        (:func:`tacit.assessment.uncertainty.significant_edges`,
        also for ``dependence``). Tested is the centre of :meth:`edge_intervals`. Fixed edges are not chosen,
        nor those that cannot be identified.
        """
        return self._edges().significant(above=to_python(above), rate=to_python(rate), dependence=dependence)

    def _ready(self) -> Fitted:
        raise NotImplementedError

    def _edges(self) -> Edges:
        return Edges(self._ready())

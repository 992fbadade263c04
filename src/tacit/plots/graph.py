"""The learned graph: as arrows between nodes, or a number of every edge as a matrix."""

from typing import Literal, get_args

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes

from tacit.errors import require, require_int
from tacit.plots.display import RunDisplay
from tacit.records import Run
from tacit.report import PROBABILITY_COLOURS, counted, draw_graph, draw_matrix, figure_height, run_places, shown_edges

ColourBy = Literal["acts", "effect"]
MOST_EDGES = 150  # more cannot be distinguished
MANY_NODES = 40  # more have a larger figure
NUMBERED = 12  # edges that have their numbers beside them


class GraphDisplay(RunDisplay):
    """The edges that exist, as arrows from source to target.

    Width and colour are how often an edge acts; an edge that is less likely to exist is paler. With few edges the
    numbers stand beside them: how often the edge acts, and its 95% interval where standard errors were computed. Of
    more than 40 nodes those with drawn edges are named, where names do not overlap. Self-loops are not drawn.

    ``threshold``  draw edges whose ``exists`` (without evidence: ``probability``) is at least this; None: the listed
                   edges, or without evidence those with a probability of 0.1 or more
    ``max_edges``  draw the most likely edges only
    ``colour_by``  "acts", or "effect" for the sign of the effect
    ``numbers``    write the numbers beside the edges; None: with 12 edges or fewer
    """

    def __init__(
        self,
        run: Run,
        *,
        threshold: float | None = None,
        max_edges: int = MOST_EDGES,
        colour_by: ColourBy = "acts",
        numbers: bool | None = None,
    ) -> None:
        super().__init__(run)
        require(
            threshold is None or (isinstance(threshold, int | float) and 0 <= threshold <= 1),
            f"threshold must be a number from 0 to 1, got {threshold!r}; pass for example 0.5",
        )
        require_int("max_edges", max_edges)
        require(
            colour_by in get_args(ColourBy),
            f"colour_by must be one of {', '.join(get_args(ColourBy))}, got {colour_by!r}; pass 'acts'",
        )
        self.threshold, self.max_edges, self.colour_by, self.numbers = threshold, max_edges, colour_by, numbers
        self._columns = run.edges.each_once()
        self._places = run_places(run, self._columns)

    @property
    def figsize(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        if len(self._places.node) > MANY_NODES:
            return 9.0, 7.0
        return 6.8, figure_height(self._places)

    def _draw(self, ax: Axes) -> None:
        edges = shown_edges(self._columns, self._places, self.threshold, self.max_edges)
        draw_graph(
            ax,
            edges,
            self.run.record.node_names,
            self._places,
            directed=not self.run.record.is_symmetric,
            colour_by=self.colour_by,
            numbers=len(edges) <= NUMBERED if self.numbers is None else self.numbers,
        )
        columns, drawn = self._columns, len(edges)
        if self.threshold is None and "exists" in columns:
            among, what = columns.shown, "listed"
        else:
            threshold = 0.1 if self.threshold is None else self.threshold
            among = columns.drawable & (columns.decides >= threshold)
            what = f"with {'exists' if 'exists' in columns else 'probability'} of at least {threshold:g}"
        total = int(among.sum())
        part = "" if drawn == total else f", the {drawn:,} most likely drawn"
        ax.set_title(f"{counted(total, 'edge')} {what}{part}")


VALUES = {
    "exists": "probability that the edge exists",
    "probability": "acts: share of observations",
    "std_error": "standard error of acts",
    "low": "lower end of the 95% interval of acts",
    "high": "upper end of the 95% interval of acts",
    "effect": "effect, in standard deviations",
    "lag": "lag of the largest effect, in steps",
    "bagged": "mean of acts over the resamples",
    "within_step": "probability that the edge acts within a step",
    "true": "true edge probability",
}
UP_TO_ONE = ("exists", "probability", "low", "high", "bagged", "within_step", "true")
SIGNED_COLOURS = "RdBu"  # red lowers the target, blue raises it
MOST_NODES = 200


class EdgeMatrixDisplay(RunDisplay):
    """A number of every ordered pair of nodes, with the names of sources and targets. Cells without one are grey.

    ``values``     "exists" (the default where it is known), "probability", which is how often an edge acts, or another
                   column of ``edges_``: "std_error", "low", "high", "effect", "lag", "bagged", "within_step"; "true"
                   are the true probabilities of a demo
    ``max_nodes``  of more nodes those with the most likely edges are shown
    """

    def __init__(self, run: Run, *, values: str | None = None, max_nodes: int = MOST_NODES) -> None:
        super().__init__(run)
        known = [name for name in VALUES if name in run.edges or (name == "true" and run.record.true_edge_probs)]
        self.values = values or known[0]
        require(
            self.values in known,
            f"values must be a column that the run has, {', '.join(known)}, got {values!r}; pass one of these",
        )
        require_int("max_nodes", max_nodes)
        count, edges = len(run.record.node_names), run.edges
        self.nodes: Int[np.ndarray, " shown"] = np.arange(count)
        if count > max_nodes:  # those of the most likely edges, in their order
            first = edges.strongest(len(edges), edges.index.between)
            ends = np.stack([edges.index.source[first], edges.index.target[first]], 1).ravel()
            _, place = np.unique(ends, return_index=True)
            self.nodes = np.sort(ends[np.sort(place)][:max_nodes])
        if self.values == "true":
            truth = np.array(run.record.true_edge_probs, dtype=float)
            self.matrix: Float[np.ndarray, "target source"] = truth[np.ix_(self.nodes, self.nodes)]
            return
        row = np.full(count, -1)
        row[self.nodes] = np.arange(len(self.nodes))
        target, source = row[edges.index.target], row[edges.index.source]
        shown = (target >= 0) & (source >= 0)
        self.matrix = np.full((len(self.nodes), len(self.nodes)), np.nan)
        self.matrix[target[shown], source[shown]] = edges[self.values][shown]

    @property
    def figsize(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        size = float(np.clip(0.22 * len(self.nodes), 4.4, 8.0))
        return size + 1.2, size

    def _draw(self, ax: Axes) -> None:
        names = self.run.record.node_names
        limits, colours = (0.0, 1.0), PROBABILITY_COLOURS
        if self.values not in UP_TO_ONE:
            top = float(np.nanmax(np.abs(self.matrix), initial=0.0)) or 1.0
            limits = (-top, top) if self.values == "effect" else (0.0, top)
            colours = SIGNED_COLOURS if self.values == "effect" else PROBABILITY_COLOURS
        left_out = len(names) - len(self.nodes)
        title = f"the {len(self.nodes)} nodes with the most likely edges, of {len(names):,}" if left_out else ""
        draw_matrix(
            ax,
            self.matrix,
            title=title,
            colours=colours,
            limits=limits,
            names=[names[node] for node in self.nodes],
            label=VALUES[self.values],
        )

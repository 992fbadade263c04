"""A number of every edge as a matrix: targets down, sources across."""

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from matplotlib.axes import Axes

from tacit.errors import require, require_int
from tacit.plots.display import RunDisplay
from tacit.records import Run
from tacit.report import PROBABILITY_COLOURS, draw_matrix

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
            decides = edges["exists" if "exists" in edges else "probability"].fillna(0.0)
            first = edges[edges.source != edges.target].assign(decides=decides)
            first = first.sort_values("decides", ascending=False, kind="stable")
            ends = first[["source", "target"]].to_numpy().ravel()
            self.nodes = np.sort(pd.unique(ends)[:max_nodes])
        self.matrix = self._matrix()

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

    def _matrix(self) -> Float[np.ndarray, "target source"]:
        if self.values == "true":
            return np.asarray(np.array(self.run.record.true_edge_probs)[np.ix_(self.nodes, self.nodes)], dtype=float)
        row = np.full(len(self.run.record.node_names), -1)
        row[self.nodes] = np.arange(len(self.nodes))
        edges = self.run.edges
        target, source = row[edges.target], row[edges.source]
        shown = (target >= 0) & (source >= 0)
        matrix = np.full((len(self.nodes), len(self.nodes)), np.nan)
        matrix[target[shown], source[shown]] = edges[self.values].to_numpy(dtype=float)[shown]
        return matrix

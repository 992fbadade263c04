"""The learned graph: nodes at their coordinates or in a layout, edges as wide and dark as they act often."""

from typing import Literal, get_args

from matplotlib.axes import Axes

from tacit.errors import require, require_int
from tacit.plots.display import RunDisplay
from tacit.records import Run
from tacit.report import counted, draw_graph, figure_height, run_places, shown_edges

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

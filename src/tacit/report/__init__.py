"""Pages and figures, drawn from the record of a run."""

from tacit.report.embedding import strongest_edges
from tacit.report.figures import (
    STYLE,
    coverage_on,
    draw_curve,
    draw_figures,
    rank_shares,
    ranks_on,
    reliability_on,
    reliability_points,
    training_curves,
)
from tacit.report.matrix import COLOURS, bands, draw_matrix, figure_files, heatmap_pair
from tacit.report.network import draw_graph, draw_network, figure_height, shown_edges
from tacit.report.page import (
    draw_demo,
    draw_run,
    summary_html,
    write_page,
)
from tacit.report.places import run_places
from tacit.report.shared import FORECAST_COLOUR, PROBABILITY_COLOURS, counted

__all__ = [
    "COLOURS",
    "FORECAST_COLOUR",
    "PROBABILITY_COLOURS",
    "STYLE",
    "bands",
    "counted",
    "coverage_on",
    "draw_curve",
    "draw_demo",
    "draw_figures",
    "draw_graph",
    "draw_matrix",
    "draw_network",
    "draw_run",
    "figure_files",
    "figure_height",
    "heatmap_pair",
    "rank_shares",
    "ranks_on",
    "reliability_on",
    "reliability_points",
    "run_places",
    "shown_edges",
    "strongest_edges",
    "summary_html",
    "training_curves",
    "write_page",
]

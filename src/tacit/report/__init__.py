"""Pages and figures, drawn from the record of a run."""

from tacit.report.demo import TITLES, draw_demo, is_demo, read_one_run
from tacit.report.drawing import COLOURS, bands, heatmap_pair
from tacit.report.figures import STYLE, draw_figures
from tacit.report.matrix import draw_matrix
from tacit.report.network import draw_graph, draw_network, figure_height, shown_edges
from tacit.report.page import strongest_edges, write_page
from tacit.report.places import run_places
from tacit.report.run import draw_run
from tacit.report.saving import figure_files
from tacit.report.shared import FORECAST_COLOUR, PROBABILITY_COLOURS
from tacit.report.summary import summary_html
from tacit.report.training import draw_curve, training_curves
from tacit.report.trust import coverage_on, rank_shares, ranks_on, reliability_on, reliability_points

__all__ = [
    "COLOURS",
    "FORECAST_COLOUR",
    "PROBABILITY_COLOURS",
    "STYLE",
    "TITLES",
    "bands",
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
    "is_demo",
    "rank_shares",
    "ranks_on",
    "read_one_run",
    "reliability_on",
    "reliability_points",
    "run_places",
    "shown_edges",
    "strongest_edges",
    "summary_html",
    "training_curves",
    "write_page",
]

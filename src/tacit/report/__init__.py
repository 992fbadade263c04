"""Pages and figures, drawn from the record of a run."""

from tacit.report.demo import TITLES, draw_demo, is_demo
from tacit.report.drawing import COLOURS, bands, heatmap_pair
from tacit.report.edge_columns import edge_columns, is_symmetric
from tacit.report.figures import STYLE, draw_figures
from tacit.report.network import draw_network
from tacit.report.page import strongest_edges, write_page
from tacit.report.run import draw_run
from tacit.report.saving import figure_files
from tacit.report.shared import PROBABILITY_COLOURS

__all__ = [
    "COLOURS",
    "PROBABILITY_COLOURS",
    "STYLE",
    "TITLES",
    "bands",
    "draw_demo",
    "draw_figures",
    "draw_network",
    "draw_run",
    "edge_columns",
    "figure_files",
    "heatmap_pair",
    "is_demo",
    "is_symmetric",
    "strongest_edges",
    "write_page",
]

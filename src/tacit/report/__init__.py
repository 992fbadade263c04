"""Pages and figures, drawn from records alone."""

from tacit.report.demo import draw_demo, is_demo
from tacit.report.figures import draw_figures
from tacit.report.network import draw_network
from tacit.report.page import write_page
from tacit.report.run import draw_run

__all__ = ["draw_demo", "draw_figures", "draw_network", "draw_run", "is_demo", "write_page"]

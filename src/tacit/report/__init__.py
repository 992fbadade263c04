"""Pages and figures, drawn from records alone."""

from tacit.report.figures import draw_figures
from tacit.report.page import write_page

__all__ = ["draw_figures", "write_page"]

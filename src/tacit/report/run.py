"""Figures and page of one run directory, from its records alone."""

from pathlib import Path

from tacit.errors import require
from tacit.records import Run, read_run
from tacit.report.figures import draw_figures
from tacit.report.page import write_page
from tacit.report.places import run_places


def draw_run(directory: Path, run: Run | None = None) -> Path:
    """Draw the figures and the page of one run directory."""
    run = run or read_run(directory)
    for name in ("figures", "report.html"):  # a run from somebody else must not write elsewhere
        require(not (directory / name).is_symlink(), f"{directory / name} must not be a link; remove it")
    places = run_places(run)
    draw_figures(run, directory / "figures", places)
    write_page([run], directory / "report.html", run.record.title, places)
    return directory / "report.html"

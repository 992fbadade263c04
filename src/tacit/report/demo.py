"""Figures and pages of a demo directory: its runs, each by itself and side by side, from their records alone."""

from pathlib import Path

from tacit.errors import InputError
from tacit.records import Run, read_run
from tacit.report.page import write_page
from tacit.report.run import draw_run

TITLES = {"known": "psi known", "joint": "psi learned"}  # by the directory of the run
PAGE_TITLE = "tacit demo: the paper's synthetic system"


def is_demo(directory: Path) -> bool:
    """Does a directory hold runs of a demo?"""
    return any((directory / name).is_dir() for name in TITLES)


def read_one_run(directory: Path, what: str = "RUN") -> Run:
    """Read a run directory; for a demo, one of its two runs must be chosen. ``what`` names the argument."""
    if is_demo(directory):
        paths = " or ".join(str(directory / name) for name in TITLES)
        raise InputError(f"{what} must be one run, got {directory}, which contains the runs of a demo; pass {paths}")
    return read_run(directory)


def draw_demo(directory: Path, runs: dict[str, Run] | None = None) -> Path:
    """Draw a demo directory and return the page of the whole."""
    if runs is None:
        runs = {name: read_run(directory / name) for name in TITLES if (directory / name).is_dir()}
    for name, run in runs.items():
        draw_run(directory / name, run)
    write_page(list(runs.values()), directory / "report.html", PAGE_TITLE)
    return directory / "report.html"

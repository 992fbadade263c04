"""The page: one self-contained HTML file, for one run or for several one after another."""

from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from tacit.atomic_files import write_atomic
from tacit.records import Run
from tacit.report.bundle import bundled_script
from tacit.report.content import run_content
from tacit.report.embedding import as_json, script_hash
from tacit.report.places import Places
from tacit.report.shared import css_variables, page_constants
from tacit.report.strongest import strongest_edges as strongest_edges  # also what the command prints

STYLES = ("style", "print")


def write_page(runs: list[Run], path: Path, title: str, places: Places | None = None) -> None:
    """Write the page of these runs; ``places`` are those of the nodes of a single one, where they are known."""
    environment = Environment(
        loader=PackageLoader("tacit.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    contents = [run_content(run, places if len(runs) == 1 else None) for run in runs]
    plotly, script = get_plotlyjs(), bundled_script()
    page = environment.get_template("page.html").render(
        title=title,
        runs=contents,
        policy=f"script-src {script_hash(plotly)} {script_hash(script)}",
        plotly=Markup(plotly),
        script=Markup(script),
        style=Markup(_style()),
        data=as_json({"shared": page_constants(), "runs": [content["data"] for content in contents]}),
    )
    write_atomic(path, page.encode(errors="replace"))  # of a name that is half a letter


def _style() -> str:
    templates = files("tacit.report") / "templates"
    return css_variables() + "".join((templates / f"{name}.css").read_text(encoding="utf-8") for name in STYLES)

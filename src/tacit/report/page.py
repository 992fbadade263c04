"""Pages and summaries of runs: one self-contained HTML file, for one run or for several.

The page's script: its ES modules in one inline script, put together without node.

Each module becomes a function that is called once, after the modules that it imports, and returns what it exports:
``modules.text = (() => { ... return { plural }; })();``. Modules have named imports and export constants or functions.
"""

import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, PackageLoader
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from tacit.atomic_files import write_atomic
from tacit.errors import require
from tacit.records import DEMO_RUNS, Run, read_run
from tacit.report.content import run_content, verdict
from tacit.report.embedding import as_json, script_hash, strongest_edges
from tacit.report.figures import draw_figures
from tacit.report.places import Places, run_places
from tacit.report.shared import css_variables, page_constants

SCRIPTS = files("tacit.report") / "templates" / "scripts"
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|function) (\w+))", re.MULTILINE)
OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


@cache
def bundled_script(entry: str = "page") -> str:
    """Return the script that runs a module of ``templates/scripts``, with all modules that it needs in front."""
    modules: dict[str, str] = {}
    _add(entry, modules)
    return "const modules = {};\n" + "".join(modules.values())


def module_function(name: str, source: str) -> str:
    """Return a module as a function that is called once.

    >>> print(module_function("b", 'import { a } from "./a.js";\\nexport const b = 2 * a;\\n'), end="")
    modules.b = (() => {
    const { a } = modules.a;
    const b = 2 * a;
    return { b };
    })();
    """
    exported = ", ".join(EXPORT.findall(source))
    body = EXPORT.sub("", IMPORT.sub(r"const {\1} = modules.\2;", source))
    left = OTHER.search(body)
    if left:
        raise ValueError(f"{name}.js must use named imports and exports, got {left[0]!r}")
    return f"modules.{name} = (() => {{\n{body}return {{ {exported} }};\n}})();\n"


def _add(name: str, modules: dict[str, str]) -> None:
    """Add a module after those that it imports."""
    if name in modules:
        return
    source = (SCRIPTS / f"{name}.js").read_text(encoding="utf-8")
    for _, needed in IMPORT.findall(source):
        _add(needed, modules)
    modules[name] = module_function(name, source)


MOST_ROWS = 10
COLUMNS = ("exists", "probability", "std_error", "effect", "lag")


def summary_html(run: Run, name: str, is_series: bool, page: Path | None = None) -> str:
    """Return the summary; ``name`` is that of the estimator, ``page`` a report that was written."""
    columns, record, link = run.edges.each_once(), run.record, None
    if page is not None:  # a link that a notebook in the working directory can follow, else one to the file
        full, here = page.resolve(), Path.cwd().resolve()
        inside = full.is_relative_to(here)
        link = f"./{quote(full.relative_to(here).as_posix())}" if inside else full.as_uri()
    listed = columns.listed()
    shown = strongest_edges(run, MOST_ROWS, columns, listed if listed.any() else None)
    environment = Environment(
        loader=PackageLoader("tacit.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("summary.html").render(
        name=name,
        nodes=len(record.node_names),
        kind="series" if is_series else "pairs",
        window=record.preparation.get("windows", {}).get("window"),
        title=record.title,
        answer=record.answer,
        verdict=verdict(run)[1],
        rows=[row | {"arrow": "—" if run.record.is_symmetric or row["undirected"] else "→"} for row in shown],
        known={name: any(row[name] is not None for row in shown) for name in COLUMNS},
        listed=int(listed.sum()),
        decided="exists" in columns,
        page=None if page is None else str(page),
        link=link,
    )


STYLES = ("style", "print")


def write_page(runs: list[Run], path: Path, title: str, places: Places | None = None) -> None:
    """Write the page of these runs; ``places`` are those of the nodes of a single one, where they are known."""
    environment = Environment(
        loader=PackageLoader("tacit.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    contents = [run_content(run, places if len(runs) == 1 else None) for run in runs]
    plotly, script, templates = get_plotlyjs(), bundled_script(), files("tacit.report") / "templates"
    styles = [(templates / f"{name}.css").read_text(encoding="utf-8") for name in STYLES]
    page = environment.get_template("page.html").render(
        title=title,
        runs=contents,
        policy=f"script-src {script_hash(plotly)} {script_hash(script)}",
        plotly=Markup(plotly),
        script=Markup(script),
        style=Markup(css_variables() + "".join(styles)),
        data=as_json({"shared": page_constants(), "runs": [content["data"] for content in contents]}),
    )
    write_atomic(path, page.encode(errors="replace"))  # of a name that is half a letter


def draw_run(directory: Path, run: Run | None = None) -> Path:
    """Draw the figures and the page of one run directory."""
    run = run or read_run(directory)
    for name in ("figures", "report.html"):  # a run from somebody else must not write elsewhere
        require(not (directory / name).is_symlink(), f"{directory / name} must not be a link; remove it")
    places = run_places(run)
    draw_figures(run, directory / "figures", places)
    write_page([run], directory / "report.html", run.record.title, places)
    return directory / "report.html"


PAGE_TITLE = "tacit demo: the paper's synthetic system"


def draw_demo(directory: Path, runs: dict[str, Run] | None = None) -> Path:
    """Draw a demo directory and return the page of the whole."""
    if runs is None:
        runs = {name: read_run(directory / name) for name in DEMO_RUNS if (directory / name).is_dir()}
    for name, run in runs.items():
        draw_run(directory / name, run)
    write_page(list(runs.values()), directory / "report.html", PAGE_TITLE)
    return directory / "report.html"

"""A fitted estimator in a notebook: the answer in words and the first edges, as HTML without scripts."""

from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, PackageLoader

from tacit.records import Run
from tacit.report.strongest import strongest_edges
from tacit.report.words import verdict

MOST_ROWS = 10
COLUMNS = ("exists", "probability", "std_error", "effect", "lag")


def summary_html(run: Run, name: str, is_series: bool, page: Path | None = None) -> str:
    """Return the summary; ``name`` is that of the estimator, ``page`` a report that was written."""
    columns, record = run.edges.each_once(), run.record
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
        link=None if page is None else _link(page),
    )


def _link(page: Path) -> str:
    """Return a link that a notebook in the working directory can follow, else one to the file."""
    full, here = page.resolve(), Path.cwd().resolve()
    if full.is_relative_to(here):
        return "./" + quote(full.relative_to(here).as_posix())
    return full.as_uri()

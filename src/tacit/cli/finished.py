"""``tacit plot`` and ``tacit compare``: what finished runs hold."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.options import Json, OwnSeed, at_least
from tacit.console import Display
from tacit.errors import InputError, require

SUFFIXES = ("png", "svg", "pdf")
SHOWN_EDGES = 20  # rows of the table; --json prints all


class Picture(StrEnum):
    """What ``tacit plot`` draws."""

    graph = "graph"
    matrix = "matrix"
    forecast = "forecast"
    calibration = "calibration"
    training = "training"


KIND = "graph, matrix, forecast, calibration or training."
OUT = "New .png, .svg or .pdf file. [default: NAME.png in the run's folder figures]"
DATA = "forecast, calibration: data in the format of the training data. [default: the test part]"
VALUES = "matrix: exists, probability, std_error, effect or lag. [default: exists]"
OPTIONS = {  # which of the options belong to which plot
    "node": ("forecast",),
    "steps": ("forecast",),
    "data": ("forecast", "calibration"),
    "values": ("matrix",),
    "seed": ("forecast",),
}


def plot(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Directory of a run, written by tacit.")],
    kind: Annotated[Picture, typer.Argument(metavar="KIND", help=KIND)],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help=OUT)] = None,
    data: Annotated[list[str] | None, typer.Option(metavar="FILE", help=DATA)] = None,
    node: Annotated[str | None, typer.Option(metavar="NAME", help="forecast: the node. [default: the first]")] = None,
    steps: Annotated[
        int | None,
        typer.Option(parser=at_least(1), metavar="N", help="forecast: the N steps after the end of the data."),
    ] = None,
    values: Annotated[str | None, typer.Option(metavar="NAME", help=VALUES)] = None,
    seed: OwnSeed = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    as_json: Json = False,
) -> None:
    """Draw one plot of a finished run: its graph, a matrix of its edges, forecasts, calibration or training."""
    with Display(quiet=quiet or as_json) as display:
        display.stage("starting")
        given = {"node": node, "steps": steps, "data": data or None, "values": values, "seed": seed}
        options = {name: value for name, value in given.items() if value is not None}
        for name in options:
            kinds = " and ".join(OPTIONS[name])
            require(kind in OPTIONS[name], f"--{name} belongs to {kinds}, got it with {kind.value}; leave it out")
        path = run / "figures" / f"{kind.value}.png" if out is None else out
        suffix = path.suffix.removeprefix(".")
        require(suffix in SUFFIXES, f"out must be a .png, .svg or .pdf file, got {path}; choose another --out")
        require(
            out is None or not path.exists(), f"out must be a new file, got {path}, which exists; choose another --out"
        )
        _draw(kind, run, options, path, suffix, is_default=out is None, display=display)
    print(json.dumps({"plot": str(path)}) if as_json else path)


def _draw(
    kind: Picture, run: Path, options: dict[str, Any], path: Path, suffix: str, *, is_default: bool, display: Display
) -> None:
    """Draw on a figure of its own and write the file atomically; the default file replaces an older one."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from tacit import plots
    from tacit.atomic_files import made, write_atomic
    from tacit.pipeline import write_asked_for
    from tacit.report import STYLE, figure_files

    classes = {
        Picture.graph: plots.GraphDisplay,
        Picture.matrix: plots.EdgeMatrixDisplay,
        Picture.forecast: plots.ForecastDisplay,
        Picture.calibration: plots.CalibrationDisplay,
        Picture.training: plots.TrainingDisplay,
    }
    if not run.is_dir():
        raise InputError(f"RUN must be a directory, got {run}; pass one that a tacit command wrote")
    display.stage("drawing")
    with mpl.rc_context(STYLE):
        display_class: Any = classes[kind]
        drawn = display_class.made(run, **options)
        figure = Figure(figsize=drawn.figsize, layout="constrained")
        drawn.plot(figure.subplots())
        (content,) = figure_files(figure, "plot", (suffix,)).values()
    if is_default:
        with made(path.parent):
            write_atomic(path, content)
    else:
        write_asked_for(path, content, option="out", other="--out", folder=True)


def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="A directory that tacit wrote.")],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="Another one, with nodes of the same names.")],
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    as_json: Json = False,
) -> None:
    """Compare two runs: the edges that both list or only one, how far they differ, and the forecast scores."""
    with Display(quiet=quiet or as_json) as display:
        display.stage("starting")
        from tacit.comparison import compare as compare_fits

        display.stage("comparing")
        found = compare_fits(first, second)
    if as_json:
        print(json.dumps({"first": str(first), "second": str(second), **found.to_dict()}, indent=2))
        return
    from rich.console import Console

    console = Console()

    def say(line: str) -> None:
        console.print(line, soft_wrap=True, markup=False, highlight=False)

    for sentence in found.sentences():
        say(sentence)
    if len(found.edges):
        more = len(found.edges) - SHOWN_EDGES
        say(
            f"\nedges, the first {SHOWN_EDGES} of {len(found.edges):,} (--json prints all):" if more > 0 else "\nedges:"
        )
        console.print(_edge_table(found.edges[:SHOWN_EDGES], "-" if found.symmetric else "->"))
        known = "; SE: difference of acts in standard errors" if found.edges["std_errors"].notna().any() else ""
        say(f"\n1, 2: the first and the second run{known}")
    if len(found.scores):
        say("\nscores of each run on its own test part:")
        console.print(_score_table(found.scores))


def _edge_table(edges: Any, arrow: str) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    table.add_column("edge")
    errors = edges["std_errors"].notna().any()
    for name in ("listed", "exists 1", "2", "acts 1", "2", "difference", *(["SE"] if errors else [])):
        table.add_column(name, justify="right", no_wrap=True)
    for row in edges.to_dict("records"):
        numbers = [row[f"{name}_{which}"] for name in ("exists", "acts") for which in ("first", "second")]
        cells = [*(_cell(value, ".3f") for value in numbers), _cell(row["acts_difference"], "+.3f")]
        cells += [_cell(row["std_errors"], "+.1f")] if errors else []
        table.add_row(Text(f"{row['source']} {arrow} {row['target']}"), row["listed"], *cells)  # no markup
    return table


def _score_table(scores: Any) -> Any:
    from rich.table import Table

    from tacit.cli.answers import SCORES

    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for name in ("first", "second", "difference"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, row in scores.iterrows():
        style = ".1%" if name.startswith("coverage") else ".4g"
        cells = _cell(row["first"], style), _cell(row["second"], style), _cell(row["difference"], f"+{style}")
        table.add_row(SCORES[name], *cells)
    return table


def _cell(value: float, style: str) -> str:
    return "-" if value != value else f"{value:{style}}"

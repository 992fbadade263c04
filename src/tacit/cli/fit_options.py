"""The options of ``tacit fit``, as types of its parameters, under the headings of its help."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.options import at_least

DATA, GRAPH, ASSESSMENT = "Data", "Graph", "Assessment"  # headings of the help


def _integer(low: int, text: str, heading: str) -> Any:
    return typer.Option(parser=at_least(low), metavar="N", help=text, rich_help_panel=heading)


def _text(metavar: str, text: str, heading: str) -> Any:
    return typer.Option(metavar=metavar, help=text, rich_help_panel=heading)


def _flag(name: str, text: str, heading: str) -> Any:
    return typer.Option(name, help=text, rich_help_panel=heading)


DataFiles = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DATA",
        help="Table (.csv, .tsv, .parquet, .feather, .xlsx) or .npz file. Several files, or a folder, are several "
        "series. beijing-air is an included example.",
        show_default=False,
    ),
]

TableFiles = Annotated[
    list[str],
    typer.Argument(metavar="TABLE", help="Table of series, as for tacit fit: files, a folder, or beijing-air."),
]
Series = Annotated[str | None, _text("NAME", "Column with the name of the series of each row.", DATA)]
Columns = Annotated[
    list[str] | None,
    _text("NAMES", "Columns of values to use, such as a,b or 'temp*'; may be repeated. [default: all]", DATA),
]
Drop = Annotated[
    list[str] | None, _text("NAMES", "Columns to ignore, such as a,b or 'unnamed*'; may be repeated.", DATA)
]
Where = Annotated[
    str | None,
    _text("CONDITION", "Use only targets in rows where CONDITION is true, such as 'month in (6, 7, 8)'.", DATA),
]
Calendar = Annotated[
    str | None,
    _text("PARTS", "Add parts of the date as covariates (sine and cosine), such as hour,weekday,month.", DATA),
]
Background = Annotated[
    str | None,
    _text(
        "auto|none|NAMES",
        "Trends, shifts and cycles beside which edges are tested: auto, none, or names such as daily,trend. "
        "[default: auto]",
        DATA,
    ),
]
YFile = Annotated[Path | None, _text("FILE", "Table of the targets y, if DATA is a table of the inputs x.", DATA)]
Decimal = Annotated[str | None, _text("MARK", "Decimal point of a text file: . (default) or ,", DATA)]
Dayfirst = Annotated[bool, _flag("--dayfirst", "Read dates such as 03/04/2021 with the day first.", DATA)]
Duplicates = Annotated[str | None, _text("HOW", "Rows with the same time: use the first, the last or the mean.", DATA)]
Window = Annotated[int | None, _integer(1, "Number of past steps in the input.", DATA)]
Horizon = Annotated[int | None, _integer(1, "Number of steps ahead to predict.", DATA)]

KnownEdges = Annotated[
    Path | None, _text("FILE", "CSV file of known edges: source,target,kind,probability,min_lag,max_lag.", GRAPH)
]
Symmetric = Annotated[bool, _flag("--symmetric", "Edges have no direction.", GRAPH)]
Simultaneous = Annotated[bool, _flag("--simultaneous", "Edges may also act within a time step, at lag 0.", GRAPH)]
DependsOn = Annotated[
    str | None,
    _text(
        "NAMES",
        "Edge probabilities may depend on parts of the date, columns, series or time, such as hour,season.",
        GRAPH,
    ),
]
Regimes = Annotated[
    str | None,
    _text("N|auto", "Edges may switch together between N regimes; auto: choose N from the data.", GRAPH),
]
SmallestEffect = Annotated[
    str | None,
    _text(
        "SHARE",
        "An edge must explain this share of what the other parents and drivers of its target explain; 0: any. "
        "[default: 0.02]",
        GRAPH,
    ),
]

Quick = Annotated[bool, _flag("--quick", "No assessment: no standard errors, fit test or controls.", ASSESSMENT)]
Thorough = Annotated[
    bool,
    _flag(
        "--thorough",
        "Full assessment, however long it takes: 32 resamples, 8 random starts, sandwich errors, controls.",
        ASSESSMENT,
    ),
]
StdErrors = Annotated[
    int | None,
    _integer(0, "Bootstrap replicas for standard errors; 0 for none. [default: 16, if this is fast]", ASSESSMENT),
]

Config = Annotated[Path | None, typer.Option(metavar="FILE", help="TOML config file; --init writes one.")]
Init = Annotated[Path | None, typer.Option(metavar="FILE", help="Write a commented config file and exit.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SECTION.KEY=VALUE",
        help="Set an option of the config file, such as --set training.epochs=20; may be repeated.",
    ),
]
RunOut = Annotated[Path | None, typer.Option(metavar="DIR", help="New directory for the run. [default: runs/NAME-N]")]
Resume = Annotated[
    Path | None,
    typer.Option(metavar="RUN", help="Resume a stopped run; no DATA and no other options are allowed."),
]

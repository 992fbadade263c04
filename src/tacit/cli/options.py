"""Options of the commands, and the form of their help."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

MOST_DIGITS = 15  # of a number of steps, samples or jobs
LARGEST_SEED = 10**30  # a limit only so that messages stay short


def whole_number(text: str | int) -> int:
    """Parse an integer from 0 to ``LARGEST_SEED``."""
    digits = str(text)
    if not digits.isdecimal():
        raise typer.BadParameter(f"must be an integer of at least 0, got '{text}'; pass for example 0")
    if len(digits) > len(str(LARGEST_SEED)) or int(digits) > LARGEST_SEED:
        raise typer.BadParameter(f"must be an integer of at most {LARGEST_SEED:,}, got '{text}'; pass for example 0")
    return int(digits)


def at_least(low: int) -> Callable[[str | int], int]:
    """Return a parser of integers with a lower limit."""

    def read(text: str | int) -> int:
        digits = str(text)
        sign, rest = (-1, digits[1:]) if digits.startswith("-") else (1, digits)
        if not rest.isdecimal() or len(rest) > MOST_DIGITS or sign * int(rest) < low:
            raise typer.BadParameter(f"must be an integer of at least {low}, got '{text}'; pass for example {low + 1}")
        return sign * int(rest)

    return read


Seed = Annotated[
    int,
    typer.Option(
        parser=whole_number, metavar="N", help="Random seed; the same seed gives the same results on one machine."
    ),
]
OwnSeed = Annotated[
    int | None,
    typer.Option(parser=whole_number, metavar="N", help="Seed of the sampled graphs. [default: seed of the run]"),
]
Device = Annotated[str, typer.Option(metavar="NAME", help="auto, cpu, cuda or cuda:N.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress; print only the path of the result.")]
NoNotes = Annotated[bool, typer.Option("--quiet", help="Show no progress and no notes.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]


def next_free(parent: Path, name: str) -> Path:
    """Return a directory that does not exist yet."""
    number = 1
    while (parent / f"{name}-{number}").exists():
        number += 1
    return parent / f"{name}-{number}"


def command_line() -> str:
    """Return the command as it was typed."""
    return shlex.join(["tacit", *sys.argv[1:]])


def require_complete(complete: bool, directory: Path, remedy: str = "") -> None:
    """Exit with code 1 and a message if the job was stopped early."""
    if not complete:
        print(f"tacit: stopped early; partial results are in {directory}{remedy}", file=sys.stderr)
        raise typer.Exit(1)


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


class GroupedCommand(TyperCommand):
    """A command whose help lists each option under its ``rich_help_panel``, and the others under "Options"."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line, without braces around required arguments."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each heading, in the order of the parameters."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                sections.setdefault("Arguments", []).append((str(parameter.metavar), record[1]))
            else:
                heading = getattr(parameter, "rich_help_panel", None) or "Options"
                sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)

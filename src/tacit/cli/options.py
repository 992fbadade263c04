"""Options of the commands, made from the sections of the config where they are its keys; the form of their help."""

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from annotated_types import Ge
from pydantic.fields import FieldInfo
from typer.core import TyperCommand

from tacit.config import AssessmentOptions, Closed, DataOptions, GraphOptions

Command = TypeVar("Command", bound=Callable[..., None])

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
SECTIONS: dict[str, type[Closed]] = {"data": DataOptions, "graph": GraphOptions, "assessment": AssessmentOptions}
ASSESSMENT = "Assessment"  # heading of the help
Settings = dict[tuple[str, str], Any]  # values by section and key


def config_keys(*sections: str, without: Sequence[str] = ()) -> Iterator[tuple[str, str, str, FieldInfo]]:
    """Return section, key, name of the option and field of each key that is also an option of the command."""
    for section in sections:
        for key, field in SECTIONS[section].model_fields.items():
            if isinstance(field.json_schema_extra, dict) and key not in without:
                name = str(field.json_schema_extra["flag"]) or f"--{key.replace('_', '-')}"
                yield section, key, name, field


def with_config_keys(*sections: str, without: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Decorate a command: its ``**options`` become the options of these sections, after its first parameter."""

    def decorate(run: Command) -> Command:
        first, *others = (one for one in signature(run).parameters.values() if one.kind is not one.VAR_KEYWORD)
        made = [
            Parameter(key, Parameter.KEYWORD_ONLY, default=False if kind is bool else None, annotation=annotation)
            for section, key, name, field in config_keys(*sections, without=without)
            for kind, annotation in [_parameter(name, section.capitalize(), field)]
        ]
        own = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in others]
        run.__signature__ = Signature([first, *made, *own])  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in [first, *made, *own]}
        return run

    return decorate


def _parameter(name: str, heading: str, field: FieldInfo) -> tuple[Any, Any]:
    """Return the type of an option and its annotation: a flag, an integer, names separated by commas, or text."""
    assert isinstance(field.json_schema_extra, dict)
    words, metavar = str(field.description), str(field.json_schema_extra["metavar"])
    usual = ", ".join(field.default) if isinstance(field.default, tuple) else field.default
    known = f" [default: {usual}]" if metavar and usual not in (None, "") else ""
    about: dict[str, Any] = {"help": f"{words[0].upper()}{words[1:]}.{known}", "rich_help_panel": heading}
    if not metavar:
        return bool, Annotated[bool, typer.Option(name, **about)]
    about |= {"metavar": metavar}
    if metavar == "N":
        low = next(int(one.ge) for one in field.metadata if isinstance(one, Ge))  # type: ignore[call-overload]
        return int, Annotated[int | None, typer.Option(name, parser=at_least(low), **about)]
    if "tuple[str" in str(field.annotation):
        return list, Annotated[list[str] | None, typer.Option(name, **about)]
    return str, Annotated[str | None, typer.Option(name, **about)]


def given_settings(options: Mapping[str, Any]) -> Settings:
    """Return the values of the options that were given, for the config."""
    found: Settings = {}
    for section, key, _, _ in config_keys(*SECTIONS):
        value: Any = options.get(key)
        if isinstance(value, list):
            value = tuple(name.strip() for text in value for name in text.split(",") if name.strip())
        if value is not None and value is not False:
            found[section, key] = _number_or_word(value) if key == "regimes" else value
    return found


def _number_or_word(text: str) -> int | str:
    """Return an integer if the text is one, and the text otherwise."""
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else text


Quick = Annotated[
    bool,
    typer.Option(
        "--quick", help="No assessment: no standard errors, fit test or controls.", rich_help_panel=ASSESSMENT
    ),
]
Thorough = Annotated[
    bool,
    typer.Option(
        "--thorough",
        help="Full assessment, however long it takes: 32 resamples, 8 random starts, sandwich errors, controls.",
        rich_help_panel=ASSESSMENT,
    ),
]
Config = Annotated[Path | None, typer.Option(metavar="FILE", help="TOML config file; --init writes one.")]
Init = Annotated[Path | None, typer.Option(metavar="FILE", help="Write a commented config file and exit.")]
Set = Annotated[
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

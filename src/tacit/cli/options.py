"""Options that several commands share, and the checks of their values."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

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

"""What all commands share: options, the device, where results go."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

MOST_DIGITS = 15  # of a number of steps, samples or jobs
LARGEST_SEED = 10**30  # any number would do, but nobody types a longer one


def whole_number(text: str | int) -> int:
    """Return a number that was typed."""
    digits = str(text)
    if not digits.isdecimal():
        raise typer.BadParameter(f"must be an integer of at least 0, got '{text}'; pass for example 0")
    if len(digits) > len(str(LARGEST_SEED)) or int(digits) > LARGEST_SEED:
        raise typer.BadParameter(f"must be an integer of at most {LARGEST_SEED:,}, got '{text}'; pass for example 0")
    return int(digits)


def at_least(low: int) -> Callable[[str | int], int]:
    """Return what reads a whole number that was typed, which needs to be no smaller."""

    def read(text: str | int) -> int:
        digits = str(text)
        sign, rest = (-1, digits[1:]) if digits.startswith("-") else (1, digits)
        if not rest.isdecimal() or len(rest) > MOST_DIGITS or sign * int(rest) < low:
            raise typer.BadParameter(f"must be an integer of at least {low}, got '{text}'; pass for example {low + 1}")
        return sign * int(rest)

    return read


Seed = Annotated[
    int, typer.Option(parser=whole_number, metavar="N", help="Random seed; results are reproducible on one machine.")
]
OwnSeed = Annotated[
    int | None,
    typer.Option(parser=whole_number, metavar="N", help="Seed of the random graphs. [default: seed of the run]"),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress; print only the path of the report.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]


def next_free(parent: Path, name: str) -> Path:
    """Return a directory that does not exist yet."""
    number = 1
    while (parent / f"{name}-{number}").exists():
        number += 1
    return parent / f"{name}-{number}"


def command_line() -> str:
    """Return what was typed."""
    return shlex.join(["tacit", *sys.argv[1:]])


def require_complete(complete: bool, directory: Path, remedy: str = "") -> None:
    """End with exit code 1, and say so, when a job was stopped before its end."""
    if not complete:
        print(f"tacit: stopped early; partial results are in {directory}{remedy}", file=sys.stderr)
        raise typer.Exit(1)

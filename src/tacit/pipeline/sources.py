"""The source of a fit: a table, arrays or an included data set, with its name in messages."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.config import TABLE_KEYS, DataOptions
from tacit.data import (
    NamedPairs,
    Series,
    in_season,
    load_beijing_air,
    read_frame,
    read_named_pairs,
    read_series,
    with_calendar,
)
from tacit.errors import InputError, require

SHIPPED = {"beijing-air": load_beijing_air}


@dataclass(frozen=True, eq=False)
class Source:
    """Pairs or series that were read, and where they came from."""

    name: str
    content: NamedPairs | Series


def read_source(source: str, options: DataOptions, *, piece: bool = False, out_channels: int | None = None) -> Source:
    """Read a file, or a data set that ships with the package.

    ``piece``         a few new rows may lack movement that training data must have
    ``out_channels``  an .npz file may lack ``y``, of so many channels
    """
    require(bool(source), "DATA must be a file (.csv, .parquet, .npz), got ''; check the path")
    path = Path(source)
    if source in SHIPPED and not path.exists():
        options.require_unset(TABLE_KEYS, source, "which is not a table")
        return Source(source, with_calendar(in_season(SHIPPED[source](), options.where), options.calendar))
    if path.suffix == ".npz":
        return Source(source, read_named_pairs(source, out_channels=out_channels))
    if path.suffix == "" and not path.exists():
        raise InputError(
            f"DATA must be a file (.csv, .parquet, .npz) or {', '.join(SHIPPED)}, got '{source}'; check the path"
        )
    return Source(source, read_series(source, **_table_options(options), piece=piece))


def read_table(frame: Any, options: DataOptions, *, piece: bool = False) -> Source:
    """Read a DataFrame, as a file with the same cells would be read; a list of them is a list of series."""
    if isinstance(frame, list | tuple):
        parts = [read_frame(one, **_table_options(options), piece=True) for one in frame]
        require(bool(parts), "the table must be a DataFrame or a list of them, got an empty list; pass some")
        return Source("the tables", Series.joined(parts))
    return Source("the table", read_frame(frame, **_table_options(options), piece=piece))


def _table_options(options: DataOptions) -> dict[str, Any]:
    names = ("layout", "time", "node", "value", "covariates", "levels", "calendar", "where", "series")
    return {**{name: getattr(options, name) for name in names}, "sep": options.separator}


@contextmanager
def about(source: str) -> Iterator[None]:
    """Begin the messages of errors with the file that they are about.

    >>> with about("levels.csv"):
    ...     raise InputError("requires more rows")
    Traceback (most recent call last):
    ...
    tacit.errors.InputError: levels.csv: requires more rows
    """
    try:
        yield
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(f"{source}: ") else f"{source}: {text}") from None

"""The source of a fit: a table, arrays or an included data set, with its name in messages."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.config import SELECTION_KEYS, TABLE_KEYS, DataOptions, FitConfig
from tacit.data import (
    NamedPairs,
    Series,
    Table,
    holds_pairs,
    leave_out,
    load_beijing_air,
    open_table,
    read_frame,
    read_named_pairs,
    read_pairs_table,
    read_series,
)
from tacit.errors import InputError, require

SHIPPED = {"beijing-air": load_beijing_air}


@dataclass(frozen=True, eq=False)
class Source:
    """Pairs or series that were read, and where they came from; ``used`` are options that a reader of pairs used."""

    name: str
    content: NamedPairs | Series
    used: tuple[str, ...] = ()

    def settled(self, config: FitConfig) -> FitConfig:
        """Return the config with what the reader found by itself, so that new data is read alike."""
        found = dict(self.content.settled) if isinstance(self.content, Series) else {}
        if not found:
            return config
        found["drop"] = tuple(dict.fromkeys((*config.data.drop, *found.get("drop", ()))))
        return config.model_copy(update={"data": config.data.model_copy(update=found)})


def read_source(
    source: str,
    options: DataOptions,
    *,
    piece: bool = False,
    out_channels: int | None = None,
    nodes: tuple[str, ...] = (),
) -> Source:
    """Read a file, or a data set that ships with the package.

    ``piece``         a few new rows may lack movement that training data must have
    ``nodes``         nodes that new rows must have
    ``out_channels``  the file has pairs, and may lack ``y``, of so many channels
    """
    require(bool(source), "DATA must be a file (.csv, .parquet, .npz), got ''; check the path")
    path = Path(source)
    if source in SHIPPED and not path.exists():
        options.require_unset(TABLE_KEYS, source, "which is not a table")
        return Source(source, SHIPPED[source]())
    if path.suffix == ".npz":
        return Source(source, read_named_pairs(source, out_channels=out_channels))
    if path.suffix == "" and not path.exists():
        raise InputError(
            f"DATA must be a file (.csv, .parquet, .npz) or {', '.join(SHIPPED)}, got '{source}'; check the path"
        )
    table = open_table(path, options.decimal)
    pairs = options.layout == "auto" and options.separator is None and holds_pairs(table)
    if pairs or options.y_file is not None or out_channels is not None:
        return _pairs_of_table(source, table, options, out_channels)
    return Source(source, read_series(table, **_table_options(options, nodes), piece=piece))


def _pairs_of_table(source: str, table: Table, options: DataOptions, out_channels: int | None) -> Source:
    """Read pairs; new ones have all columns in one file, whatever those of the fit had."""
    y_file = options.y_file if out_channels is None else None
    y_table = None if y_file is None else open_table(y_file, options.decimal)
    made = read_pairs_table(
        table,
        y_table,
        columns=options.columns,
        drop=options.drop,
        sep=options.separator,
        plain=options.y_file is not None,
        out_channels=out_channels,
    )
    return Source(source, made, (*SELECTION_KEYS, *(("y_file", "separator") if options.y_file else ())))


def read_table(frame: Any, options: DataOptions, *, piece: bool = False, nodes: tuple[str, ...] = ()) -> Source:
    """Read a DataFrame, as a file with the same cells would be read; a list of them is a list of series."""
    if isinstance(frame, list | tuple):
        parts = [read_frame(one, **_table_options(options, nodes), piece=True) for one in frame]
        require(bool(parts), "the table must be a DataFrame or a list of them, got an empty list; pass some")
        joined = Series.joined(parts)
        return Source("the tables", joined if piece else leave_out(joined, {}, options.targets or ()))
    return Source("the table", read_frame(frame, **_table_options(options, nodes), piece=piece))


def _table_options(options: DataOptions, nodes: tuple[str, ...]) -> dict[str, Any]:
    names = ("layout", "time", "node", "value", "covariates", "series", "dayfirst", *SELECTION_KEYS)
    given = {name: getattr(options, name) for name in names}
    return {**given, "sep": options.separator, "asked": (*(options.targets or ()), *nodes)}


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

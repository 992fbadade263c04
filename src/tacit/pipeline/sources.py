"""The source of a fit: the files that DATA names, a table, arrays or an included data set."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.config import EVENT_KEYS, SELECTION_KEYS, TABLE_KEYS, DataOptions, FitConfig
from tacit.data import (
    TABLE_ENDINGS,
    Columns,
    NamedPairs,
    Series,
    Table,
    covariate_table,
    holds_pairs,
    in_season,
    is_parquet_folder,
    leave_out,
    load_arrays,
    load_beijing_air,
    open_table,
    read_events,
    read_frame,
    read_named_pairs,
    read_pairs_table,
    read_series,
    table_of_frame,
    with_calendar,
    with_covariates,
)
from tacit.errors import InputError, did_you_mean, require


def data_files(sources: Sequence[str]) -> list[str]:
    """Return the files of the sources; a folder is replaced by the tables in it, sorted by name.

    A folder of Parquet files that form one table counts as one file; see :func:`tacit.data.is_parquet_folder`.
    """
    files: list[str] = []
    for source in sources:
        require(bool(source), "DATA must be a file (.csv, .parquet, .npz) or a folder, got ''; check the path")
        path = Path(source)
        if not path.is_dir() or is_parquet_folder(path):
            files.append(source)
            continue
        tables = sorted(str(one) for one in path.iterdir() if one.is_file() and one.name.endswith(TABLE_ENDINGS))
        found = [table for table in tables if not table.endswith(".txt")] or tables  # a readme.txt is not a table
        require(
            bool(found),
            f"{source}: the folder must have tables ({', '.join(TABLE_ENDINGS)}), got none; pass another folder",
        )
        files += found
    for position, file in enumerate(files):
        require(file not in files[:position], f"DATA must name every file once, got {file} twice; leave one out")
    return files


def series_labels(files: Sequence[str]) -> list[str]:
    """Return a name for the series of each file: the file name, with more of the path if two names are equal.

    >>> series_labels(["north/2020.csv", "north/2021.csv.gz"]), series_labels(["north/a.csv", "south/a.csv"])
    (['2020', '2021'], ['north/a', 'south/a'])
    >>> series_labels(["a.csv", "a.parquet"])
    ['a.csv', 'a.parquet']
    """
    paths = [Path(file).with_name(Path(file).name.split(".")[0]) for file in files]
    for labels in ([path.name for path in paths], [str(path) for path in paths]):
        if len(set(labels)) == len(labels):
            return labels
    return list(files)


def few_names(sources: Sequence[str]) -> str:
    """Return the name of several files in a title.

    >>> few_names(["a.csv"]), few_names(["data/a.csv", "data/b.csv"]), few_names(["a.csv", "b.csv", "c.csv"])
    ('a.csv', 'a.csv and b.csv', 'a.csv and 2 more files')
    """
    if len(sources) == 1:
        return sources[0]
    names = [Path(source).name for source in sources]
    return " and ".join(names) if len(names) == 2 else f"{names[0]} and {len(names) - 1} more files"


SHIPPED = {"beijing-air": load_beijing_air}
COVARIATE_KEYS = ("covariates", "levels")
SAME_STEP = 0.25  # of a step: months and years differ in length


@dataclass(frozen=True, eq=False)
class Source:
    """Pairs or series that were read, and where they came from; ``used`` are options that a reader of pairs used."""

    name: str
    content: NamedPairs | Series
    used: tuple[str, ...] = ()

    def settled(self, config: FitConfig) -> FitConfig:
        """Return the config with the options that the reader found, so that new data is read in the same way."""
        series = isinstance(self.content, Series)
        found = dict(self.content.settled) if isinstance(self.content, Series) else {}
        for name, words in self.content.levels.items():
            require(
                len(words) > 1,
                f"{self.name}: covariate '{name}' must have two levels or more, got only '{words[0]}'; leave it out",
            )
            found["levels"] = dict(self.content.levels)
        if not series:
            return config.model_copy(update={"data": config.data.model_copy(update=found)})
        found["drop"] = tuple(dict.fromkeys((*config.data.drop, *found.get("drop", ()))))
        return config.model_copy(update={"data": config.data.model_copy(update=found)})


def read_sources(
    sources: Sequence[str],
    options: DataOptions,
    *,
    piece: bool = False,
    out_channels: int | None = None,
    nodes: tuple[str, ...] = (),
) -> Source:
    """Read one file, several files or a folder; each file is one series or more.

    ``piece``         a few new rows, in which nodes may be constant
    ``nodes``         nodes that new rows must have
    ``out_channels``  the file has pairs and may lack ``y``, which has this number of channels
    """
    files = data_files(sources)
    require(
        len(files) == 1 or not options.events,
        f"events must be in one file, got {len(files)}; put them into one table, with a column of units",
    )
    if len(files) == 1:
        return read_source(files[0], options, piece=piece, out_channels=out_channels, nodes=nodes)
    require(options.y_file is None, f"y_file requires one file of x, got {len(files)} files; pass one, or leave it out")
    parts, labels = [], series_labels(files)
    for file in files:
        content = read_source(file, options, piece=True, nodes=nodes).content
        if not isinstance(content, Series):
            raise InputError(f"{file}: several files must be tables of series, got pairs; pass one file of pairs")
        parts.append(content)
    names = [
        f"{label}/{name}" if name else label
        for label, part in zip(labels, parts, strict=True)
        for name in part.series_names or ("",)
    ]
    return Source(few_names(sources), joined(parts, names, files, options, piece=piece))


def joined(
    parts: list[Series], names: list[str] | None, whose: Sequence[str], options: DataOptions, *, piece: bool
) -> Series:
    """Return several series as one object; all must have the same step."""
    steps = [_step(part) for part in parts]
    known = [(step, name) for step, name in zip(steps, whose, strict=True) if step is not None]
    for step, name in known[1:]:
        first = known[0]
        require(
            type(step) is not type(first[0]) or bool(abs(step - first[0]) <= SAME_STEP * first[0]),
            f"{name} must have steps of {first[0]}, as {first[1]} has, got steps of {step}; resample one of them",
        )
    together = Series.joined(parts, names)
    for name in () if piece else together.unused:
        columns = together.nodes + (together.channels if len(together.channels) > 1 else ())
        near = did_you_mean(name, columns)
        raise InputError(f"columns and drop must name columns of the tables, got '{name}', which is in none{near}")
    asked = (*(options.columns or ()), *(options.targets or ()))
    return leave_out(together, {}, asked, piece=piece)


def _step(series: Series) -> Any:
    """Return the median step of times, or None."""
    steps = np.concatenate([np.diff(part.row_times) for part in series.parts])
    return np.sort(steps)[len(steps) // 2] if len(steps) else None


def read_source(
    source: str,
    options: DataOptions,
    *,
    piece: bool = False,
    out_channels: int | None = None,
    nodes: tuple[str, ...] = (),
) -> Source:
    """Read one file, or a data set included in the package; see :func:`read_sources`."""
    path = Path(source)
    _require_events(source, options)
    if source in SHIPPED and not path.exists():
        options.require_unset(TABLE_KEYS, source, "which is not a table")
        return Source(source, with_calendar(in_season(SHIPPED[source](), options.where), options.calendar))
    if path.suffix == ".npz":
        return _pairs_of_arrays(source, options, out_channels)
    if path.suffix == "" and not path.exists():
        raise InputError(
            f"DATA must be a file (.csv, .parquet, .npz) or {', '.join(SHIPPED)}, got '{source}'; check the path"
        )
    table = open_table(path, options.decimal)
    if options.events:
        return Source(source, _events_of(table, options, piece=piece, nodes=nodes))
    pairs = options.layout == "auto" and options.separator is None and holds_pairs(table)
    if pairs or options.y_file is not None or out_channels is not None:
        return _pairs_of_table(source, table, options, out_channels)
    return Source(source, read_series(table, **_table_options(options, nodes), piece=piece))


def _pairs_of_arrays(source: str, options: DataOptions, out_channels: int | None) -> Source:
    """Read pairs from an .npz file, with the covariates that are named."""
    named = read_named_pairs(source, out_channels=out_channels)
    if not options.covariates:
        return Source(source, named)
    arrays = load_arrays(Path(source))
    with about(source):
        table = covariate_table(arrays.get("covariates"), arrays.get("covariate_names"), source)
        return Source(source, with_covariates(named, table, options.covariates, options.levels), COVARIATE_KEYS)


def _pairs_of_table(source: str, table: Table, options: DataOptions, out_channels: int | None) -> Source:
    """Read pairs from a table; new pairs have all columns in one file, also if the fit used two."""
    y_file = options.y_file if out_channels is None else None
    y_table = None if y_file is None else open_table(y_file, options.decimal)
    shared = table
    for name in options.covariates:
        table.require_column("covariates", name)
    table = table.without(set(options.covariates))
    made = read_pairs_table(
        table,
        y_table,
        columns=options.columns,
        drop=options.drop,
        sep=options.separator,
        plain=options.y_file is not None,
        out_channels=out_channels,
    )
    made = with_covariates(made, shared, options.covariates, options.levels)
    return Source(
        source, made, (*COVARIATE_KEYS, *SELECTION_KEYS, *(("y_file", "separator") if options.y_file else ()))
    )


def read_table(frame: Any, options: DataOptions, *, piece: bool = False, nodes: tuple[str, ...] = ()) -> Source:
    """Read a DataFrame like a file with the same cells; a list of DataFrames is a list of series."""
    _require_events("the table", options)
    if options.events:
        table = table_of_frame(frame, options.decimal)
        return Source("the table", _events_of(table, options, piece=piece, nodes=nodes))
    if isinstance(frame, list | tuple):
        parts = [read_frame(one, **_table_options(options, nodes), piece=True) for one in frame]
        require(bool(parts), "the table must be a DataFrame or a list of them, got an empty list; pass some")
        whose = [f"table {number}" for number in range(1, len(parts) + 1)]
        return Source("the tables", joined(parts, None, whose, options, piece=piece))
    return Source("the table", read_frame(frame, **_table_options(options, nodes), piece=piece))


def _require_events(source: str, options: DataOptions) -> None:
    """Refuse options of events for other tables."""
    if not options.events:
        options.require_unset(EVENT_KEYS, source, "which is read without --events (events in [data])")


def _events_of(table: Table, options: DataOptions, *, piece: bool, nodes: tuple[str, ...]) -> Series:
    """Return the counts of a table of events; new events have the types of the fit."""
    given = {name: value for name, value in _table_options(options, ()).items() if name != "decimal"}
    require(options.y_file is None, "y_file has no meaning for events; leave it out")
    require(not options.calendar, "calendar has no meaning for events; leave it out")
    return read_events(
        table,
        Columns.of(given),
        bin=options.bin,
        end=options.end,
        units=options.units,
        window=options.window,
        horizon=options.horizon,
        nodes=nodes if piece else (),
    )


def _table_options(options: DataOptions, nodes: tuple[str, ...]) -> dict[str, Any]:
    names = ("layout", "time", "node", "value", "covariates", "levels", "series", "where", "calendar", "dayfirst")
    given = {name: getattr(options, name) for name in (*names, "duplicates", *SELECTION_KEYS)}
    return {**given, "sep": options.separator, "asked": (*(options.targets or ()), *nodes)}


@contextmanager
def about(source: str) -> Iterator[None]:
    """Prefix the messages of errors with the name of the file.

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

"""Tables as they are in files or in memory: columns of cells, converted to numbers, names and times on demand.

Files are text, Parquet (also a folder of it), Feather or Excel; tables in memory have an Arrow interface. Numbers stay
in Arrow memory until they are copied into the array of a series, so that there is no second copy.
"""

import csv
import gzip
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from tacit.data.series import LARGEST, RESCALE, Times
from tacit.data.times import looks_like_dates, parse_dates
from tacit.errors import InputError, did_you_mean, require, require_package

TEXT_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt")
TABLE_ENDINGS = (*TEXT_ENDINGS, ".parquet", ".feather", ".xlsx")
WITH_ZONE = re.compile(r":\d\d.*(Z|[+-]\d\d:?\d\d)$")
COMMA_NUMBER = r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*"
LIKE_A_NUMBER = r"\s*[+-]?(?=.*\d)(\d{1,3}([.,' ]\d{3})+|\d*)([.,]\d*)?([eE][+-]?\d+)?\s*"  # in any notation
LONGEST_HEADER = 10_000_000  # characters; a file without line breaks is refused before it is read
DECIMAL_COMMA = "use --decimal , where the comma is the decimal point"

Numbers = Float[np.ndarray, " row"]


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of a file. Messages count rows from 1 below the header."""

    path: Path | str  # or the name of a table in memory, for messages
    columns: tuple[str, ...]
    frame: Any  # pandas.DataFrame, its columns numbered from 0; the cells of text files are text
    decimal: str = "."  # the decimal point of numbers that are text
    notes: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()  # columns from names of folders; they are nodes only if the user names them
    unordered: bool = False  # rows come from several files, in no order

    def __post_init__(self) -> None:
        require(self.decimal in (".", ","), f"decimal must be '.' or ',', got {self.decimal!r}; pick one")

    def refuse(self, message: str) -> InputError:
        """Return an error whose message starts with the path of this file."""
        return InputError(f"{self.path}: {message}")

    def require_column(self, argument: str, column: str) -> None:
        """Raise :class:`InputError` unless the column exists."""
        if column not in self.columns:
            raise self.refuse(
                f"{argument} names the column '{column}', which does not exist{did_you_mean(column, self.columns)}"
            )

    def numbers(
        self, column: str, remedy: str = "correct the cell, or leave the column out", largest: float = LARGEST
    ) -> Numbers:
        """Return a column as float64, NaN for empty cells."""
        cells = self.cells(column)
        if self._is_number_type(cells):
            values: Numbers = cells.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            parsed = self._parsed(cells)
            bad = parsed.isna() & cells.notna()
            if bad.any():
                text = cells.astype("str").where(cells.notna())
                self._refuse_first(column, text, bad, "numbers", self._remedy(cells[bad].iloc[0]) or remedy)
            values = parsed.to_numpy(dtype=np.float64, na_value=np.nan)
        self._refuse_first(column, cells, np.isinf(values), "finite numbers", remedy)
        self._refuse_first(column, cells, np.abs(values) > largest, f"numbers of at most {largest:g}", RESCALE)
        return values

    def many_numbers(
        self, columns: Sequence[str], remedy: str = "correct it, or leave the column out with --drop"
    ) -> Float[np.ndarray, "row column"]:
        """Return several columns side by side."""
        values = self.numbers_at_once(columns)
        if values is None:
            values = np.empty((len(self.frame), len(columns)))
            for place, column in enumerate(columns):
                values[:, place] = self.numbers(column, remedy)  # its error names the cell
        return values

    def numbers_at_once(self, columns: Sequence[str]) -> Float[np.ndarray, "row column"] | None:
        """Return columns of text as numbers in one call, which is much faster; None if a cell is not a number."""
        values, bad = self._at_once(columns)
        return None if values is None or bad.any() or (np.abs(values) > LARGEST).any() else values

    def with_others(self, columns: Sequence[str]) -> list[str]:
        """Return the columns that have a cell which is neither a number nor empty."""
        text = [column for column in columns if not self._is_number_type(self.cells(column))]
        values, bad = self._at_once(text)
        return text if values is None else [text[place] for place in np.flatnonzero(bad.any(axis=0))]

    def _at_once(self, columns: Sequence[str]) -> tuple[np.ndarray | None, Bool[np.ndarray, "row column"]]:
        """Return the numbers of text columns of one type (None for others), and which cells are not numbers."""
        import pandas as pd

        places, shape = [self._places[column] for column in columns], (len(self.frame), len(columns))
        kinds = set(self.frame.dtypes.iloc[places])
        if len(kinds) != 1 or self._is_number_type(self.frame[places[0]]):
            return None, np.zeros((0, 0), dtype=bool)
        cells = pd.Series(self.frame[places].to_numpy().ravel(), dtype=kinds.pop())
        values = self._parsed(cells).to_numpy(dtype=np.float64, na_value=np.nan)
        bad = np.isnan(values) & cells.notna().to_numpy()
        return values.reshape(shape), bad.reshape(shape)

    def is_numeric(self, column: str) -> bool:
        """Return whether every cell of a column is a number or empty, and at least one is a number."""
        try:
            return bool(np.isfinite(self.numbers(column, largest=np.inf)).any())
        except InputError:
            return False

    def is_text(self, column: str) -> bool:
        """Return whether fewer than half of the non-empty cells are numbers, in any notation."""
        cells = self.cells(column)
        if self._is_number_type(cells) or not cells.notna().any():
            return False
        there = cells[cells.notna()]
        numbers = self._parsed(there).notna() | there.astype("str").str.fullmatch(LIKE_A_NUMBER)
        return bool(numbers.mean() < 0.5)

    def is_whole(self, column: str) -> bool:
        """Return whether every cell of a column is an integer."""
        if not self.is_numeric(column):
            return False
        numbers = self.numbers(column, largest=np.inf)
        return bool((numbers == np.rint(numbers)).all())

    def is_dates(self, column: str) -> bool:
        """Return whether every cell of a column is a date, written as a date."""
        import pandas as pd

        cells = self.cells(column)
        if pd.api.types.is_datetime64_any_dtype(cells):
            return bool(cells.notna().all())
        if self._is_number_type(cells) or pd.to_numeric(cells.iloc[:1].astype("str"), errors="coerce").notna().all():
            return False
        return not cells.isna().any() and looks_like_dates(cells.astype("str"))

    def without(self, columns: Collection[str]) -> "Table":
        """Return the table without some columns."""
        if not columns:
            return self
        places = [place for place, column in enumerate(self.columns) if column not in columns]
        frame = self.frame[places].set_axis(range(len(places)), axis="columns")
        return replace(self, columns=tuple(self.columns[place] for place in places), frame=frame)

    def in_order(self, times: Times) -> "Table":
        """Return the table sorted by time if its rows may have any order, and the table itself otherwise."""
        order = np.argsort(times, kind="stable")
        if not self.unordered or (np.diff(order) == 1).all():
            return self
        return replace(self, frame=self.frame.iloc[order].reset_index(drop=True))

    def names(self, column: str) -> list[str]:
        """Return a column of names, without empty cells."""
        which, names = self.distinct_names(column)
        return [names[number] for number in which.tolist()]

    def distinct_names(self, column: str) -> tuple[Int[np.ndarray, " row"], list[str]]:
        """Return the number of the name of each row, and the names; empty cells are refused."""
        import pandas as pd

        cells = self.cells(column)
        self._refuse_first(column, cells, cells.isna(), "a name in every row", "fill it in, or remove the row")
        which, written = pd.factorize(cells)
        place, names = pd.factorize(np.array([str(name).strip() for name in written], dtype=object))  # "m2 " is m2
        return place[which], names.tolist()

    def times(self, column: str, dayfirst: bool | None = None) -> tuple[Times, bool | None, tuple[str, ...]]:
        """Return a column of times, numbers or dates, whether dates such as 3/4/2026 have the day first, and notes.

        See :func:`tacit.data.times.parse_dates` for ``dayfirst``.
        """
        import pandas as pd

        cells = self.cells(column)
        remedy = "write times as numbers or as YYYY-MM-DD HH:MM:SS"
        self._refuse_first(column, cells, cells.isna(), "a time in every row", "fill it in, or remove the row")
        notes: tuple[str, ...] = ()
        if pd.api.types.is_datetime64_any_dtype(cells):
            zoned = cells.dt.tz is not None
            dayfirst, parsed = None, pd.to_datetime(cells, utc=True)
        elif self._is_number_type(cells) or self.is_numeric(column):
            numbers = self.numbers(column, largest=np.inf)
            whole = bool((numbers == np.rint(numbers)).all() and np.abs(numbers).max() < 2**53)
            return (numbers.astype(np.int64) if whole else numbers), None, ()
        else:
            text = cells.astype("str")
            if self._remedy(text.iloc[0]):  # pandas reads some of these numbers as dates
                self.numbers(column)
            zoned = bool(WITH_ZONE.search(text.iloc[0]))
            try:
                parsed, dayfirst, notes = parse_dates(text, dayfirst, column)
            except InputError as error:
                raise self.refuse(str(error)) from None
            bad = parsed.isna()
            if bad.any():
                self._refuse_first(column, text, bad, "times", self._remedy(text[bad].iloc[0]) or remedy)
        notes += (f"times of column '{column}' were converted to UTC",) if zoned else ()
        times = parsed.dt.tz_localize(None).to_numpy()
        seconds = times.astype("datetime64[s]")
        return (seconds if (seconds == times).all() else times), dayfirst, notes

    def _parsed(self, cells: Any) -> Any:
        """Return cells as numbers, NaN if a cell is not a number; separators of thousands are not accepted."""
        import pandas as pd

        text = cells.astype("str").where(cells.notna())
        if self.decimal == ",":
            written = True if cells.dtype != object else cells.map(lambda cell: isinstance(cell, str))
            text = text.mask(text.str.contains(".", regex=False, na=False) & written)
            text = text.str.replace(",", ".", regex=False)
        return pd.to_numeric(text, errors="coerce")

    def _remedy(self, cell: object) -> str | None:
        """Return the remedy for a cell that is a number in another notation."""
        if not isinstance(cell, str) or not re.fullmatch(LIKE_A_NUMBER, cell):
            return None
        if self.decimal == "." and re.fullmatch(COMMA_NUMBER, cell):
            return DECIMAL_COMMA
        return f"write '{self.decimal}' as the decimal point and nothing between thousands"

    def cells(self, column: str) -> Any:
        """Return the cells of a column as they are, a pandas.Series."""
        return self.frame[self._places[column]]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {column: place for place, column in reversed(list(enumerate(self.columns)))}

    def _refuse_first(self, column: str, cells: Any, bad: Any, need: str, remedy: str) -> None:
        import pandas as pd

        rows = np.flatnonzero(np.asarray(bad, dtype=bool))
        if len(rows):
            cell = cells.iloc[rows[0]]
            got = "an empty cell" if pd.isna(cell) else repr(cell if isinstance(cell, str) else str(cell))
            more = f" ({len(rows)} such cells)" if len(rows) > 1 else ""
            raise self.refuse(f"column '{column}' must have {need}, got {got} in row {rows[0] + 1}{more}; {remedy}")

    @staticmethod
    def _is_number_type(cells: Any) -> bool:
        import pandas as pd

        others = pd.api.types.is_bool_dtype(cells) or pd.api.types.is_complex_dtype(cells)
        return bool(pd.api.types.is_numeric_dtype(cells) and not others)


def open_table(path: str | Path, decimal: str = ".") -> Table:
    """Read the cells of a text file, Parquet file (or folder), Feather or Excel file."""
    path = Path(path)
    if is_parquet_folder(path):
        return checked(replace(_read_parquet_folder(path), decimal=decimal))
    require_file(path)
    require(
        path.name.endswith(TABLE_ENDINGS),
        f"{path}: a table must end in {', '.join(TABLE_ENDINGS)}; convert it, or rename it",
    )
    require(path.stat().st_size > 0, f"{path}: the file is empty; pass a table with a header and rows")
    readers = {".parquet": _read_arrow_file, ".feather": _read_arrow_file, ".xlsx": _read_excel}
    return checked(replace(readers.get(path.suffix, _read_text)(path), decimal=decimal))


def checked(table: Table) -> Table:
    """Return the table if its column names are unique and it has rows."""
    import pandas as pd

    for place in np.flatnonzero(pd.Index(table.columns).duplicated())[:1]:
        raise table.refuse(f"the header must have unique names, got '{table.columns[place]}' twice; rename one")
    if len(table.frame) == 0:
        raise table.refuse("there is a header but no rows; pass a table with rows")
    return table


def require_file(path: Path) -> None:
    """Raise :class:`InputError` unless ``path`` is a file that can be read."""
    try:
        require(path.exists(), f"{path}: there is no such file; check the name")
        require(path.is_file(), f"{path}: is a directory or a device; pass a file")
        path.open("rb").close()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); pass another file") from None


def _read_text(path: Path) -> Table:
    import pandas as pd

    try:
        with (gzip.open if path.name.endswith(".gz") else open)(path, "rt", encoding="utf-8-sig", newline="") as stream:
            first = stream.readline(LONGEST_HEADER)
            require(
                len(first) < LONGEST_HEADER,
                f"{path}: the first line must have less than {LONGEST_HEADER:,} characters; pass a table with a header",
            )
            tabs = ".tsv" in path.suffixes and "\t" in first
            separator = "\t" if tabs else max(",;\t", key=first.count)
            stream.seek(0)
            header = next(csv.reader(stream, delimiter=separator))
            stream.seek(0)
            frame = pd.read_csv(
                stream, sep=separator, header=None, skiprows=1, dtype=str, index_col=False, skipinitialspace=True
            )
    except StopIteration:
        raise InputError(f"{path}: the file is empty; pass a table with a header and rows") from None
    except pd.errors.EmptyDataError:
        frame = pd.DataFrame(columns=range(len(header)))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: must be text in UTF-8, got byte {error.start} that is not; convert it") from None
    except (pd.errors.ParserError, csv.Error, EOFError, gzip.BadGzipFile, zlib.error) as error:
        detail = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise InputError(f"{path}: cannot be read as a table: {detail}; correct that line") from None
    if frame.shape[1] != len(header):
        raise InputError(
            f"{path}: the header names {len(header)} columns but row 1 has {frame.shape[1]} cells; "
            "give every column a name"
        )
    return Table(path, tuple(name.strip() for name in header), frame)


def is_parquet_folder(path: Path) -> bool:
    """Return whether a folder is one table: named .parquet, or with files part-*.parquet or folders key=value."""
    if not path.is_dir():
        return False
    keyed = (one for one in path.iterdir() if one.is_dir() and "=" in one.name.strip("="))
    return (
        path.name.endswith(".parquet")
        or any(path.glob("part-*.parquet"))
        or any(next(one.rglob("*.parquet"), None) is not None for one in keyed)
    )


def _read_arrow_file(path: Path) -> Table:
    """Read a Parquet or Feather file."""
    require_package("pyarrow", f"{path}: reading {path.suffix}", "command")
    from pyarrow.feather import read_table
    from pyarrow.parquet import ParquetFile

    with _readable(path, path.suffix[1:]):
        if path.suffix == ".feather":
            return table_of_arrow(read_table(path), path)
        with ParquetFile(path) as file:
            return table_of_arrow(file.read(), path)


def _read_parquet_folder(path: Path) -> Table:
    """Read all Parquet files of a folder as one table; names of folders such as year=2026 are columns."""
    require_package("pyarrow", f"{path}: reading a folder of .parquet files", "command")
    from pyarrow.dataset import dataset

    files = sorted(str(one) for one in path.rglob("*.parquet") if one.is_file())
    require(bool(files), f"{path}: the folder must have .parquet files, got none; pass another folder")
    with _readable(path, "a folder of parquet files"):
        parts = dataset(files, format="parquet", partitioning="hive", partition_base_dir=str(path))
        stored = set(parts.schema.names) - set(next(parts.get_fragments()).physical_schema.names)
        table = table_of_arrow(parts.to_table(), path)
    keys = tuple(name for name in table.columns if name in stored)
    return replace(table, keys=keys, unordered=len(files) > 1)


def _read_excel(path: Path) -> Table:
    """Read the first sheet of an Excel file; its first row has the names."""
    import pandas as pd

    require_package("openpyxl", f"{path}: reading .xlsx", "excel")
    with _readable(path, "xlsx"), pd.ExcelFile(path, engine="openpyxl") as book:
        sheets = [str(name) for name in book.sheet_names]
        rows = pd.read_excel(book, sheet_name=sheets[0], header=None, dtype=object)
    require(len(rows) > 0, f"{path}: sheet '{sheets[0]}' is empty; pass a table with a header and rows")
    header = rows.iloc[0]
    used = [place for place in rows.columns if pd.notna(header[place]) or rows[place].iloc[1:].notna().any()]
    names = tuple("" if pd.isna(header[place]) else str(header[place]).strip() for place in used)
    frame = rows.iloc[1:].dropna(how="all")[used].reset_index(drop=True).infer_objects()
    notes = (f"sheet '{sheets[0]}' was read, the first of {len(sheets)}",) if len(sheets) > 1 else ()
    return Table(path, names, frame.set_axis(range(len(used)), axis="columns"), notes=notes)


def is_arrow(data: Any) -> bool:
    """Return whether a table in memory has the Arrow C interface, as tables of polars and pyarrow do."""
    return hasattr(data, "__arrow_c_stream__") and not hasattr(data, "iloc")


def table_of_arrow(data: Any, what: Path | str) -> Table:
    """Return the columns of an Arrow table, or of a table with an Arrow interface; numbers are not copied."""
    require_package("pyarrow", f"{what}: reading an Arrow table", "command")
    import pandas as pd
    import pyarrow as pa

    try:
        table = data if isinstance(data, pa.Table) else pa.table(data)
    except (pa.ArrowException, TypeError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise InputError(f"{what}: cannot be read as an Arrow table: {reason}; pass a table with columns") from None
    for name in table.column_names:
        require(table.column_names.count(name) == 1, f"{what}: the table has column '{name}' twice; rename one")

    def uncopied(kind: Any) -> Any:
        return pd.ArrowDtype(kind) if pa.types.is_floating(kind) or pa.types.is_integer(kind) else None

    frame = table.to_pandas(types_mapper=uncopied)
    if frame.index.name is not None or isinstance(frame.index, pd.DatetimeIndex | pd.MultiIndex):
        frame = frame.reset_index()  # times are often the index
    columns = tuple(str(column) for column in frame.columns)
    return Table(what, columns, frame.reset_index(drop=True).set_axis(range(len(columns)), axis="columns"))


def frame_of_arrow(data: Any, what: str) -> Any:
    """Return an Arrow table, or a table with an Arrow interface, as a pandas.DataFrame with its column names."""
    table = table_of_arrow(data, what)
    return table.frame.set_axis(list(table.columns), axis="columns")


@contextmanager
def _readable(path: Path, kind: str) -> Iterator[None]:
    """Turn every error of a file reader into an :class:`InputError`: damaged files can raise any exception."""
    try:
        yield
    except MemoryError:
        raise InputError(f"{path}: does not fit in memory; pass fewer rows") from None
    except InputError:
        raise
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise InputError(f"{path}: cannot be read as {kind}: {reason}; write it again") from None

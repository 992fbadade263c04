"""Readers of Parquet (files and folders), Feather and Excel files, and of tables in memory with an Arrow interface.

Numbers stay in Arrow memory until they are copied into the array of a series, so that there is no second copy.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tacit.errors import InputError, require

TEXT_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt")
TABLE_ENDINGS = (*TEXT_ENDINGS, ".parquet", ".feather", ".xlsx")
NO_EXCEL = "reading .xlsx requires openpyxl, which is not installed; pip install 'tacit[excel]', or save it as .csv"


@dataclass(frozen=True, eq=False)
class Cells:
    """Columns of cells as a file has them.

    ``keys``       columns from names of folders, such as year=2026
    ``unordered``  rows come from several files, in no order
    """

    columns: tuple[str, ...]
    frame: Any  # pandas.DataFrame, its columns numbered from 0
    notes: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    unordered: bool = False


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


def read_parquet(path: Path) -> Cells:
    """Read a Parquet file."""
    from pyarrow.parquet import ParquetFile

    with _readable(path, "parquet"), ParquetFile(path) as file:
        return cells_of_arrow(file.read(), str(path))


def read_parquet_folder(path: Path) -> Cells:
    """Read all Parquet files of a folder as one table; names of folders such as year=2026 are columns."""
    from pyarrow.dataset import dataset

    files = sorted(str(one) for one in path.rglob("*.parquet") if one.is_file())
    require(bool(files), f"{path}: the folder must have .parquet files, got none; pass another folder")
    with _readable(path, "a folder of parquet files"):
        parts = dataset(files, format="parquet", partitioning="hive", partition_base_dir=str(path))
        stored = set(parts.schema.names) - set(next(parts.get_fragments()).physical_schema.names)
        read = cells_of_arrow(parts.to_table(), str(path))
    keys = tuple(name for name in read.columns if name in stored)
    return Cells(read.columns, read.frame, keys=keys, unordered=len(files) > 1)


def read_feather(path: Path) -> Cells:
    """Read a Feather file."""
    from pyarrow.feather import read_table

    with _readable(path, "feather"):
        return cells_of_arrow(read_table(path), str(path))


def read_excel(path: Path) -> Cells:
    """Read the first sheet of an Excel file; its first row has the names."""
    import pandas as pd

    require(find_spec("openpyxl") is not None, f"{path}: {NO_EXCEL}")
    with _readable(path, "xlsx"), pd.ExcelFile(path, engine="openpyxl") as book:
        sheets = [str(name) for name in book.sheet_names]
        rows = pd.read_excel(book, sheet_name=sheets[0], header=None, dtype=object)
    require(len(rows) > 0, f"{path}: sheet '{sheets[0]}' is empty; pass a table with a header and rows")
    header = rows.iloc[0]
    used = [place for place in rows.columns if pd.notna(header[place]) or rows[place].iloc[1:].notna().any()]
    names = tuple("" if pd.isna(header[place]) else str(header[place]).strip() for place in used)
    frame = rows.iloc[1:].dropna(how="all")[used].reset_index(drop=True).infer_objects()
    note = f"sheet '{sheets[0]}' was read, the first of {len(sheets)}"
    return Cells(names, frame.set_axis(range(len(used)), axis="columns"), (note,) if len(sheets) > 1 else ())


def is_arrow(data: Any) -> bool:
    """Return whether a table in memory has the Arrow C interface, as tables of polars and pyarrow do."""
    return hasattr(data, "__arrow_c_stream__") and not hasattr(data, "iloc")


def cells_of_arrow(data: Any, what: str) -> Cells:
    """Return the columns of an Arrow table, or of a table with an Arrow interface; numbers are not copied."""
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
    return Cells(columns, frame.reset_index(drop=True).set_axis(range(len(columns)), axis="columns"))


def frame_of_arrow(data: Any, what: str) -> Any:
    """Return an Arrow table, or a table with an Arrow interface, as a pandas.DataFrame with its column names."""
    cells = cells_of_arrow(data, what)
    return cells.frame.set_axis(list(cells.columns), axis="columns")


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

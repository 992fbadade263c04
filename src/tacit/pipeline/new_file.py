"""New files that the user named: written atomically, existing files are never overwritten."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.atomic_files import NO_SPACE, made, write_new
from tacit.errors import InputError, require

if TYPE_CHECKING:
    import pandas as pd

TABLES = (".csv", ".parquet")


def write_asked_for(path: Path, data: bytes, *, option: str, other: str, folder: bool = False) -> None:
    """Write a file; an :class:`InputError` names the ``option`` and what ``other`` value to choose.

    With ``folder`` its folder is made. A full disk is not the fault of the path and stays an :class:`OSError`.
    """
    try:
        with made(path.parent) if folder else nullcontext():
            write_new(path, data)
    except FileExistsError:
        raise InputError(f"{option} must be a new file, got {path}, which exists; choose another {other}") from None
    except OSError as error:
        if error.errno in NO_SPACE:
            raise
        raise InputError(f"{option} must be a file that can be written, got {path} ({error.strerror})") from None


def require_new_table(path: Path) -> None:
    """Refuse an invalid path for a table before the work begins."""
    require(path.suffix in TABLES, f"out must be a .csv or .parquet file, got {path}; choose another --out")
    require(not path.exists(), f"out must be a new file, got {path}, which exists; choose another --out")


def csv_text(frame: "pd.DataFrame") -> str:
    """Return a table as CSV with ten digits, because values may vary little around a large mean."""
    return str(frame.to_csv(index=False, float_format="%.10g"))


def write_table(frame: "pd.DataFrame", path: Path) -> None:
    """Write a table as CSV or Parquet, by the suffix of the path; an existing file is not overwritten."""
    require_new_table(path)
    data = csv_text(frame).encode() if path.suffix == ".csv" else frame.to_parquet(index=False)
    write_asked_for(path, data, option="out", other="--out", folder=True)

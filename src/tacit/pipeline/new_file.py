"""New files that the user named, and a commented config file with all options."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from tacit.atomic_files import NO_SPACE, made, write_new
from tacit.config import OWN, FitConfig, registered_names
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


HEAD = """# Options of `tacit fit DATA --config THIS-FILE`. A line that starts with # shows a default;
# remove the # to change it. tacit prints each option that it chooses from the data, with the reason. Paths are
# relative to the working directory.
"""
CHOSEN = (
    "predictor",
    "observation",
    "training",
    "assessment",
    "window",
    "scale",
)  # sections and keys whose missing values are chosen from the data


def write_template(path: Path) -> None:
    """Write the file; an existing file is refused."""
    require(not path.exists(), f"--init must be a new file, got {path}, which exists; choose another name")
    write_asked_for(path, template().encode(), option="--init", other="name")


def template() -> str:
    """Return the text of the file."""
    lines = [HEAD]
    for section, field in FitConfig.model_fields.items():
        values = field.default
        lines.append(f"\n[{section}]  # {(type(values).__doc__ or '').splitlines()[0]}")
        for key, entry in type(values).model_fields.items():
            default = getattr(values, key)
            absent = "(chosen from the data)" if section in CHOSEN or key in CHOSEN else "(none)"
            shown = absent if default is None else _toml(default)
            words = entry.description if entry.description and not registered_names(entry) else _choices(entry)
            lines.append(f"# {key} = {shown}" + (f"  # {words}" if words else ""))
    return "\n".join(lines) + "\n"


def _choices(field: FieldInfo) -> str:
    """Return the possible values of a key, if it has a fixed list or takes registered names."""
    words = get_args(field.annotation) if get_origin(field.annotation) is Literal else registered_names(field)
    by_node = "; or a table by node" if words and dict[str, str] in get_args(field.annotation) else ""
    return ", ".join(str(word) for word in words if word != OWN) + by_node


def _toml(value: Any) -> str:
    """Return a default as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(entry) for entry in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)

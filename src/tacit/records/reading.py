"""Read a run directory; files that are missing, damaged, changed or of another version raise an InputError.

Each reader checks only the files that it reads: a run whose ``edges.csv`` was edited still predicts, but its report
cannot be drawn.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tacit.atomic_files import read_file
from tacit.edges import EDGES, EDGES_BY, LAGS
from tacit.errors import InputError
from tacit.records.background_csv import BACKGROUND
from tacit.records.checksums import ChangedError, checksum, read_object, read_sealed
from tacit.records.directories import CALL, resuming
from tacit.records.forecasts_csv import FORECASTS
from tacit.records.record import FORMAT, RECORD, Record
from tacit.records.run import HISTORY, Run

RUN_AGAIN = "run the command again"
PUT_BACK = f"restore it and change a copy, or {RUN_AGAIN}"


def read_record(directory: Path) -> Record:
    """Read ``record.json`` only."""
    with _said_in_one_line(directory):
        data = read_file(directory / RECORD)
        _require_format(directory, read_object(data))
        return Record.model_validate(read_sealed(data))


def read_run(directory: Path) -> Run:
    """Read record, edges, lags, edges by situation, forecasts, background and history."""
    record = read_record(directory)
    with _said_in_one_line(directory):
        history = [json.loads(line) for line in _belonging(directory, HISTORY, record).splitlines()]
        present = [EDGES, *(name for name in (LAGS, EDGES_BY, FORECASTS, BACKGROUND) if name in record.files)]
        return Run.of(record, history, {name: _belonging(directory, name, record) for name in present})


def _require_format(directory: Path, fields: dict[str, Any]) -> None:
    """Raise :class:`InputError` if this version of tacit cannot read the format of a record."""
    found = fields.get("format")
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise ValueError(f"{RECORD} has no format")
    if found != FORMAT:
        raise InputError(
            f"{directory} has format {found}, this tacit reads format {FORMAT}; use the version that wrote it, or "
            f"{RUN_AGAIN}"
        )


def _belonging(directory: Path, name: str, record: Record) -> str:
    """Return the text of a file of the run, after checking its checksum."""
    data = read_file(directory / name)
    if record.files.get(name) != checksum(data):
        raise ChangedError(name)
    return data.decode("utf-8")


@contextmanager
def _said_in_one_line(directory: Path) -> Iterator[None]:
    """Turn errors in reading a run directory into an :class:`InputError` of one line with a remedy."""
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        if (directory / CALL).is_file():
            raise InputError(f"{directory} is not finished; resume with {resuming(directory)}") from None
        raise InputError(_words(directory, error)) from None


def _words(directory: Path, error: Exception) -> str:
    if isinstance(error, OSError):
        return (
            f"{directory} must be a run directory, but {Path(str(error.filename)).name} cannot be read "
            f"({error.strerror}); pass the directory that a tacit command wrote"
        )
    if isinstance(error, ChangedError):
        return f"{directory / str(error)} has changed since the run wrote it (its checksum does not match); {PUT_BACK}"
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return f"{directory} is a damaged run ({where}{': ' if where else ''}{first['msg']}); {RUN_AGAIN}"
    lacking = "lacks " if isinstance(error, KeyError) else ""
    return f"{directory} is a damaged run ({lacking}{error}); {RUN_AGAIN}"

"""Directories for results, which must be new or empty."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tacit.errors import InputError, require
from tacit.locks import BEING_WRITTEN, LOCK, Lock, being_written, locked

CALL = "call.json"  # in an unfinished run; a finished one has record.json


def make_directory(directory: Path, *, besides: tuple[str, ...] = ()) -> bool:
    """Make a directory for results, and return whether it is new.

    A directory that is not empty is refused, because runs are never overwritten. A lock and names that begin with one
    of ``besides`` are allowed.
    """
    made = require_new(directory, besides=besides)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"out must be a directory that can be made, got {directory} ({error.strerror})") from None
    return made


def require_new(directory: Path, *, besides: tuple[str, ...] = ()) -> bool:
    """Refuse a directory that is not empty, as in :func:`make_directory`; return whether it does not exist yet."""
    try:
        new = not directory.exists()
        held = not new and (
            not directory.is_dir()
            or any(path.name != LOCK and not path.name.startswith(besides) for path in directory.iterdir())
        )
    except OSError as error:
        raise InputError(f"out must be a directory that can be made, got {directory} ({error.strerror})") from None
    if held:
        unfinished = (directory / CALL).is_file()
        require(not (unfinished and being_written(directory)), BEING_WRITTEN.format(directory))
        remedy = f"resume with {resuming(directory)}, or choose" if unfinished else "choose"
        raise InputError(f"out must be a new or empty directory, got {directory}, which exists; {remedy} another --out")
    return new


@contextmanager
def new_directory(directory: Path, *, besides: tuple[str, ...] = ()) -> Iterator[Lock]:
    """Make a directory for results and lock it for the block.

    If the block fails and leaves it empty, it is removed.
    """
    made = make_directory(directory, besides=besides)
    try:
        with locked(directory) as lock:
            make_directory(directory, besides=besides)  # check again, now with the lock
            yield lock
    except BaseException:
        if made:
            with suppress(OSError):  # it is not empty
                directory.rmdir()
        raise


def drawing(directory: Path) -> str:
    """Return a sentence with the command that draws the report of a complete run."""
    return f"the run is complete; draw its report with '{shlex.join(['tacit', 'report', str(directory)])}'"


def resuming(directory: Path) -> str:
    """Return the command that resumes an unfinished run."""
    return f"'{shlex.join(['tacit', 'fit', '--resume', str(directory)])}'"

"""Directories for results: new or empty, never written over."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tacit.errors import InputError
from tacit.locks import LOCK, Lock, locked

CALL = "call.json"  # an unfinished run has it, a finished one has record.json


def make_directory(directory: Path, *, besides: tuple[str, ...] = ()) -> bool:
    """Make a directory for results, and return whether it was not there before.

    One that holds anything, besides a lock and names that begin as given, is refused: a run is never written over.
    """
    made = require_new(directory, besides=besides)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"out must be a directory that can be made, got {directory} ({error.strerror})") from None
    return made


def require_new(directory: Path, *, besides: tuple[str, ...] = ()) -> bool:
    """Refuse a directory that holds anything but a lock and names that begin as given; return whether it is new."""
    try:
        new = not directory.exists()
        held = not new and (
            not directory.is_dir()
            or any(path.name != LOCK and not path.name.startswith(besides) for path in directory.iterdir())
        )
    except OSError as error:
        raise InputError(f"out must be a directory that can be made, got {directory} ({error.strerror})") from None
    if held:
        remedy = f"resume with {resuming(directory)}, or choose" if (directory / CALL).is_file() else "choose"
        raise InputError(f"out must be a new or empty directory, got {directory}, which exists; {remedy} another --out")
    return new


@contextmanager
def new_directory(directory: Path, *, besides: tuple[str, ...] = ()) -> Iterator[Lock]:
    """Make a directory for results before the work begins, and keep other processes out while it lasts.

    Take it away again if the work fails and left it empty.
    """
    made = make_directory(directory, besides=besides)
    try:
        with locked(directory) as lock:
            make_directory(directory, besides=besides)  # nobody was faster
            yield lock
    except BaseException:
        if made:
            with suppress(OSError):  # it holds something
                directory.rmdir()
        raise


def resuming(directory: Path) -> str:
    """Return the command that resumes an unfinished run."""
    return f"'{shlex.join(['tacit', 'fit', '--resume', str(directory)])}'"

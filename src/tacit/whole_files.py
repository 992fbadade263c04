"""Files that are whole or not there: written aside, brought to the disk, and only then given their name.

What had the name before keeps it until then: a full disk, a directory that is gone or a killed process leaves it as it
was.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Write one file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "a.txt", b"whole")
    ...     os.listdir(folder), (Path(folder) / "a.txt").read_bytes()
    (['a.txt'], b'whole')
    """
    write_together(path.parent, {path.name: data})


def write_together(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write files that belong together; the last one gets its name last, and says that the others are there.

    All are on the disk before the first gets its name. An error names the file, not where it was put aside.
    """
    asides = {name: directory / f".{name}.partial-{os.getpid()}" for name in files}
    name = ""
    try:
        for name, data in files.items():
            _write_to_disk(asides[name], data)
        *first, last = files
        for name in first:
            asides[name].replace(directory / name)
        if first:
            _sync(directory)
        name = last
        asides[name].replace(directory / name)
        _sync(directory)
    except BaseException as error:
        for aside in asides.values():
            with suppress(OSError):
                aside.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(directory / name)) from error
        raise


def remove_leftovers(directory: Path) -> None:
    """Remove what a killed process had put aside; only for whoever knows that no other one is writing."""
    for aside in directory.rglob(".*.partial-*"):
        aside.unlink(missing_ok=True)


def _write_to_disk(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: Path) -> None:
    """Bring the names in a directory to the disk, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

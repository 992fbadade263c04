"""Atomic writes: a temporary file is written, flushed to disk and renamed.

An existing file stays unchanged until the rename, also if the disk is full, the directory was removed or the process
is killed.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

LONGEST_NAME = 100  # bytes of the name that the temporary name keeps: with its suffix it must stay below 255
# Errors of file systems that cannot sync a directory, or of a directory that may be written but not listed.
NOT_POSSIBLE = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES, errno.EBADF}
NO_LINKS = {errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES, errno.EINVAL}

NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}  # errors that do not depend on the path


def read_file(path: Path) -> bytes:
    """Return the content of a file; a pipe or device, which could block forever, raises an :class:`OSError`."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def write_atomic(path: Path, data: bytes) -> None:
    """Write one file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomic(Path(folder) / "a.txt", b"whole")
    ...     os.listdir(folder), (Path(folder) / "a.txt").read_bytes()
    (['a.txt'], b'whole')
    """
    write_together(path.parent, {path.name: data})


@contextmanager
def made(directory: Path, *, parents: bool = True) -> Iterator[None]:
    """Make a directory and its parents for the block; if the block fails, remove those that were made and are empty."""
    missing = [path for path in (directory, *(directory.parents if parents else ())) if not path.exists()]
    try:
        try:
            directory.mkdir(parents=parents, exist_ok=True)
        except FileExistsError:  # it is not a directory
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(directory)) from None
        yield
    except BaseException:
        for path in missing:
            with suppress(OSError):  # it is not empty, or does not exist
                path.rmdir()
        raise


def write_new(path: Path, data: bytes) -> None:
    """Write a new file; raise :class:`FileExistsError` if it exists, also if another process writes it meanwhile."""
    aside = _aside(path)
    try:
        _write_to_disk(aside, data)
        try:
            os.link(aside, path)
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            if path.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
            aside.replace(path)
        _sync(path.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)


def write_together(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write several files together; the last one is renamed last, so that its presence implies the others.

    All are on disk before the first rename. If a rename fails, the earlier files are restored. An error names the
    file, not the temporary file.
    """
    asides = {name: _aside(directory / name) for name in files}
    before: dict[str, Path | None] = {}  # replaced name -> backup of the earlier file, None if there was none
    name, done = "", False
    try:
        for name, data in files.items():
            _write_to_disk(asides[name], data)
        *first, last = files
        for name in first:
            before[name] = _kept(directory / name)
            asides[name].replace(directory / name)
        if first:
            _sync(directory)
        name = last
        asides[name].replace(directory / name)
        done = True
        _sync(directory)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(directory / name)) from error
    finally:
        for name, old in before.items():
            with suppress(OSError):
                _settle(directory / name, old, done)
        for aside in asides.values():
            with suppress(OSError):
                aside.unlink(missing_ok=True)


def _kept(path: Path) -> Path | None:
    """Back up a file under a second name, so that it can be restored; None if it does not exist.

    The first name stays valid at all times; on file systems without links it is missing for a moment.
    """
    if not path.exists():
        return None
    old = _aside(path)
    try:
        os.link(path, old)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        path.replace(old)
    return old


def _settle(path: Path, old: Path | None, done: bool) -> None:
    """Remove the backup if the write is done, and restore it otherwise."""
    if old is None:
        if not done:
            path.unlink(missing_ok=True)
        return
    if not done:
        old.replace(path)
    old.unlink(missing_ok=True)  # replace() does nothing if both names are links to one file


def remove_leftovers(directory: Path) -> None:
    """Remove temporary files of a killed process; call it only if no other process is writing."""
    for aside in directory.rglob(".*.partial-*"):
        aside.unlink(missing_ok=True)


def _aside(path: Path) -> Path:
    """Return a temporary name in the same directory that no other writer uses."""
    name = os.fsdecode(os.fsencode(path.name)[:LONGEST_NAME])
    return path.with_name(f".{name}.partial-{os.getpid()}-{secrets.token_hex(3)}")


def _write_to_disk(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: Path) -> None:
    """Flush a directory to disk, if the file system supports it."""
    if os.name != "posix":
        return
    try:
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in NOT_POSSIBLE:
            raise

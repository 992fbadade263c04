"""Atomic writes: a temporary file is written, flushed to disk and renamed.

What had the name before keeps it until then: a full disk, a directory that is gone or a killed process leaves it as it
was.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

LONGEST_NAME = 100  # bytes of a name that its aside keeps: with the ending it must stay below 255
# What file systems say that cannot bring names to the disk, or a directory that may be written but not listed.
NOT_POSSIBLE = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES, errno.EBADF}
NO_LINKS = {errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES, errno.EINVAL}

NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}  # no fault of the name that was given


def read_file(path: Path) -> bytes:
    """Return what is in a file; a pipe or device, which could be waited for without end, is an :class:`OSError`."""
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
    """Make a directory, and those above it, for the block; if it fails, those that were made and are empty go again."""
    missing = [path for path in (directory, *(directory.parents if parents else ())) if not path.exists()]
    try:
        try:
            directory.mkdir(parents=parents, exist_ok=True)
        except FileExistsError:  # and is no directory
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(directory)) from None
        yield
    except BaseException:
        for path in missing:
            with suppress(OSError):  # it holds something, or is not there
                path.rmdir()
        raise


def write_new(path: Path, data: bytes) -> None:
    """Write one file that must not be there yet: of two that write it at once one gets :class:`FileExistsError`."""
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
    """Write files that belong together; the last one gets its name last, and says that the others are there.

    All are on the disk before the first gets its name. If one cannot get it, those that had the names before have
    them again. An error names the file, not where it was put aside.
    """
    asides = {name: _aside(directory / name) for name in files}
    before: dict[str, Path | None] = {}  # of the names that are taken: where the file is that had it, if one did
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
    """Give what has a name a second one, so that it can be given back; None if there is nothing.

    The name stays taken meanwhile, whenever the process is killed; without links there is a moment in which it is not.
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
    """Let go of what had the name, or give it back."""
    if old is None:
        if not done:
            path.unlink(missing_ok=True)
        return
    if not done:
        old.replace(path)
    old.unlink(missing_ok=True)  # two names of one file are not made one by giving it back


def remove_leftovers(directory: Path) -> None:
    """Remove what a killed process had put aside; only for whoever knows that no other one is writing."""
    for aside in directory.rglob(".*.partial-*"):
        aside.unlink(missing_ok=True)


def _aside(path: Path) -> Path:
    """Return a name beside the path that no other writer has, in this process or elsewhere."""
    name = os.fsdecode(os.fsencode(path.name)[:LONGEST_NAME])
    return path.with_name(f".{name}.partial-{os.getpid()}-{secrets.token_hex(3)}")


def _write_to_disk(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: Path) -> None:
    """Bring the names in a directory to the disk, where the file system can."""
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

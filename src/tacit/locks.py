"""A lock so that one process at a time writes a directory; the system releases it when the process ends."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from tacit.errors import InputError

LOCK = ".lock"
BEING_WRITTEN = "{} is being written by another process; wait until that ends"
NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP)  # of a file system without locks


@dataclass(frozen=True)
class Lock:
    """The lock of a directory; ``file`` is None if another process holds it for this one, or without lock support."""

    directory: Path
    file: os.stat_result | None = None

    @property
    def held(self) -> bool:
        """Whether the directory is still the one that was locked: it may have been removed and made again."""
        try:
            return self.file is None or os.path.samestat(self.file, (self.directory / LOCK).stat())
        except OSError:
            return False

    def require(self) -> None:
        """Raise :class:`OSError` if the directory was removed or replaced."""
        if not self.held:
            raise OSError(f"{self.directory} was removed or replaced while the command was running")


def being_written(directory: Path) -> bool:
    """Return whether a process holds the lock of a directory."""
    if not (directory / LOCK).is_file():
        return False
    lock = FileLock(directory / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        return True
    except OSError:
        return False
    lock.release()
    return False


@contextmanager
def locked(directory: Path) -> Iterator[Lock]:
    """Hold the lock of a directory while the block runs; a second process is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, locked(Path(folder)) as lock:
    ...     lock.held, os.listdir(folder)
    (True, ['.lock'])
    """
    path = directory.absolute() / LOCK  # the working directory may change
    if path.is_file() and path.stat().st_size:  # a lock file of tacit is empty
        raise InputError(f"{path} is not a lock file of tacit; move it, or use another directory")
    lock, file = FileLock(path, timeout=0), None
    try:
        lock.acquire()
        file = path.stat()
    except Timeout:
        raise InputError(BEING_WRITTEN.format(directory)) from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise InputError(
                f"{directory} must be writable, but is not ({error.strerror}); use one that can be written"
            ) from None
    held = Lock(path.parent, file)
    try:
        yield held
    finally:
        if file is not None and held.held:  # without lock support, others may write there as well
            with suppress(OSError):
                path.unlink(missing_ok=True)
        lock.release()

"""One process writes a directory at a time: a lock that the system frees however the process ends."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import InputError

if sys.platform != "win32":
    import fcntl

LOCK = ".lock"


@dataclass(frozen=True)
class Lock:
    """The lock of a directory that this process holds; without a ``descriptor`` another one holds it for this one."""

    directory: Path
    descriptor: int | None = None
    alone: bool = False  # did the system promise it? Some file systems have no locks

    @property
    def held(self) -> bool:
        """Is the directory still the one that was locked? It may have been removed, and made again by others."""
        if self.descriptor is None:
            return True
        try:
            return os.path.samestat(os.fstat(self.descriptor), (self.directory / LOCK).stat())
        except OSError:
            return False

    def require(self) -> None:
        """Raise :class:`OSError` rather than write into a directory that is gone, or is that of another process."""
        if not self.held:
            raise OSError(f"{self.directory} was removed or replaced while the command was running")


@contextmanager
def locked(directory: Path) -> Iterator[Lock]:
    """Hold the lock of a directory while the block runs; a second process is refused. There is none on Windows.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, locked(Path(folder)) as lock:
    ...     lock.held, os.listdir(folder)
    (True, ['.lock'])
    """
    try:
        descriptor, alone = _lock(directory)
    except OSError as error:
        raise InputError(
            f"{directory} needs to be writable, but is not ({error.strerror}); use one that can be written"
        ) from None
    lock = Lock(directory.absolute(), descriptor, alone)  # the process may go elsewhere
    try:
        yield lock
    finally:
        if lock.alone and lock.held:  # without locks others may hold it too
            with suppress(OSError):
                (lock.directory / LOCK).unlink(missing_ok=True)
        os.close(descriptor)


def _lock(directory: Path) -> tuple[int, bool]:
    while True:
        descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        if os.fstat(descriptor).st_size:  # tacit's is empty
            os.close(descriptor)
            raise InputError(f"{directory / LOCK} is a file of another program; move it away, or use another directory")
        try:
            if sys.platform != "win32":
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise InputError(f"{directory} is being written by another process; wait until that ends") from None
        except OSError:  # a file system without locks
            return descriptor, False
        if os.fstat(descriptor).st_nlink:  # else the last holder has removed it meanwhile
            return descriptor, True
        os.close(descriptor)

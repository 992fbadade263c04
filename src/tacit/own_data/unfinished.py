"""A run that is under way: who may write it, and what is left of it when the process ends.

While a run is under way its directory holds ``call.json`` (how to call it again), ``checkpoint.safetensors`` (what the
training has become) and ``.lock``. A finished run holds none of them, and ``record.json`` instead. Of several processes
the first holds the run and writes it; the others hear from it what they work on.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tacit.errors import InputError, TrainingError
from tacit.own_data.call import Call
from tacit.records import CALL, RECORD, make_directory, resuming
from tacit.training.agreement import from_the_first
from tacit.training.processes import Processes
from tacit.whole_files import remove_leftovers, write_whole

if sys.platform != "win32":
    import fcntl

CHECKPOINT, LOCK = "checkpoint.safetensors", ".lock"
NOTHING = (LOCK, f".{CALL}.")  # how the names begin of what is there before there is a run


@contextmanager
def begun(directory: Path, call: Call, processes: Processes) -> Iterator[Path]:
    """Make the directory of a run, which the block gets, and keep other runs out until it ends.

    When it fails, what can be gone on with stays, and the error says how; else nothing is left behind.
    """
    with ExitStack() as held:
        directory = from_the_first(processes, lambda: held.enter_context(_begun(directory, call)))
        try:
            yield directory
        except BaseException as error:
            if _can_go_on(directory, error):
                error.add_note(_way_on(directory, processes))
            raise


@contextmanager
def taken_up(directory: Path, processes: Processes) -> Iterator[Call]:
    """Go on with a run that was stopped, and keep other runs out; whatever fails, it can be taken up once more."""
    with ExitStack() as held:
        call = from_the_first(processes, lambda: held.enter_context(_taken_up(directory)))
        try:
            yield call
        except BaseException as error:
            if not isinstance(error, InputError):
                error.add_note(_way_on(directory, processes))
            raise


@contextmanager
def _begun(directory: Path, call: Call) -> Iterator[Path]:
    made = make_directory(directory, besides=NOTHING)
    try:
        with _locked(directory):
            make_directory(directory, besides=NOTHING)  # nobody was faster
            remove_leftovers(directory)
            try:
                write_whole(directory / CALL, call.to_bytes())
                yield directory
            except BaseException as error:
                if not _can_go_on(directory, error):
                    finish(directory)
                raise
    except BaseException:
        if made:
            with suppress(OSError):  # it holds something
                directory.rmdir()
        raise


@contextmanager
def _taken_up(directory: Path) -> Iterator[Call]:
    if not (directory / CALL).is_file():
        finished = (directory / RECORD).is_file()
        if finished:  # it may have been stopped while it was tidying up
            for name in (CHECKPOINT, LOCK):
                (directory / name).unlink(missing_ok=True)
        raise InputError(
            f"{directory} is finished: nothing is left to do; see {directory / 'report.html'}"
            if finished
            else f"--resume needs a run that tacit fit began and did not finish, got {directory}, which holds none"
        )
    with _locked(directory):
        remove_leftovers(directory)
        yield Call.read(directory)


def _can_go_on(directory: Path, error: BaseException) -> bool:
    """Is something done that would not fail again? A process that does not write may not see it, and is silent."""
    return not isinstance(error, InputError | TrainingError) and (directory / CHECKPOINT).exists()


def _way_on(directory: Path, processes: Processes) -> str:
    return f"go on with {resuming(directory)}{', through torchrun or alone' if processes.several else ''}"


def finish(directory: Path) -> None:
    """Remove what only an unfinished run needs."""
    for name in (CALL, CHECKPOINT):  # in this order: without the first the other means nothing
        (directory / name).unlink(missing_ok=True)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory; the system frees it however the process ends. There is none on Windows."""
    path = directory / LOCK
    try:
        descriptor = _lock(path, directory)
    except OSError as error:
        raise InputError(f"{directory} needs to be writable, but is not ({error.strerror}); choose another") from None
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        os.close(descriptor)


def _lock(path: Path, directory: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if sys.platform != "win32":
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise InputError(f"{directory} is being written by another process; wait until that ends") from None
        except OSError:  # a file system without locks
            return descriptor
        if os.fstat(descriptor).st_nlink:  # else the last holder has removed it meanwhile
            return descriptor
        os.close(descriptor)

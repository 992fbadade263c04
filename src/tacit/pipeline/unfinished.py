"""Unfinished runs: their lock, and their files after an interruption.

The directory of an unfinished run contains ``call.json`` (the arguments), ``checkpoint.safetensors`` (the state of the
training) and ``.lock``. A finished run has ``record.json`` instead. Of several processes, the first one has the lock
and writes; the others receive the arguments from it.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tacit.atomic_files import remove_leftovers, write_atomic
from tacit.errors import InputError, ReportError, TrainingError
from tacit.locks import Lock, locked
from tacit.pipeline.request import Request
from tacit.records import CALL, RECORD, new_directory, resuming
from tacit.training import Processes, from_the_first

CHECKPOINT = "checkpoint.safetensors"
NOTHING = (f".{CALL}.",)  # prefixes of temporary files that may exist before the run


@contextmanager
def start_run(directory: Path, call: Request, processes: Processes) -> Iterator[Lock]:
    """Make the directory of a run and lock it for the block.

    If the block is stopped or the machine fails (a signal, a full disk, too little memory), the run is kept, and the
    error gives the command that resumes it. After an error of the input or of the computation, which would come again,
    the directory is removed unless it has a checkpoint.
    """
    with ExitStack() as entered:
        locks: list[Lock] = []

        def begin() -> Path:
            locks.append(entered.enter_context(_start_run(directory, call)))
            return directory

        first = from_the_first(processes, begin)
        lock = locks[0] if locks else Lock(first)
        try:
            yield lock
        except BaseException as error:
            if _can_go_on(lock, error):
                error.add_note(_way_on(first, processes))
            raise


@contextmanager
def resume_run(directory: Path, processes: Processes) -> Iterator[tuple[Request, Lock]]:
    """Resume a stopped run and lock it for the block; if the block fails, it can be resumed again."""
    with ExitStack() as entered:
        locks: list[Lock] = []

        def resume() -> Request:
            call, lock = entered.enter_context(_resume_run(directory))
            locks.append(lock)
            return call

        call = from_the_first(processes, resume)
        lock = locks[0] if locks else Lock(directory)
        try:
            yield call, lock
        except BaseException as error:
            if not isinstance(error, InputError | ReportError) and lock.held:
                error.add_note(_way_on(directory, processes))
            raise


@contextmanager
def _start_run(directory: Path, call: Request) -> Iterator[Lock]:
    with new_directory(directory, besides=NOTHING) as lock:
        remove_leftovers(directory)
        try:
            write_atomic(directory / CALL, call.to_bytes())
            yield lock
        except BaseException as error:
            if lock.held and not _can_go_on(lock, error):
                finish(directory)
            raise


@contextmanager
def _resume_run(directory: Path) -> Iterator[tuple[Request, Lock]]:
    if not (directory / CALL).is_file():
        finished = (directory / RECORD).is_file()
        if finished:  # it may have been stopped during the cleanup
            with suppress(InputError), locked(directory):  # unless another process is writing there
                (directory / CHECKPOINT).unlink(missing_ok=True)
        page = directory / "report.html"
        raise InputError(
            f"{directory} is already finished; see {page if page.is_file() else f'tacit report {directory}'}"
            if finished
            else f"--resume must be an unfinished run of tacit fit, got {directory}; check the path"
        )
    with locked(directory) as lock:
        remove_leftovers(directory)
        yield Request.read(directory), lock


def _can_go_on(lock: Lock, error: BaseException) -> bool:
    """Return whether the run can be resumed; a process that does not write may not know and returns false."""
    if isinstance(error, InputError | TrainingError | ReportError) or not lock.held:
        return False
    comes_again = isinstance(error, Exception) and not isinstance(error, OSError | MemoryError)
    return (lock.directory / (CHECKPOINT if comes_again else CALL)).exists()


def _way_on(directory: Path, processes: Processes) -> str:
    return f"resume with {resuming(directory)}{', with or without torchrun' if processes.several else ''}"


def finish(directory: Path) -> None:
    """Remove the files of an unfinished run."""
    for name in (CALL, CHECKPOINT):  # in this order: without the first, the other is not used
        (directory / name).unlink(missing_ok=True)

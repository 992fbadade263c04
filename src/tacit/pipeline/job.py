"""``tacit fit``: from a file to a run directory with a report; a stopped run can be resumed.

Unfinished runs: their lock, and their files after an interruption.

The directory of an unfinished run contains ``call.json`` (the arguments), ``checkpoint.safetensors`` (the state of the
training) and ``.lock``. A finished run has ``record.json`` instead. Of several processes, the first one has the lock
and writes; the others receive the arguments from it.
"""

import hashlib
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, chdir, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, ValidationError

from tacit.atomic_files import remove_leftovers, write_atomic
from tacit.config import FitConfig
from tacit.errors import InputError, ReportError, TrainingError, require
from tacit.interrupts import Terminated, deferred_interrupts
from tacit.locks import Lock, locked
from tacit.pipeline.fitting import compared, conclude, learn
from tacit.pipeline.plan import resolve
from tacit.pipeline.simultaneous import settle_simultaneous
from tacit.pipeline.situations import about_depends_on, settle_situations
from tacit.pipeline.sources import data_files, few_names, read_sources
from tacit.pipeline.state import Fit, TimedListener
from tacit.records import CALL, RECORD, Run, drawing, new_directory, read_run, require_new, resuming, versions
from tacit.training import Checkpoints, Listener, Processes, from_the_first, meet_in_step

FORMAT = 3


class Request(BaseModel):
    """The arguments of a call of ``tacit fit``; ``files`` are the files that it read, with their checksums."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = FORMAT
    sources: list[str]
    config: dict[str, Any]
    seed: int
    device: str
    command: str
    folder: str
    files: dict[str, str]
    versions: dict[str, str]

    @classmethod
    def read(cls, directory: Path) -> "Request":
        """Read the call that a run wrote when it started."""
        path = directory / CALL
        try:
            text = path.read_text(encoding="utf-8")
            found = _Format.model_validate_json(text).format
            require(
                found == FORMAT,
                f"{path} has format {found}, this tacit reads format {FORMAT}; use the version that started the run",
            )
            call = cls.model_validate_json(text)
            FitConfig.model_validate(call.config)
            return call
        except (OSError, ValidationError, UnicodeDecodeError) as error:
            causes = error.errors() if isinstance(error, ValidationError) else []
            for cause in (found.get("ctx", {}).get("error") for found in causes):
                if isinstance(cause, InputError):  # a kind that is not registered here
                    raise cause from None
            raise InputError(f"{path} is damaged, so the run cannot be resumed; run the command again") from None

    def to_bytes(self) -> bytes:
        """Return the file that :meth:`read` reads."""
        return (self.model_dump_json(indent=2) + "\n").encode()

    def require_same_files(self) -> None:
        """Refuse to resume with other data than the run started with."""
        for name in data_files(self.sources):
            known = name in self.files or file_checksum(name) is None
            require(known, f"{name} was added since the run started; remove it, or fit again with another --out")
        for name, checksum in self.files.items():
            found = file_checksum(name)
            require(found is not None, f"{name} was removed, and the run cannot be resumed without it; put it back")
            require(
                found == checksum,
                f"{name} has changed since the run started; restore it, or fit again with another --out",
            )


class _Format(BaseModel):
    format: int


def files_read(sources: Sequence[str], config: FitConfig) -> dict[str, str]:
    """Return the files that a fit reads, with their checksums; data included in the package is not a file."""
    names = [*data_files(sources), config.data.y_file, config.graph.edges, config.graph.coordinates]
    found = {name: file_checksum(name) for name in names if name is not None}
    return {name: checksum for name, checksum in found.items() if checksum is not None}


def file_checksum(name: str) -> str | None:
    """Return the checksum of a file, or None if it is not a regular file: reading a pipe would empty it."""
    try:
        if not Path(name).is_file():
            return None
        with Path(name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


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


@dataclass(frozen=True)
class FitJob:
    """The result of the job, and the seconds of its stages: those of the record, and writing.

    ``report``  None if Ctrl-C was pressed before it was drawn; ``tacit report`` draws it
    """

    run: Run
    directory: Path
    report: Path | None
    complete: bool
    stages: dict[str, float]


def run_fit(
    source: str | Sequence[str],
    config: FitConfig,
    directory: Path,
    *,
    seed: int = 0,
    device: torch.device,
    command: str = "tacit fit",
    listener: Listener | None = None,
) -> FitJob | None:
    """Learn the graph behind ``source`` and write a run directory; nothing is written if the input is refused.

    Several files, or a folder of files, are several series.

    If several processes train together, all run the same stages; the first one writes, the others return None.
    """
    require(
        directory.resolve() != Path.cwd(),
        f"out must be a directory for this run only, got '{directory}', the working directory; choose another --out",
    )
    settle_simultaneous(settle_situations(config))  # incompatible options are refused before a file is read
    sources = [source] if isinstance(source, str) else list(source)
    processes = Processes.current()
    if not processes.several:  # with several processes, the first one checks this when it starts the run
        require_new(directory, besides=NOTHING)
    request = Request(
        sources=sources,
        config=config.model_dump(mode="json"),
        seed=seed,
        device=_named(str(device), processes),
        command=command,
        folder=str(Path.cwd()),
        files=files_read(sources, config),
        versions=versions(),
    )
    fit = _resolved(request, device, TimedListener.of(listener))
    with start_run(directory, request, processes) as lock:
        return _work(fit, directory, processes, lock)


def resume_fit(
    directory: Path, *, find_device: Callable[[str], torch.device] = torch.device, listener: Listener | None = None
) -> FitJob | None:
    """Resume a stopped run; its final files are the same as without the interruption.

    Paths are relative to the folder in which the run was started. Several processes can resume a run of one process,
    and vice versa.
    """
    processes = Processes.current()
    with resume_run(directory, processes) as (request, lock):
        whole = directory.resolve()
        with chdir(request.folder if Path(request.folder).is_dir() else "."):
            request.require_same_files()
            device = find_device(_named(request.device, processes))
            job = _work(_resolved(request, device, TimedListener.of(listener)), whole, processes, lock)
    if job is None:
        return None
    return replace(job, directory=directory, report=None if job.report is None else directory / job.report.name)


def _resolved(request: Request, device: torch.device, listener: Listener) -> Fit:
    name = Path(few_names(request.sources)).name
    listener.stage(f"reading: {name}")
    config = settle_situations(FitConfig.model_validate(request.config))
    with about_depends_on(config):
        source = read_sources(request.sources, config.data)
    now = versions()
    others = [
        f"{key} {request.versions.get(key)} and {now[key]}" for key in now if request.versions.get(key) != now[key]
    ]
    return resolve(
        source,
        config,
        seed=request.seed,
        device=device,
        command=request.command,
        name=name,
        listener=listener,
        notes=(f"the run was started and finished under different versions: {', '.join(others)}",) if others else (),
    )


def _work(fit: Fit, directory: Path, processes: Processes, lock: Lock) -> FitJob | None:
    """Learn and write the run; until it is complete the directory contains the checkpoint and the call."""
    fit = learn(fit, checkpoint=Checkpoints(directory / CHECKPOINT, before=lock.require))
    job = _write(fit, directory, lock) if processes.first else None
    meet_in_step(processes, None)  # if the first process dies at the end, the others print how to resume
    return job


def _write(fit: Fit, directory: Path, lock: Lock) -> FitJob:
    """Write the run, then draw its report.

    A signal while the files are written takes effect when all are there. The report can be drawn later.
    """
    fit = compared(fit)
    with deferred_interrupts(termination=True) as held:
        fitted = conclude(fit)
        lock.require()
        fit.listener.stage("writing: the run and its report")
        fitted.write(directory)
        run = read_run(directory)
        if fit.complete:
            finish(directory)
    report = None
    if fit.complete and signal.SIGINT not in held:
        remedy = drawing(directory)
        try:
            if held:
                raise Terminated(held[0])
            report = draw_run(directory, run)
        except KeyboardInterrupt:
            pass
        except (OSError, MemoryError) as error:
            reason = "out of memory" if isinstance(error, MemoryError) else str(error)
            raise ReportError(f"{reason}; {remedy}") from error
        except BaseException as error:
            error.add_note(remedy)
            raise
    fit.listener.times.finish()
    return FitJob(run, directory, report, fit.complete, fit.listener.times.rounded())


def draw_run(directory: Path, run: Run) -> Path:
    """Draw the report; the module is imported here so that the first edges are shown sooner."""
    from tacit import report

    return report.draw_run(directory, run)


def _named(device: str, processes: Processes) -> str:
    """Return the name of a device that is valid for all processes, each of which has its own GPU."""
    return torch.device(device).type if processes.several else device

"""``tacit fit``: from a file to a run directory with a report; a stopped run can be resumed."""

import signal
from collections.abc import Callable, Sequence
from contextlib import chdir
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from tacit.config import FitConfig
from tacit.errors import ReportError, require
from tacit.interrupts import Terminated, deferred_interrupts
from tacit.locks import Lock
from tacit.pipeline.data_files import few_names
from tacit.pipeline.fitting import Learned, learn
from tacit.pipeline.plan import Plan
from tacit.pipeline.request import Request, files_read
from tacit.pipeline.simultaneous import settle_simultaneous
from tacit.pipeline.situation_options import about_depends_on, settle_situations
from tacit.pipeline.sources import read_sources
from tacit.pipeline.stage_times import TimedListener
from tacit.pipeline.unfinished import CHECKPOINT, NOTHING, finish, resume_run, start_run
from tacit.records import Run, drawing, read_run, require_new, versions
from tacit.training import Checkpoints, Listener, Processes, meet_in_step


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
    plan = _plan(request, device, TimedListener.of(listener))
    with start_run(directory, request, processes) as lock:
        return _work(plan, directory, processes, lock)


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
            job = _work(_plan(request, device, TimedListener.of(listener)), whole, processes, lock)
    if job is None:
        return None
    return replace(job, directory=directory, report=None if job.report is None else directory / job.report.name)


def _plan(request: Request, device: torch.device, listener: Listener) -> Plan:
    name = Path(few_names(request.sources)).name
    listener.stage(f"reading: {name}")
    config = settle_situations(FitConfig.model_validate(request.config))
    with about_depends_on(config):
        source = read_sources(request.sources, config.data)
    now = versions()
    others = [
        f"{key} {request.versions.get(key)} and {now[key]}" for key in now if request.versions.get(key) != now[key]
    ]
    return Plan.make(
        source,
        config,
        seed=request.seed,
        device=device,
        command=request.command,
        name=name,
        listener=listener,
        notes=(f"the run was started and finished under different versions: {', '.join(others)}",) if others else (),
    )


def _work(plan: Plan, directory: Path, processes: Processes, lock: Lock) -> FitJob | None:
    """Learn and write the run; until it is complete the directory contains the checkpoint and the call."""
    learned = learn(plan, checkpoint=Checkpoints(directory / CHECKPOINT, before=lock.require))
    job = _write(learned, directory, lock) if processes.first else None
    meet_in_step(processes, None)  # if the first process dies at the end, the others print how to resume
    return job


def _write(learned: Learned, directory: Path, lock: Lock) -> FitJob:
    """Write the run, then draw its report.

    A signal while the files are written takes effect when all are there. The report can be drawn later.
    """
    learned = learned.compared()
    listener = learned.plan.listener
    with deferred_interrupts(termination=True) as held:
        fitted = learned.conclude()
        lock.require()
        listener.stage("writing: the run and its report")
        fitted.write(directory)
        run = read_run(directory)
        if learned.complete:
            finish(directory)
    report = None
    if learned.complete and signal.SIGINT not in held:
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
    listener.times.finish()
    return FitJob(run, directory, report, learned.complete, listener.times.rounded())


def draw_run(directory: Path, run: Run) -> Path:
    """Draw the report; the module is imported here so that the first edges are shown sooner."""
    from tacit import report

    return report.draw_run(directory, run)


def _named(device: str, processes: Processes) -> str:
    """Return the name of a device that is valid for all processes, each of which has its own GPU."""
    return torch.device(device).type if processes.several else device

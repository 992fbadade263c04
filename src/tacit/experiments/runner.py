"""Run the tasks of studies; tasks with a record are not repeated, and the page is drawn from the records only."""

import json
import os
from collections.abc import Collection, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl

from tacit.atomic_files import made, remove_leftovers, write_atomic, write_together
from tacit.errors import InputError
from tacit.experiments.air_quality import AirQuality
from tacit.experiments.losses import Losses, Validation, Variance
from tacit.experiments.study import Listener, Options, Study, Values, do_task
from tacit.experiments.theory import Counterexample, Injectivity, System
from tacit.experiments.variations import GenericGNN, LargerGraph, LearnedGraph, Misconfigured, NumGraphs, Perturbed
from tacit.experiments.workers import Workers, workers
from tacit.locks import locked
from tacit.report import STYLE, figure_files

_ALL: tuple[Study, ...] = (
    Losses(),
    Validation(),
    Variance(),
    System(),
    NumGraphs(),
    LearnedGraph(),
    LargerGraph(),
    Perturbed(),
    GenericGNN(),
    Misconfigured(),
    Counterexample(),
    Injectivity(),
    AirQuality(),
)
STUDIES: dict[str, Study] = {study.name: study for study in _ALL}  # those of ``tacit reproduce``

PAGE, TITLE = "RESULTS.md", "The paper's tables and figures"
WORDS = (
    "The tables and figures of the paper, with the paper's values beside those measured here. `tacit reproduce all` "
    "makes this page. theta are the edge probabilities, psi the weights of the predictor, y the targets."
)
DOTS_PER_INCH = 110  # of the PNG files: dozens of them are kept


def run_studies(
    studies: Sequence[Study],
    directory: Path,
    options: Options,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    listener: Listener | None = None,
) -> None:
    """Run the unfinished tasks of the studies and draw their figures (``tacit reproduce``).

    Tasks run in this process, in ``jobs`` processes, or on the workers of a Dask cluster whose scheduler has an address
    like ``tcp://host:8786``. This process writes each record when its task finishes; the numbers do not depend on where
    the task ran. Studies that cannot start are refused before anything is written. :func:`write_page` writes
    the tables.
    """
    listener = listener or Listener()
    if scheduler is not None:
        listener.stage(f"asking the workers of {scheduler}")
        if options.data is not None:
            options = replace(options, data=str(Path(options.data).resolve()))  # a worker runs in another folder
    with workers(options, jobs, scheduler) as pool:
        require_startable(studies, directory, options)
        with ExitStack() as stack:
            try:
                stack.enter_context(made(directory))
            except OSError as error:
                raise InputError(
                    f"out must be a directory that can be made, got {directory} ({error.strerror})"
                ) from None
            if not os.access(directory, os.W_OK):
                raise InputError(
                    f"out must be a directory that can be written to, got {directory}; choose another --out"
                )
            for study in studies:
                _run_alone(study, directory, options, pool, listener)


def _run_alone(study: Study, directory: Path, options: Options, pool: Workers | None, listener: Listener) -> None:
    """Run a study with a lock, so that no other process runs it in the same directory."""
    there = directory / study.name
    with made(there), locked(there) as lock:
        remove_leftovers(there)
        _require_same_options(study, there, options)  # another process may have written records since

        def write(record: Values, task: str) -> None:
            lock.require()
            with made(folder):
                write_atomic(folder / f"{task}.json", f"{json.dumps(record)}\n".encode())

        name, tasks, folder = study.name, list(study.tasks()), there / "records"
        missing = [task for task in tasks if not (folder / f"{task}.json").exists()]
        done = len(tasks) - len(missing)
        if pool is None:
            for number, task in enumerate(missing, done + 1):
                listener.stage(f"{name} {number} of {len(tasks)}, {task}: preparing")
                write(do_task(study, task, options, listener), task)
        elif missing:
            where, run_tasks = pool
            listener.stage(f"{name}: {done} of {len(tasks)} tasks done, {where}")
            with closing(run_tasks(study, missing, options)) as outcomes:  # Ctrl-C here stops the other tasks
                for number, (task, outcome) in enumerate(outcomes, done + 1):
                    if isinstance(outcome, Exception):
                        raise outcome  # after the records that were finished before it; other tasks are cancelled
                    write(outcome, task)
                    listener.stage(f"{name}: {number} of {len(tasks)} tasks done, the last {task}; {where}")
        listener.stage(f"{study.name}: drawing")
        lock.require()
        draw_study(study, directory)


def require_startable(studies: Sequence[Study], directory: Path, options: Options) -> None:
    """Raise :class:`InputError` before any work if a study lacks data or does not match the existing records."""
    for study in studies:
        if study.needs_data and options.data is None:
            raise InputError(f"{study.name} requires {study.needs_data}, got no data; pass --data PATH")
        if options.data is not None and not (study.needs_data or study.takes_data):
            raise InputError(f"{study.name} takes no data, got {options.data}; leave --data out")
        if options.data is not None and not Path(options.data).exists():
            raise InputError(f"data must be an existing file or folder, got {options.data}; correct --data")
        _require_same_options(study, directory / study.name, options)


def draw_study(study: Study, directory: Path) -> None:
    """Draw the figures of one study from its records."""
    records = read_records(directory / study.name)
    files: dict[str, bytes] = {}
    with mpl.rc_context(STYLE):
        for figure_name, figure in study.figures(records).items():
            files |= figure_files(figure, figure_name, dots_per_inch=DOTS_PER_INCH)
    if files:
        with made(directory / study.name):
            write_together(directory / study.name, files)


def write_page(
    directory: Path, studies: Collection[Study], words: str = WORDS, title: str = TITLE, page: str = PAGE
) -> Path:
    """Write the page of all studies that have records in a directory, and return its path."""
    write_atomic(directory / page, results_page(directory, studies, words, title).encode())
    return directory / page


def results_page(directory: Path, studies: Collection[Study], words: str = WORDS, title: str = TITLE) -> str:
    """Return the text of the page of all studies that have records; ``words`` come first."""
    parts, missing, said = [f"# {title}\n\n{words}\n"], [], set[str]()
    spent: dict[str, tuple[list[str], list[float], list[float]]] = {}  # by device
    for study in studies:
        records = read_records(directory / study.name)
        if not study.tasks().keys() <= records.keys():
            missing.append(study.name)
            continue
        parts.append(section(study, directory, said))
        for values in records.values():
            names, work, training = spent.setdefault(values["device"], ([], [], []))
            names.append(study.name)
            work.append(values["seconds"])
            training.append(values.get("train_seconds", 0.0))
    parts.append("## Time\n")
    for device, (names, work, training) in sorted(spent.items()):
        parts.append(
            f"- {device}: {sum(work) / 60:.1f} minutes, of which training {sum(training) / 60:.1f} "
            f"({', '.join(dict.fromkeys(names))})\n"
        )
    if missing:
        parts.append(f"Not run yet: {', '.join(missing)}.\n")
    return "\n".join(parts)


def section(study: Study, directory: Path, said: set[str] | None = None) -> str:
    """Return the text of one study that has its records. A note that was ``said`` above is not repeated."""
    records, said = read_records(directory / study.name), set() if said is None else said
    lines = [f"## {study.name}\n\n{study.title}\n"]
    for table in study.tables(records):
        lines.append(replace(table, notes=[note for note in table.notes if note not in said]).markdown())
        said.update(table.notes)
    lines += [f"![{name}]({study.name}/{name}.png)\n" for name in study.figures(records)]
    return "\n".join(lines)


def read_records(directory: Path) -> dict[str, Values]:
    """Return the records of a study by task."""
    found = {}
    for path in sorted((directory / "records").glob("*.json")):
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(
                f"{path} must be a record, but cannot be read ({error}); remove it to run it again"
            ) from None
        if not isinstance(values, dict) or not {"options", "seconds", "device"} <= values.keys():
            raise InputError(f"{path} must be a record, but is not one; remove it to run it again")
        found[path.stem] = values
    return found


def _require_same_options(study: Study, directory: Path, options: Options) -> None:
    """Refuse to mix records of other options with new ones; ``directory`` is that of the study."""
    tasks = study.tasks()
    for name, values in read_records(directory).items():
        there = values.get("options", {})
        if name in tasks and (there.get("seeds"), there.get("quick")) != (options.seeds, options.quick):
            raise InputError(
                f"out must be records made with {_said(options.seeds, options.quick)}, but {directory} has some "
                f"made with {_said(there.get('seeds'), there.get('quick'))}; choose another --out"
            )


def _said(seeds: int | None, quick: bool | None) -> str:
    return f"--seeds {seeds}{' --quick' if quick else ''}"

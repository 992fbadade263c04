"""One oracle for every case: a result that holds together, or one clear line with exit code 2.

A case is a few files in an empty folder and the arguments of ``tacit``, which runs there in this process. It passes if

- the exit code is 0, standard error is empty, and what was written or printed is complete, finite and consistent; or
- the exit code is 2, standard error is one line ``tacit: ...`` of at most 300 printable characters, standard output is
  empty, and the folder is as it was before.

Anything else is a failure: another exit code, a traceback, a warning, a case that takes longer than ``LIMIT`` seconds
of the processor, waits for ``PATIENCE`` seconds, or wants more than ``ROOM`` bytes above what the process had.
"""

import contextlib
import io
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import fuzz_results
import jaxtyping

from tacit import cli
from tacit.pipeline import job

with warnings.catch_warnings():  # of its first import; nobody sees them
    warnings.simplefilter("ignore")
    import torch_geometric.nn.models  # noqa: F401

LIMIT = 20.0  # seconds of the processor: the machine may be busy
PATIENCE = 120.0  # seconds by the clock, for what waits and does nothing
ROOM = 3 * 2**30
LONGEST = 300  # characters of an error
PROGRESS = re.compile(r"^( +\d+ s  |note: ).*\n", re.MULTILINE)
UNCHANGED = "what was there before has changed"


class Failure(AssertionError):  # noqa: N818 - of a case, and no error of the program
    """A case that ended in neither a result nor a clear error."""


class Hang(BaseException):
    """A case took too long."""


@dataclass(frozen=True)
class Case:
    """Files by name (None: an empty folder), and what is typed; ``look`` judges a result further."""

    arguments: tuple[str, ...]
    files: Mapping[str, bytes | None]
    look: Callable[[Path, str], None] | None = None
    setup: Callable[[Path], None] | None = None
    trains: bool = False  # to the end of the job; else up to where training would begin

    def __repr__(self) -> str:
        shown = {name: data if data is None or len(data) < 600 else data[:300] for name, data in self.files.items()}
        return f"Case({' '.join(map(repr, self.arguments))}, {shown})"


@dataclass
class Ended:
    """How a case ended."""

    code: int | None
    out: str
    err: str
    seconds: float
    stage: str = "done"  # or "plan": the input was taken, and nothing was trained

    @property
    def line(self) -> str:
        """The error, as it was said."""
        return self.err.removeprefix("tacit: ").removesuffix("\n")


@dataclass
class Tally:
    """What is counted over the cases of a surface."""

    cases: int = 0
    results: int = 0
    plans: int = 0
    errors: int = 0
    slowest: float = 0.0
    kinds: dict[str, int] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)  # by where they come from, an example each

    def add(self, ended: Ended) -> None:
        """Count a case."""
        self.cases += 1
        self.slowest = max(self.slowest, ended.seconds)
        if ended.code == 2:
            self.errors += 1
            kind = fuzz_results.kind_of_error(ended.line)
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
        elif ended.stage == "plan":
            self.plans += 1
        else:
            self.results += 1


def judge(case: Case, tally: Tally) -> Ended:
    """Run a case in a folder of its own; raise :class:`Failure` unless it ends as it should."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        write(folder, case.files)
        if case.setup is not None:
            case.setup(folder)
        before = contents(folder)
        work = job._work if case.trains else fuzz_results.stop_at_plan
        with contextlib.chdir(folder), mock.patch.object(job, "_work", work):
            ended = run(case.arguments)
        if ended.code == 2:
            require_clear(ended)
            if contents(folder) != before:
                raise Failure(f"{UNCHANGED}: {ended.err}")
        elif ended.code == 0:
            if PROGRESS.sub("", ended.err):
                raise Failure(f"a result with words on standard error: {ended.err}")
            now = contents(folder)
            if "--resume" not in case.arguments and any(now.get(name) != data for name, data in before.items()):
                raise Failure(UNCHANGED)
            if ended.stage == "done":
                fuzz_results.require_int(case.arguments, folder, ended.out)
                if case.look is not None:
                    case.look(folder, ended.out)
        else:
            raise Failure(f"exit code {ended.code}: {ended.err}")
        tally.add(ended)
        return ended
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(arguments: tuple[str, ...]) -> Ended:
    """Run the command in this process, within a time and a room."""
    out, err, start = io.StringIO(), io.StringIO(), time.perf_counter()
    code, stage, typed = None, "done", sys.argv
    sys.argv = ["tacit", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), within(LIMIT, ROOM):
            cli.main(list(arguments))
    except SystemExit as ended:
        code = ended.code
    except fuzz_results.Planned:
        code, stage = 0, "plan"
    except Hang:
        raise Failure(f"took more than {LIMIT:g} seconds") from None
    finally:
        sys.argv = typed
    return Ended(code, out.getvalue(), err.getvalue(), time.perf_counter() - start, stage)


@contextlib.contextmanager
def within(seconds: float, room: int) -> Iterator[None]:
    """Raise :class:`Hang` after a time, refuse memory beyond a size; else as for a user. A fit draws no page."""

    def stop(*_: object) -> None:
        raise Hang

    numbers, limits = (signal.SIGALRM, signal.SIGPROF), resource.getrlimit(resource.RLIMIT_AS)
    before = [signal.signal(number, stop) for number in numbers]
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    signal.setitimer(signal.ITIMER_REAL, max(PATIENCE, seconds))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + room, limits[1]))
    checked = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        with mock.patch.object(job, "draw_run", lambda directory, _run: directory / "report.html"):
            yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", checked)
        resource.setrlimit(resource.RLIMIT_AS, limits)
        for timer, number, handler in zip((signal.ITIMER_REAL, signal.ITIMER_PROF), numbers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def require_clear(ended: Ended) -> None:
    """Refuse anything but one readable line."""
    err = ended.err = PROGRESS.sub("", ended.err)
    if not err.startswith("tacit: ") or not err.endswith("\n") or err.count("\n") != 1:
        raise Failure(f"not one line: {err!r}")
    if not err[:-1].isprintable():
        raise Failure(f"characters that cannot be printed: {err!r}")
    if len(err) > len("tacit: ") + LONGEST + 1:
        raise Failure(f"{len(err)} characters: {err!r}")
    if len(ended.line.split()) < 3:
        raise Failure(f"says nothing: {err!r}")
    if ended.out:
        raise Failure(f"printed before it failed: {ended.out[:200]!r}")


def write(folder: Path, files: Mapping[str, bytes | None]) -> None:
    """Write files, and folders where there are no bytes."""
    for name, data in files.items():
        path = folder / name
        if data is None:
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def contents(folder: Path) -> dict[str, bytes | None]:
    """Return all files and folders below a folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        found[str(path.relative_to(folder))] = path.read_bytes() if path.is_file() else None
    return found

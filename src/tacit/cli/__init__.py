"""The command ``tacit``: parse options, print, return an exit code. Torch is imported only when a job starts.

Exit codes: 0 success; 2 bad usage or bad input, with one line that names the problem; 1 anything else.
"""

import errno
import io
import json
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

from tacit.cli import finished, paper, runs
from tacit.cli.effect import effect
from tacit.cli.launch import Launch
from tacit.cli.options import GroupedCommand, Json, Quiet
from tacit.console import Display
from tacit.errors import InputError, ProcessesError, ReportError, TrainingError, did_you_mean, one_line, require
from tacit.interrupts import Terminated, heeded_termination
from tacit.locks import locked

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Learn the graph behind data, and how certain each edge is.",
)

# The errors of the command line, for any copy of click that typer uses.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]
CommandError: type[Exception] = UsageError.__bases__[0]

NO_COMMAND = re.compile(r"No such command '(.*?)'", re.DOTALL)
STOPPED = "stopped by the user"
NOT_LOADED = ("failed to map segment", "annot allocate memory")  # a shared library, in the words of the linker
LEAST_ADDRESS_SPACE = 1_500_000_000  # bytes; with less, loading the libraries may end without a message, or never
BAD_NAMES = {errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EINVAL}  # caused only by a path that the user gave


@app.callback(invoke_without_command=True)
def tacit(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Learn the graph behind data, and how certain each edge is."""
    if version:
        from tacit import __version__

        print(f"tacit {__version__}")
        raise typer.Exit


app.command(cls=GroupedCommand, short_help="Learn the synthetic system of the paper.")(paper.demo)
app.command(cls=GroupedCommand, short_help="Learn the graph behind your data.")(runs.fit)
app.command(cls=GroupedCommand, short_help="Look at a table before a fit.")(runs.check)
app.command(cls=GroupedCommand, short_help="Forecast with a finished run.")(runs.predict)
app.command(cls=GroupedCommand, short_help="Score and test a finished run.")(runs.evaluate)
app.command(cls=GroupedCommand, short_help="What happens if: the response to a change.")(effect)
app.command(cls=GroupedCommand, short_help="Draw one plot of a finished run.")(finished.plot)
app.command(cls=GroupedCommand, short_help="Compare two finished runs.")(finished.compare)
app.command(cls=GroupedCommand, short_help="Reproduce a table or figure of the paper.")(paper.reproduce)


@app.command(cls=GroupedCommand, short_help="Draw the report of a run again.")
def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Directory of a run, written by tacit.")],
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Draw the report and the figures of a finished run again, from its records only."""
    with Display(quiet=quiet or as_json) as display:
        display.stage("starting")
        from tacit.records import is_demo, read_record
        from tacit.report import draw_demo, draw_run

        if not run.is_dir():
            raise InputError(f"RUN must be a directory, got {run}; pass one that a tacit command wrote")
        if not is_demo(run):
            read_record(run)  # refuse a directory that is not a run before anything is written
        display.stage("drawing")
        with locked(run):
            page = draw_demo(run) if is_demo(run) else draw_run(run)
    print(json.dumps({"report": str(page)}) if as_json else page)


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit with its code."""
    # By default, waiting threads spin for a long time; with another job running, steps were eight times slower. A short
    # spin followed by sleep costs nothing on an idle machine (a fit of 3 s takes 6 s if threads sleep at once).
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")  # read when torch is imported, which is later
    is_program = arguments is None
    if is_program:
        _open_streams()
    if is_program and not sys.warnoptions:  # deprecations inside torch do not concern the user
        warnings.filterwarnings("ignore", category=FutureWarning, module=r"torch\.")
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        launch = Launch.from_environment()
        launch.join()
    except (InputError, ProcessesError, Terminated) as error:
        print(f"tacit: {one_line(str(error))}", file=sys.stderr)
        sys.exit(2 if isinstance(error, InputError) else 1)
    ended = _run(launch, arguments)
    code = launch.end(*ended)
    stopped = code == 1 or not ended[2]
    if is_program:
        _let_go_of_output()
    # Threads of the transport may abort a process that exits normally. A stopped process exits at once: cleaning up
    # torch takes a second.
    if is_program and (launch.several or stopped):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _run(launch: Launch, arguments: list[str]) -> tuple[int, str | None, bool]:
    """Run the command; return the exit code, the error message, and whether all processes are still in step."""
    try:
        _require_text(arguments)
        _require_address_space(arguments)
        if arguments[:1] != ["fit"]:
            launch.require_alone(" ".join(["tacit", *arguments[:1]]))
        with heeded_termination(ctrl_c=launch.several):
            code = app(arguments or ["--help"], prog_name="tacit", standalone_mode=False)
            sys.stdout.flush()  # report a full disk here, not while Python exits
        code = code if arguments else 2  # without a command: print the help, and fail
        if code == 130:  # Ctrl-C in newer versions of typer
            return 1, STOPPED, False
        return code if isinstance(code, int) else 0, None, True
    except (InputError, UsageError) as error:
        return 2, _usage_text(error), True
    except BrokenPipeError:  # the reader closed the pipe
        return 1, None, True
    except OSError as error:
        if error.errno in BAD_NAMES:
            return 2, f"{error.filename} cannot be used as a path ({error.strerror}); choose another", True
        return 1, _with_notes(error, str(error)), True
    except (TrainingError, ReportError, CommandError) as error:
        return 1, _with_notes(error, str(error)), True
    except ProcessesError as error:
        return 1, None if error.in_step else _with_notes(error, str(error)), error.in_step
    except Terminated as error:
        return 1, _with_notes(error, launch.reason(error)), False
    except (KeyboardInterrupt, typer.Abort):
        return 1, STOPPED, False
    except (RuntimeError, MemoryError, ImportError) as error:
        if not _is_out_of_memory(error):
            raise
        trains = arguments[:1] in (["fit"], ["demo"]) and not isinstance(error, ImportError)
        remedy = "lower batch_size, num_graphs, replicas or hidden" if trains else "free some memory"
        return 1, _with_notes(error, f"out of memory; {remedy}"), True


def _require_text(arguments: list[str]) -> None:
    """Refuse arguments that are not valid text: they cannot be printed or recorded."""
    for argument in arguments:
        require(
            not any("\ud800" <= letter <= "\udfff" for letter in argument),
            f"arguments must be text in UTF-8, got {argument!r}; rename the file, or set a UTF-8 locale",
        )


def _require_address_space(arguments: list[str]) -> None:
    """Raise an error under a limit of the address space (``ulimit -v``) that is too small for the libraries."""
    if resource is None or not arguments or arguments[0].startswith("-"):
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESS_SPACE:
        raise OSError(
            f"out of memory: tacit needs an address space of {LEAST_ADDRESS_SPACE / 1e9:g} GB, and the limit is "
            f"{limit / 1e9:.3g} GB; raise it with ulimit -v"
        )


def _open_streams() -> None:
    """Replace closed streams by the null device, and escape letters that the encoding of a stream does not have."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open until the process ends
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _let_go_of_output() -> None:
    """Discard output that cannot be written; otherwise Python tries again at exit and prints a traceback."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_out_of_memory(error: Exception) -> bool:
    """Return whether an error means that a device or the machine is out of memory, without importing torch."""
    of_torch = type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)
    of_the_linker = isinstance(error, ImportError) and any(words in str(error) for words in NOT_LOADED)
    return isinstance(error, MemoryError) or of_torch or of_the_linker


def _with_notes(error: BaseException, text: str) -> str:
    """Return the message, followed by the command that resumes the run if there is one."""
    return "; ".join([text, *getattr(error, "__notes__", [])])


def _usage_text(error: Any) -> str:
    if isinstance(error, InputError):
        return str(error)
    context = getattr(error, "ctx", None)
    if hasattr(error, "option_name") and context is not None:
        known = [name for parameter in context.command.params for name in parameter.opts if name.startswith("-")]
        setting = _setting_of(error.option_name) if context.command.name == "fit" else None
        hint = did_you_mean(error.option_name, known) if setting is None else f"; use --set {setting}=VALUE"
        return f"unknown option '{error.option_name}'{hint}"
    unknown = NO_COMMAND.match(str(error.format_message()))
    if unknown is not None and context is not None:
        return f"there is no command '{unknown[1]}'{did_you_mean(unknown[1], context.command.commands)}"
    text = " ".join(str(error.format_message()).split()).replace("Value error, ", "").rstrip(".")
    return f"{text}; see '{context.command_path} --help'" if context is not None else text


def _setting_of(option: str) -> str | None:
    """Return the config key that an unknown option such as ``--epochs`` probably means, or None."""
    from tacit.config import FitConfig

    key = option.lstrip("-").replace("-", "_")
    sections = FitConfig.model_fields
    return next((f"{name}.{key}" for name, field in sections.items() if key in type(field.default).model_fields), None)

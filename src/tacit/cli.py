"""The command ``tacit``: reads options, prints, returns an exit code. Torch is imported only when a job starts.

Exit codes: 0 the job was done; 2 bad usage or bad input, one line says what; 1 anything else.
"""

import json
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.console import Display
from tacit.errors import InputError, TrainingError, did_you_mean

if TYPE_CHECKING:
    import torch

    from tacit.experiments.demo import Demo

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Learns the graph that data does not show, and says how sure it is.",
)

# The errors of the command line, whichever copy of click typer works with.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]
CommandError: type[Exception] = UsageError.__bases__[0]

STOPPED = "stopped by the user"
EXPLANATION = """
edge error: mean absolute error of the edge probabilities, beside the paper's
and that of an oracle that sees every hidden graph. MAE, MSE: point predictions
on the test pairs, beside those of the true model. time: training alone."""


def _whole_number(text: str | int) -> int:
    if not str(text).isdecimal():
        raise typer.BadParameter(f"needs a whole number of at least 0, got '{text}'; pass for example 0")
    return int(text)


Seed = Annotated[int, typer.Option(parser=_whole_number, metavar="N", help="Same seed, same machine, same result.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print only the path of the report.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]


class Method(StrEnum):
    """How ``tacit demo`` learns."""

    node = "node"
    paper = "paper"


@app.callback(invoke_without_command=True)
def tacit(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Learns the graph that data does not show, and says how sure it is."""
    if version:
        from tacit import __version__

        print(f"tacit {__version__}")
        raise typer.Exit


@app.command(short_help="Learn the paper's system and draw a report.")
def demo(
    method: Annotated[Method, typer.Option(help="node: our default; paper: the paper's own settings.")] = Method.node,
    out: Annotated[Path | None, typer.Option(help="New directory for the results. [default: runs/demo-N]")] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file whose values replace the method's own.")] = None,
    seed: Seed = 0,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Learn the paper's synthetic system, score it against the truth, and draw a report."""
    out = out or _next_free(Path("runs"), "demo")
    with Display(quiet=quiet or as_json) as display:
        display.stage("starting")
        from tacit.config import METHODS, load_config
        from tacit.experiments.demo import run_demo
        from tacit.experiments.study import Listener

        settings = METHODS[method] if config is None else load_config(config, METHODS[method])
        result = run_demo(
            settings,
            out,
            seed=seed,
            device=_device(device),
            command=_command(),
            listener=Listener(display.stage, display.step),
        )
    if as_json:
        print(json.dumps(_as_json(result), indent=2))
    elif quiet:
        print(result.report)
    else:
        _print_demo(result)
    if not result.complete:
        print(f"tacit: stopped before the end; what was learned is in {result.directory}", file=sys.stderr)
        raise typer.Exit(1)


@app.command(short_help="Run a table or figure of the paper.")
def reproduce(
    name: Annotated[str | None, typer.Argument(help="A study, or 'all'; --list names them.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="Name the studies and exit.")] = False,
    seeds: Annotated[int, typer.Option(min=1, help="Initialisations of each row; the paper has 8.")] = 8,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer pairs and epochs, to try it out.")] = False,
    data: Annotated[Path | None, typer.Option(help="Folder or file of the data, for studies that need some.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Tasks at a time, each in a process of its own.")] = 1,
    out: Annotated[Path, typer.Option(help="Directory; what is finished there is not done again.")] = Path("results"),
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run one study of the paper, or all; write records, a table beside the paper's and figures."""
    with Display(quiet=quiet or as_json or list_) as display:
        display.stage("starting")
        from tacit.experiments.registry import STUDIES
        from tacit.experiments.runner import draw_all, require_startable, run_study
        from tacit.experiments.study import Listener, Options

        if list_:
            for study in STUDIES.values():
                print(f"{study.name:16}{study.title}" + (f" (--data: {study.needs_data})" if study.needs_data else ""))
            return
        if name is None:
            raise InputError("NAME needs a study; --list names them")
        if name == "all" and data is not None:
            raise InputError("data goes with one study, got 'all'; name the study that --data is for")
        shipped = [study.name for study in STUDIES.values() if study.needs_data is None]
        names = shipped if name == "all" else [name]
        for one in names:
            if one not in STUDIES:
                raise InputError(f"NAME needs a study, got '{one}'{did_you_mean(one, [*STUDIES, 'all'])}")
        options = Options(seeds, quick, str(_device(device)), None if data is None else str(data))
        listener = Listener(display.stage, display.step)
        require_startable(names, out, options, jobs)
        pages = [run_study(one, out, options, jobs=jobs, listener=listener) for one in names]
        page = draw_all(out) if name == "all" else pages[0]
    if as_json:
        print(json.dumps({"page": str(page), "studies": names}))
    elif quiet:
        print(page)
    else:
        print(page.read_text(encoding="utf-8"))
        print(f"page: {page}")


@app.command(short_help="Draw a run's page and figures again.")
def report(
    run: Annotated[Path, typer.Argument(help="A directory that tacit wrote.")],
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Draw the page and the figures of a finished run again, from its records alone."""
    with Display(quiet=quiet or as_json) as display:
        display.stage("starting")
        from tacit.experiments.demo import draw_demo, draw_run

        if not run.is_dir():
            raise InputError(f"RUN needs to be a directory, got {run}, which is not; pass what a tacit command wrote")
        display.stage("drawing")
        whole = (run / "known").is_dir() or (run / "joint").is_dir()
        page = draw_demo(run) if whole else draw_run(run)
    print(json.dumps({"report": str(page)}) if as_json else page)


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit with its code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        code = app(arguments or ["--help"], standalone_mode=False)
        code = code if arguments else 2  # no command: the help, but nothing was done
        code = _complain(STOPPED, 1) if code == 130 else code  # what newer typers make of Ctrl-C
    except (InputError, UsageError) as error:
        code = _complain(_usage_text(error), 2)
    except (TrainingError, OSError, CommandError) as error:
        code = _complain(str(error), 1)
    except (KeyboardInterrupt, typer.Abort):
        code = _complain(STOPPED, 1)
    sys.exit(code if isinstance(code, int) else 0)


def _usage_text(error: Any) -> str:
    if isinstance(error, InputError):
        return str(error)
    context = getattr(error, "ctx", None)
    if hasattr(error, "option_name") and context is not None:
        known = [name for parameter in context.command.params for name in parameter.opts if name.startswith("-")]
        return f"unknown option '{error.option_name}'{did_you_mean(error.option_name, known)}"
    text = " ".join(str(error.format_message()).split()).replace("Value error, ", "").rstrip(".")
    return f"{text}; see '{context.command_path} --help'" if context is not None else text


def _complain(message: str, code: int) -> int:
    print(f"tacit: {message}", file=sys.stderr)
    return code


def _device(name: str) -> "torch.device":
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"device needs one of auto, cpu, cuda, cuda:N, got '{name}'; use --device auto") from None
    count = torch.cuda.device_count()
    if device.type == "cuda" and (device.index or 0) >= count:
        raise InputError(f"device needs a CUDA device that is there, got '{name}' of {count}; use --device cpu")
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device needs one of auto, cpu, cuda, cuda:N, got '{name}'; use --device auto")
    return device


def _next_free(parent: Path, name: str) -> Path:
    number = 1
    while (parent / f"{name}-{number}").exists():
        number += 1
    return parent / f"{name}-{number}"


def _command() -> str:
    return shlex.join(["tacit", *sys.argv[1:]])


def _as_json(result: "Demo") -> dict[str, Any]:
    return {
        "directory": str(result.directory),
        "report": str(result.report),
        "complete": result.complete,
        "runs": {
            name: run.record.model_dump(include={"metrics", "optimal", "paper", "timings", "warnings"})
            for name, run in result.runs.items()
        },
    }


def _print_demo(result: "Demo") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for column in ("edge error", "paper", "oracle", "MAE", "optimal", "MSE", "optimal", "time"):
        table.add_column(column, justify="right", no_wrap=True)
    for run in result.runs.values():
        metrics, optimal, paper = run.record.metrics, run.record.optimal, run.record.paper
        table.add_row(
            run.record.title,
            f"{metrics['edge_prob_mae']:.4f}",
            f"{paper['edge_prob_mae']:.3f}" if paper else "-",
            f"{optimal['edge_prob_mae']:.4f}",
            *(f"{source[key]:.4f}" for key in ("point_mae", "point_mse") for source in (metrics, optimal)),
            f"{run.record.timings['train_seconds']:.1f} s",
        )
    console = Console()
    console.print(table)
    console.print(EXPLANATION, highlight=False)
    for note in dict.fromkeys(note for run in result.runs.values() for note in run.record.warnings):
        console.print(f"note: {note}", soft_wrap=True, markup=False)
    console.print(f"report: {result.report}", soft_wrap=True, markup=False, highlight=False)

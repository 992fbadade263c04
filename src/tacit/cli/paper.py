"""``tacit demo`` and ``tacit reproduce``: the system and the tables of the paper."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import (
    Device,
    Json,
    Quiet,
    Seed,
    at_least,
    command_line,
    next_free,
    require_complete,
)
from tacit.console import Display
from tacit.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from tacit.experiments import Demo

EXPLANATION = """
edge error: mean absolute error of the edge probabilities; paper: the published
value; oracle: an estimate from the hidden graphs themselves. MAE, MSE: errors
of point predictions on the test pairs; optimal: those of the true model.
time: training only."""


class Method(StrEnum):
    """The settings that ``tacit demo`` uses."""

    node = "node"
    paper = "paper"


def demo(
    method: Annotated[
        Method, typer.Option(help="Settings to use: those of tacit (node) or those of the paper.")
    ] = Method.node,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="New directory for the results. [default: runs/demo-N]")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TOML file with values that replace those of the method.")
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Learn the synthetic system of the paper, compare with the truth, and draw a report."""
    out = out or next_free(Path("runs"), "demo")
    with Display(quiet=quiet or as_json) as display:
        display.stage("starting")
        from tacit.config import METHODS, load_config
        from tacit.devices import find_device
        from tacit.experiments import Listener, run_demo

        settings = METHODS[method] if config is None else load_config(config, METHODS[method])
        result = run_demo(
            settings,
            out,
            seed=seed,
            device=find_device(device),
            command=command_line(),
            listener=Listener(display.stage, display.step),
        )
    if as_json:
        print(json.dumps(_as_json(result), indent=2))
    elif quiet:
        print(result.report)
    else:
        _print_demo(result)
    require_complete(result.complete, result.directory)


def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A study, or 'all'; --list shows them.", show_default=False)
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the studies and exit.")] = False,
    seeds: Annotated[
        int,
        typer.Option(parser=at_least(1), metavar="N", help="Random starts for each row of a table, as in the paper."),
    ] = 8,
    quick: Annotated[bool, typer.Option("--quick", help="Use fewer pairs and epochs, for a short trial.")] = False,
    data: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Folder or file of the data, for studies that need it.")
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            parser=at_least(1), metavar="N", help="Number of tasks that run in parallel, each in its own process."
        ),
    ] = 1,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Run the tasks on the workers of this Dask scheduler, such as tcp://host:8786."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Directory for the results; finished tasks are not repeated.")
    ] = Path("results"),
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run one study of the paper, or all; write records, figures and a table with the published numbers."""
    with Display(quiet=quiet or as_json or list_) as display:
        display.stage("starting")
        from tacit.experiments import STUDIES, Listener, Options, run_studies, section, write_page

        if list_:
            for study in STUDIES.values():
                print(f"{study.name:18}{study.title}")
            return
        if name is None:
            raise InputError("NAME must be a study, got none; list them with --list")
        if name == "all" and data is not None:
            raise InputError("--data must be used with one study, got 'all'; name the study")
        names = list(STUDIES) if name == "all" else [name]
        for one in names:
            if one not in STUDIES:
                raise InputError(f"NAME must be a study, got '{one}'{did_you_mean(one, [*STUDIES, 'all'])}")
        options = Options(seeds, quick, _device_of_tasks(device, scheduler), None if data is None else str(data))
        listener = Listener(display.stage, display.step)
        studies = [STUDIES[one] for one in names]
        run_studies(studies, out, options, jobs=jobs, scheduler=scheduler, listener=listener)
        page = write_page(out, STUDIES.values())
        shown = [section(study, out) for study in studies]
    if as_json:
        print(json.dumps({"page": str(page), "studies": names}))
    elif quiet:
        print(page)
    else:
        print("\n".join(shown))
        print(f"page: {page}")


def _device_of_tasks(device: str, scheduler: str | None) -> str:
    """Return the device of the tasks; with a scheduler it is checked by the workers, not here.

    >>> _device_of_tasks("auto", "tcp://host:8786")
    'cpu'
    """
    from tacit.devices import find_device, named_device

    if scheduler is None:
        return str(find_device(device))
    return "cpu" if device == "auto" else str(named_device(device))


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
            f"{metrics.get('edge_prob_mae_identifiable', metrics['edge_prob_mae']):.4f}",
            f"{paper['edge_prob_mae']:.3f}" if paper else "-",
            f"{optimal['edge_prob_mae']:.4f}",
            *(f"{source[key]:.4f}" for key in ("point_mae", "point_mse") for source in (metrics, optimal)),
            f"{run.record.timings['train_seconds']:.1f} s",
        )
    console = Console()
    console.print(table)
    console.print(EXPLANATION, highlight=False)
    for run in result.runs.values():
        for finding in run.record.findings[:1]:
            console.print(f"{run.record.title}: {finding.sentence}", soft_wrap=True, markup=False, highlight=False)
    for note in dict.fromkeys(note for run in result.runs.values() for note in run.record.warnings):
        console.print(f"note: {note}", soft_wrap=True, markup=False)
    console.print(f"report: {result.report}", soft_wrap=True, markup=False, highlight=False)

"""``tacit fit``, ``tacit check``, ``tacit predict`` and ``tacit evaluate``."""

import json
import math
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options as given
from tacit.cli.answers import LEGEND, print_check, print_fit, print_group_scores, print_lines, print_notes, score_table
from tacit.cli.launch import Launch
from tacit.cli.options import (
    Device,
    Json,
    NoNotes,
    OwnSeed,
    Quiet,
    Seed,
    at_least,
    command_line,
    next_free,
    require_complete,
)
from tacit.console import Display
from tacit.errors import InputError, require
from tacit.interrupts import noted_interrupts

if TYPE_CHECKING:
    import torch

FIT_JSON = {
    "answer",
    "evidence",
    "node_gains",
    "metrics",
    "by_node",
    "by_series",
    "references",
    "timings",
    "stages",
    "warnings",
    "choices",
    "findings",
    "goodness",
    "uncertainty",
    "situations",
}
SITUATIONS_JSON = ("kind", "variables", "tested", "varying", "fdr", "tests", "blocks", "weights", "notes")
NEW_DATA = "Data in the format of the training data."
STEPS = "Forecast N steps after the last observed row of each series."
ORIGIN = "With --steps: forecast from the row at this time instead."
EVERY = "With --steps: forecast also from every N-th row after that, up to the last observed row."


@given.with_config_keys("data", "graph", "assessment")
def fit(
    data: given.DataFiles = None,
    quick: given.Quick = False,
    thorough: given.Thorough = False,
    config: given.Config = None,
    init: given.Init = None,
    set_: given.Set = None,
    out: given.RunOut = None,
    resume: given.Resume = None,
    seed: Seed = 0,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
    **options: Any,
) -> None:
    """Learn the graph behind time series or pairs (x, y): edges with probabilities, forecasts and a report."""
    for other, is_given in (("--thorough", thorough), ("--std-errors", options["bootstrap_replicas"] is not None)):
        require(not (quick and is_given), f"--quick cannot be used with {other}; keep one of them")
    launch = Launch.from_environment()
    with noted_interrupts(), Display(quiet=quiet or as_json or not launch.first) as display:
        display.stage("starting")
        from tacit.config import FitConfig, load_config, override
        from tacit.devices import find_device as present_device
        from tacit.pipeline import resume_fit, run_fit, write_template
        from tacit.records import drawing, resuming
        from tacit.training import Listener

        if init is not None:
            require(resume is None, "--init writes a config file and --resume resumes a run; keep one of them")
            launch.require_alone("tacit fit --init")
            write_template(init)
            print(init)
            return
        shown = (display.stage, display.step, display.finished, display.say)
        listener = Listener(*shown[:3] if display.quiet else shown)

        def find_device(name: str) -> "torch.device":
            return launch.own_device(present_device(name))

        def find_original(name: str) -> "torch.device":
            try:
                return find_device(name)
            except InputError as error:
                missing = str(error).split("; ")[0]
                raise InputError(
                    f"{missing}, and the run was started on one; resume on a machine with a GPU, or fit again with "
                    "--device cpu"
                ) from None

        if resume is not None:
            fixed: dict[str, Any] = {
                "DATA": data or None,
                "--config": config,
                "--set": set_,
                "--quick": quick,
                "--thorough": thorough,
            }
            fixed |= {name: options[key] or None for _, key, name, _ in given.config_keys(*given.SECTIONS)}
            _require_alone({**fixed, "--out": out, "--seed": seed or None, "--device": device != "auto"})
            job = resume_fit(resume, find_device=find_original, listener=listener)
        elif not data:
            raise InputError("DATA must be a table, an .npz file, a folder or beijing-air; see 'tacit fit --help'")
        else:
            settings = _settings(set_ or []) | given.given_settings(options)
            if quick or thorough:
                settings |= {("assessment", "enabled"): thorough, ("assessment", "thorough"): thorough}
            job = run_fit(
                data,
                override(FitConfig() if config is None else load_config(config, FitConfig()), _by_section(settings)),
                out or next_free(Path("runs"), Path(data[0]).resolve().name.split(".")[0] or "fit"),
                seed=seed,
                device=find_device(device),
                command=command_line(),
                listener=listener,
            )
    if job is None:  # only the first process prints
        return
    if as_json:
        record = job.run.record.model_dump(include=FIT_JSON)
        record["situations"] = {key: value for key, value in record["situations"].items() if key in SITUATIONS_JSON}
        report = None if job.report is None else str(job.report)
        print(json.dumps({"directory": str(job.directory), "report": report, **record}, indent=2))
    elif quiet:
        print(job.report or job.directory)
    else:
        print_fit(job, display.seconds)
    require_complete(job.complete, job.directory, f"; resume with {resuming(job.directory)}")
    if job.report is None:
        print(f"tacit: stopped by the user; {drawing(job.directory)}", file=sys.stderr)
        raise typer.Exit(1)


@given.with_config_keys("data", without=("y_file", "window", "horizon"))
def check(
    data: given.TableFiles,
    config: given.Config = None,
    set_: given.Set = None,
    quiet: NoNotes = False,
    as_json: Json = False,
    **options: Any,
) -> None:
    """Read a table as tacit fit does, and list what may mislead a fit: cycles, trends, jumps, spikes, copies."""
    with Display(quiet=quiet or as_json) as display:
        display.stage("starting")
        from tacit.config import FitConfig, load_config, override
        from tacit.pipeline import check_table

        settings = _settings(set_ or []) | given.given_settings(options)
        choices = FitConfig() if config is None else load_config(config, FitConfig())
        display.stage("reading")
        checked, lines = check_table(data, override(choices, _by_section(settings)))
    if as_json:
        print(json.dumps(checked, indent=2))
        return
    if not quiet:
        print_notes(checked["notes"])
    print_check(checked, lines)


def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Directory of a run, written by tacit fit.")],
    data: Annotated[list[str], typer.Argument(metavar="DATA", help=NEW_DATA)],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="New .csv or .parquet file. [default: print CSV]")
    ] = None,
    samples: Annotated[
        int, typer.Option(parser=at_least(0), metavar="N", help="Number of samples to write, one column each.")
    ] = 0,
    steps: Annotated[int | None, typer.Option(parser=at_least(1), metavar="N", help=STEPS)] = None,
    origin: Annotated[str | None, typer.Option(metavar="TIME", help=ORIGIN)] = None,
    every: Annotated[int | None, typer.Option(parser=at_least(1), metavar="N", help=EVERY)] = None,
    seed: OwnSeed = None,
    device: Device = "auto",
    quiet: NoNotes = False,
    as_json: Json = False,
) -> None:
    """Forecast mean, median and quantiles after every window of DATA, including the last one.

    With --steps, forecast several steps from the end of each series, or from an earlier time.
    """
    with Display(quiet=quiet or as_json or out is None) as display:
        display.stage("starting")
        from tacit.devices import find_device
        from tacit.pipeline import (
            Fitted,
            csv_text,
            forecast_table,
            path_table,
            read_new,
            require_new_table,
            write_table,
        )

        for name, value in (("--origin", origin), ("--every", every)):
            require(steps is not None or value is None, f"{name} requires --steps; pass for example --steps 24")
        if out is not None:
            require_new_table(out)
        fitted = Fitted.read(run, find_device(device))
        display.stage("predicting")
        chosen = fitted.record.seed if seed is None else seed
        source = read_new(fitted, data)
        if steps is None:
            frame = forecast_table(fitted, source, seed=chosen, num_samples=samples)
        else:
            where: dict[str, Any] = {"origin": origin, "every": every}
            frame = path_table(fitted, source, steps, **where, seed=chosen, num_samples=samples)
        if out is not None:
            write_table(frame, out)
    if as_json:
        rows, notes = frame.to_json(orient="records", date_format="iso"), json.dumps(frame.attrs["notes"])
        print(f'{{"predictions":{rows},"notes":{notes}}}')
        return
    if not quiet:
        print_notes(frame.attrs["notes"])
    if out is None:
        print(csv_text(frame), end="")
    else:
        print(out)


def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Directory of a run, written by tacit fit.")],
    data: Annotated[
        list[str] | None,
        typer.Argument(metavar="DATA", help="New data. [default: the test part of the run]", show_default=False),
    ] = None,
    seed: OwnSeed = None,
    device: Device = "auto",
    quiet: NoNotes = False,
    as_json: Json = False,
) -> None:
    """Score the forecasts of a run, test whether the model fits, and report which edges are identifiable."""
    with Display(quiet=quiet or as_json) as display:
        display.stage("starting")
        from tacit.devices import find_device
        from tacit.pipeline import Fitted, read_new
        from tacit.pipeline import evaluate as evaluate_fitted

        fitted = Fitted.read(run, find_device(device))
        display.stage("scoring")
        chosen = fitted.record.seed if seed is None else seed
        found = evaluate_fitted(fitted, read_new(fitted, data) if data else None, seed=chosen)
    if as_json:
        print(json.dumps(_finite(found), indent=2))
        return
    if not quiet:
        print_notes(found["notes"])
    from rich.console import Console

    console = Console()
    console.print(score_table({"learned graph": found["metrics"], **found.get("references", {})}))
    console.print(f"\non {found['data']}, {LEGEND}", soft_wrap=True, highlight=False, markup=False)
    for what in ("node", "series"):
        print_group_scores(console, what, found[f"by_{what}"])
    print_lines(console, found["findings"])


def _finite(value: Any) -> Any:
    """Return values for JSON: numbers that are not finite become null."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _require_alone(options: dict[str, Any]) -> None:
    """Refuse options next to --resume: the run has them already, so they would be ignored."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise InputError(f"--resume uses the options of the original run and takes no {name}; leave it out")


def _by_section(settings: dict[tuple[str, str], Any]) -> dict[str, dict[str, Any]]:
    sections: dict[str, dict[str, Any]] = {}
    for (section, key), value in settings.items():
        sections.setdefault(section, {})[key] = value
    return sections


def _settings(texts: list[str]) -> dict[tuple[str, str], Any]:
    """Return the values of --set: parsed as TOML, or as text without quotes."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        section, dot, key = name.strip().partition(".")
        if not (equals and dot and key):
            raise InputError(f"--set must be SECTION.KEY=VALUE, got '{text}'; write for example training.epochs=20")
        try:
            parsed: Any = tomllib.loads(f"value = {value}")["value"]
        except (ValueError, RecursionError):  # text without quotes, or not TOML
            parsed = value.strip()
        found[section, key] = parsed
    return found

"""``tacit effect``: what happens to all nodes if some change."""

import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.answers import print_notes
from tacit.cli.options import Device, Json, OwnSeed, at_least
from tacit.console import Display
from tacit.errors import require

if TYPE_CHECKING:
    import pandas as pd

SIGNED = re.compile(r"[+-]")
SHAPES = "pulse, step or value: added once, added to all later values, or a value that is kept. "
SET = "NODE=+1 adds to a node, NODE=3.5 keeps it at a value (a negative one requires --shape value); may be repeated."
DATA = "Data in the format of the training data: --out and --json then have the paths with and without the change."
AT = "Change the row at this time of DATA. [default: the last observed row of each series]"
LARGEST_SHOWN = 20  # nodes in the table; --json and --out have all


def effect(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Directory of a run, written by tacit fit.")],
    data: Annotated[list[str] | None, typer.Argument(metavar="DATA", help=DATA, show_default=False)] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="NODE=NUMBER", help=SET)] = None,
    shape: Annotated[
        str | None,
        typer.Option(metavar="SHAPE", help=f"{SHAPES}[default: pulse for numbers with a sign, otherwise value]"),
    ] = None,
    at: Annotated[str | None, typer.Option(metavar="TIME", help=AT)] = None,
    steps: Annotated[int, typer.Option(parser=at_least(1), metavar="N", help="Steps after the change.")] = 24,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="New .csv or .parquet file with every step of every node.")
    ] = None,
    seed: OwnSeed = None,
    device: Device = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress; print only the table or the file.")] = False,
    as_json: Json = False,
) -> None:
    """Print how all nodes respond over time if some change: the impulse response, with 90% intervals.

    The numbers are in the units of the data. The first line says when they are the effect of an intervention.
    """
    with Display(quiet=quiet or as_json) as display:
        display.stage("starting")
        changes, shape = _changes(set_ or [], shape)
        from tacit.devices import find_device
        from tacit.pipeline import Fitted, effect_table, read_new, require_new_table, write_table

        if out is not None:
            require_new_table(out)
        node, kept = next(iter(changes.items()))
        require(
            bool(data) or shape != "value",
            f"--set {node}={kept:g} keeps a value and requires DATA; write {node}={kept:+g} to add, or pass the table",
        )
        require(bool(data) or at is None, f"--at {at} is a row of DATA, which is missing; pass the table")
        fitted = Fitted.read_all(run, find_device(device))
        display.stage("computing")
        how: dict[str, Any] = {"steps": steps, "shape": shape, "at": at}
        chosen = fitted.record.seed if seed is None else seed
        frame = effect_table(fitted, changes, read_new(fitted, data) if data else None, **how, seed=chosen)
        if out is not None:
            write_table(frame, out)
    if as_json:
        rows = json.loads(frame.to_json(orient="records", date_format="iso", double_precision=15))
        said = {name: frame.attrs[name] for name in ("condition", "interval", "notes")}
        print(json.dumps({**said, "effects": rows, "edges": frame.attrs["edges"]}))
        return
    from rich.console import Console

    console = Console()

    def say(line: str) -> None:
        if not quiet:
            console.print(line, soft_wrap=True, markup=False, highlight=False)

    say(f"{frame.attrs['condition']}\n")
    what = (f"{node} = {size:g}" if shape == "value" else f"{node} {size:+g}" for node, size in changes.items())
    say(f"{'kept' if shape == 'value' else shape}: {', '.join(what)}\n")
    if not quiet:
        print_notes(frame.attrs["notes"])
    if out is None or not quiet:
        console.print(_table(frame, frame.attrs["edges"], list(changes), shape))
        keys = ["series", "node"] if "series" in frame else ["node"]
        more = len(_responding(frame, list(changes))[keys].drop_duplicates()) - LARGEST_SHOWN
        if more > 0:
            say(f"and {more} more; --out FILE has all")
    say(f"\n{frame.attrs['interval']}")
    if out is None:
        by = "By: the direct edges through which the largest response arrives. " if frame.attrs["edges"] else ""
        say(f"{by}--out FILE writes every step.")
    else:
        print(out)


def _changes(texts: list[str], shape: str | None) -> tuple[dict[str, float], str]:
    """Return the changes of --set, and their shape: numbers with a sign are added, others are values."""
    require(bool(texts), "--set must name a change, got none; pass for example --set creek=+1")
    changes, signed = dict[str, float](), set[bool]()
    for text in texts:
        node, _, number = text.rpartition("=")
        try:
            size = float(number)
        except ValueError:
            size = math.nan
        require(
            bool(node) and math.isfinite(size),
            f"--set must be NODE=+1 or NODE=3.5, got '{text}'; pass for example --set creek=+1",
        )
        require(node not in changes, f"--set names {node} twice; name it once")
        changes[node] = size
        signed.add(SIGNED.match(number.strip()) is not None)
    require(
        shape is not None or len(signed) == 1,
        "--set must be all changes with a sign or all values, got both; pass --shape step, --shape pulse or --shape "
        "value",
    )
    return changes, shape or ("pulse" if True in signed else "value")


def _responding(frame: "pd.DataFrame", changed: list[str]) -> "pd.DataFrame":
    """Return the rows with a response beside the change itself; within a step, other nodes respond in step 0."""
    change = (frame["step"] == 0) & frame["node"].isin(changed)
    return frame[~change & (frame["response"] != 0)]


def _table(frame: "pd.DataFrame", edges: list[dict[str, Any]], changed: list[str], shape: str) -> Any:
    """Return the largest response of every node that responds."""
    from rich.table import Table
    from rich.text import Text

    keys = ["series", "node"] if "series" in frame else ["node"]
    later = _responding(frame, changed)
    largest = later.loc[later["response"].abs().groupby([later[key] for key in keys]).idxmax()]
    largest = largest.reindex(largest["response"].abs().sort_values(ascending=False, kind="stable").index)
    last = frame[frame["step"] == frame["step"].max()].set_index(keys)["response"]
    table = Table(box=None, pad_edge=False)
    for key in keys:
        table.add_column(key)
    for title in ("largest", "90% interval", "step", f"at step {frame['step'].max()}", *(["by"] if edges else [])):
        table.add_column(title, justify="left" if title == "by" else "right", no_wrap=True)
    for row in largest.head(LARGEST_SHOWN).to_dict("records"):
        place = tuple(row[key] for key in keys)
        parts = [
            (one["source"], one["part"] / row["response"])
            for one in edges
            if one["step"] == row["step"]
            and one["target"] == row["node"]
            and one.get("series", row.get("series")) == row.get("series")
        ]
        parts = sorted(parts, key=lambda one: -abs(one[1]))[:2]
        by = ", ".join(f"{'own past' if name == row['node'] else name} {part:.0%}" for name, part in parts)
        by = by or ("set" if row["node"] in changed and shape != "pulse" else "-")
        known = row["low"] < row["high"]  # not without an interval, nor where it is one number
        interval = f"{row['low']:+.3g} to {row['high']:+.3g}" if known else "-"
        end = last[place if len(place) > 1 else place[0]]
        cells = [f"{row['response']:+.3g}", interval, str(row["step"]), f"{end:+.2g}"]
        table.add_row(*(Text(str(name)) for name in place), *cells, *([Text(by)] if edges else []))  # no markup
    return table

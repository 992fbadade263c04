"""What a result has to be: complete, finite and consistent, in the files and in what is printed."""

import csv
import io
import json
import math
import re
from pathlib import Path
from typing import Any

import torch

from tacit.pipeline import Plan


class Planned(BaseException):
    """The input was taken: data, rules and model are there, and training would begin."""


def stop_at_plan(plan: Plan, *_: object) -> None:
    """Take the place of the training: look at what it would begin with, and end."""
    for name, part in vars(plan.dataset.split).items():
        for values in (part.inputs, part.targets):
            assert torch.isfinite(values).all(), f"the {name} part is not finite"
    assert all(torch.isfinite(value).all() for value in plan.model.predictor.parameters()), "the start is not finite"
    require_probabilities(plan.model.graph.edge_probs)
    require_rules(plan)
    raise Planned


def require_probabilities(probs: torch.Tensor) -> None:
    """Refuse what is no probability."""
    assert bool(((probs >= 0) & (probs <= 1)).all()), "an edge probability is not in [0, 1]"


def require_rules(plan: Plan) -> None:
    """Refuse a start in which what is forbidden can be, or what is required need not be."""
    graph, rules = plan.model.graph, plan.rules
    if graph.candidates is not None:
        return
    probs = graph.edge_probs.detach()
    for edges, value in ((rules.forbidden, 0.0), (rules.required, 1.0)):
        if isinstance(edges, frozenset | set):
            for source, target in edges:
                place = [rules.nodes.index(end) if isinstance(end, str) else end for end in (target, source)]
                assert probs[place[0], place[1]] == value, f"{source} -> {target} is not {value}"


def require_int(arguments: tuple[str, ...], folder: Path, out: str) -> None:
    """Look at what a command wrote or printed."""
    command = next((word for word in arguments if not word.startswith("-")), "")
    if "--help" in arguments or "--version" in arguments or "--list" in arguments or "--init" in arguments:
        assert out
    elif command == "fit":
        for run in folder.rglob("record.json"):
            require_run(run.parent)
    elif command == "predict":
        _require_forecasts(arguments, folder, out)
    elif command == "evaluate" and "--json" in arguments:
        _require_metrics(strict_json(out)["metrics"])
    elif command == "report":
        page = Path(strict_json(out)["report"] if "--json" in arguments else out.strip())
        assert (folder / page).stat().st_size > 1000


def require_run(directory: Path) -> None:
    """Refuse a run directory that is not whole, or holds something that is no number."""
    record = strict_json((directory / "record.json").read_text())
    _require_metrics(record["metrics"])
    for scores in record["references"].values():
        _require_metrics(scores)
    names = record["node_names"]
    with (directory / "edges.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if record["candidates"] is None:
        assert {(row["source"], row["target"]) for row in rows} == {(a, b) for a in names for b in names}
        assert len(rows) == len(names) ** 2
    assert all(0 <= float(row["probability"] or 0) <= 1 for row in rows)
    assert all(0 <= float(row["exists"] or 0) <= 1 for row in rows)
    for line in (directory / "history.jsonl").read_text().splitlines():
        strict_json(line)


def _require_metrics(metrics: dict[str, Any]) -> None:
    assert "point_mae" in metrics
    assert all(isinstance(value, float | int) and math.isfinite(value) for value in metrics.values()), metrics


def _require_forecasts(arguments: tuple[str, ...], folder: Path, out: str) -> None:
    if "--out" in arguments:
        path = folder / arguments[arguments.index("--out") + 1]
        if path.suffix != ".csv":
            assert path.stat().st_size > 0
            return
        out = path.read_text()
    rows = (
        strict_json(out)["predictions"]
        if "--json" in arguments and "--out" not in arguments
        else list(csv.DictReader(io.StringIO(out)))
    )
    assert rows, "no forecast"
    for row in rows:
        numbers = [float(row[name]) for name in ("mean", "q2.5", "median", "q97.5")]
        assert all(map(math.isfinite, numbers)), row
        assert numbers[1] <= numbers[2] <= numbers[3], row


def strict_json(text: str) -> Any:
    """Read JSON as its standard has it: NaN and infinity are no numbers."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} in JSON")

    return json.loads(text, parse_constant=refuse)


def kind_of_error(line: str) -> str:
    """Return an error without what differs from case to case: names, numbers, paths.

    >>> kind_of_error("my.csv: column 'a' must have numbers, got 'x' in row 3; correct it")
    "FILE: column '' must have numbers"
    """
    line = re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", "''", line)
    line = re.sub(r"\S+\.(csv|tsv|txt|gz|npz|parquet|toml|json|safetensors)\b", "FILE", line)
    line = re.sub(r"[-+]?\d[\d,.e+-]*", "0", line)
    return line.split("; known are")[0].split("; did you mean")[0].split(" (")[0].split(", got")[0][:120]

"""The records of the studies as the page reads them: by collection and method, with those of the earlier studies."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "existence"
STUDIES = ROOT / "docs" / "results"
FIT, EVIDENCE, STABILITY, STUDY = "tacit fit", "evidence", "stability selection", "trained"
PEERS = ("ridge", "lasso", "random forest", "PCMCI", "VARLiNGAM", STABILITY)

Record = dict[str, Any]


def study(directory: Path, on: str, method: str) -> Record | None:
    """Return what :mod:`benchmarks.existence.evidence_study` wrote of one method on one collection."""
    path = directory / f"{on}-{method.replace(' ', '_')}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def fits(directory: Path, on: str) -> list[Record]:
    """Return the records of full fits on one collection, seed 0 of each data set."""
    path = directory / "full_fits" / f"{on}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [row for row in map(json.loads, lines) if row["seed"] == 0]


def speed(directory: Path) -> list[Record]:
    """Return what :mod:`benchmarks.existence.speed` wrote, a record for each size."""
    path = directory / "speed.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


def rankings(directory: Path, on: str) -> dict[str, dict[str, Record]]:
    """Return for each method the systems of a known graph by name, with ``auroc``, ``aupr`` and ``seconds``."""
    found = {FIT: {row["name"]: row for row in fits(directory, on)}}
    for method in (EVIDENCE, *PEERS):
        record = study(directory, on, method)
        found[method] = {row["name"]: row for row in record["systems"]} if record else {}
    found[STUDY] = earlier(on)
    return {method: rows for method, rows in found.items() if rows}


def earlier(on: str) -> dict[str, Record]:
    """Return the rankings of ``python -m benchmarks.studies dream4`` and ``lorenz96``, the mean of the starts."""
    if on.startswith("dream4-"):
        path, key = STUDIES / "dream4" / "records" / f"size{on.removeprefix('dream4-')}.json", "networks"
    else:
        path, key = STUDIES / "lorenz96" / "records" / f"{on}.json", "series"
    if not path.is_file():
        return {}
    rows = json.loads(path.read_text(encoding="utf-8"))[key]
    names = [row["file"] if key == "series" else f"{on} {row['network']}" for row in rows]
    seconds = [row["train_seconds"] for row in rows]
    return {
        name: {**row["mean_of_starts"], "seconds": spent} for name, row, spent in zip(names, rows, seconds, strict=True)
    }

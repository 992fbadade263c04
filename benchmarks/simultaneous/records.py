"""The records of the study: a file for each method and set of seeds, in it a record for each kind of system."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.simultaneous.peers import Answer, Method
from benchmarks.simultaneous.scores import GRAPHS, Figures, figures, pooled
from benchmarks.simultaneous.systems import KINDS, Structural
from joblib import Parallel, delayed

RESULTS = Path(__file__).parents[1] / "results" / "simultaneous"


def study(method: Method, kind: str, seeds: Sequence[int], jobs: int = 1) -> Figures:
    """Return the scores of a method on systems of one kind, of each system and of all together."""
    systems = [KINDS[kind](seed) for seed in seeds]
    timed = Parallel(n_jobs=jobs)(delayed(_timed)(method, system) for system in systems)
    rows = [
        {"seed": seed, **figures(answer, system), "seconds": seconds}
        for seed, system, (answer, seconds) in zip(seeds, systems, timed, strict=True)
    ]
    return _rounded({**pooled([answer for answer, _ in timed], systems), "systems": rows})


def _timed(method: Method, system: Structural) -> tuple[Answer, float]:
    began = time.perf_counter()
    answer = method(system.series)
    return answer, time.perf_counter() - began


def path_of(seed_set: str, method: str) -> Path:
    """Return the file of a method."""
    return RESULTS / f"{seed_set}-{method.replace(',', '').replace(' ', '_')}.json"


def read(seed_set: str, method: str) -> dict[str, Figures]:
    """Return the records of a method by kind, none if there is no file."""
    path = path_of(seed_set, method)
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def write(seed_set: str, method: str, kind: str, found: Figures) -> None:
    """Put one record in the file of its method, the kinds in their usual order and a line for each system."""
    records = read(seed_set, method) | {kind: found}
    parts = []
    for name in (one for one in KINDS if one in records):
        record = dict(records[name])
        systems = ",\n".join(f"   {json.dumps(row)}" for row in record.pop("systems"))
        head = "".join(f"  {json.dumps(key)}: {json.dumps(value)},\n" for key, value in record.items())
        parts.append(f' {json.dumps(name)}: {{\n{head}  "systems": [\n{systems}\n  ]\n }}')
    RESULTS.mkdir(parents=True, exist_ok=True)
    path_of(seed_set, method).write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def values(found: Figures, key: str) -> np.ndarray:
    """Return one figure of all systems that have it."""
    return np.array([row[key] for row in found["systems"] if row.get(key) is not None], dtype=float)


def line(kind: str, method: str, found: Figures) -> str:
    """Return the main figures of a record in one line."""
    cells = [f"{kind:26} {method:38}"]
    for key in GRAPHS:
        cells.append(f"{key} {_mean(found, f'{key}_auroc')} {_mean(found, f'{key}_aupr')}")
    cells.append(f"listed {_mean(found, 'listed')} false {_mean(found, 'false')}")
    cells.append(f"cal {found.get('directed_calibration_error', float('nan')):.3f}  {_mean(found, 'seconds')} s")
    return "  ".join(cells)


def _mean(found: Figures, key: str) -> str:
    each = values(found, key)
    return f"{each.mean():.3f}" if len(each) else "-"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return round(value, 5) if isinstance(value, float) else value

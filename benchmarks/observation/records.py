"""The records of the study: a file for each method and set of seeds, in it a record for each kind of system."""

import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.existence.scores import calibration_error, listed, off_diagonal, ranking
from benchmarks.observation.methods import Answer, Method
from benchmarks.observation.systems import KINDS, Observed
from joblib import Parallel, delayed

RESULTS = Path(__file__).parents[1] / "results" / "observation"
Figures = dict[str, Any]


def study(method: Method, kind: str, seeds: Sequence[int], jobs: int = 1) -> Figures:
    """Return the scores of a method on systems of one kind, of each system and of all together.

    A data set on which the method raises has the message as ``failed``, and no scores.
    """
    systems = [KINDS[kind](seed) for seed in seeds]
    timed = Parallel(n_jobs=jobs)(delayed(_timed)(method, system) for system in systems)
    rows, pooled = [], []
    for seed, system, (answer, seconds) in zip(seeds, systems, timed, strict=True):
        if isinstance(answer, str):
            rows.append({"seed": seed, "failed": answer})
        else:
            rows.append({"seed": seed, **_figures(answer, system), "seconds": seconds})
            pooled.append((answer, system))
    found: Figures = {"systems": rows}
    if pooled and all(answer.listed is None for answer, _ in pooled):
        exists, truth = (
            np.concatenate(both)
            for both in zip(
                *((off_diagonal(one.scores), off_diagonal(system.truth)) for one, system in pooled), strict=True
            )
        )
        found = {"calibration_error": calibration_error(exists, truth), **found}
        found["chosen"] = dict(Counter(answer.chosen for answer, _ in pooled).most_common())
    return rounded(found)


def _figures(answer: Answer, system: Observed) -> Figures:
    scores, truth = off_diagonal(answer.scores), off_diagonal(system.truth)
    chosen = listed(scores) if answer.listed is None else off_diagonal(answer.listed)
    counts = {"listed": int(chosen.sum()), "false": int((chosen & ~truth).sum()), "edges": int(truth.sum())}
    return {**ranking(scores, truth), **counts, **({"chosen": answer.chosen} if answer.chosen else {})}


def _timed(method: Method, system: Observed) -> tuple[Answer | str, float]:
    began = time.process_time()
    try:
        answer: Answer | str = method(system)
    except Exception as error:  # counted on the page
        answer = f"{type(error).__name__}: {error}"
    return answer, time.process_time() - began


def path_of(seed_set: str, method: str) -> Path:
    """Return the file of a method."""
    return RESULTS / f"{seed_set}-{method.replace(',', '').replace(' ', '_')}.json"


def read(name: Path) -> Figures:
    """Return a record, empty if there is no file."""
    return json.loads(name.read_text(encoding="utf-8")) if name.is_file() else {}


def write(path: Path, key: str, found: Figures) -> None:
    """Put one record in a file, a line for each row of its lists."""
    records = read(path) | {key: found}
    order = [one for one in KINDS if one in records] + [one for one in records if one not in KINDS]
    parts = []
    for name in order:
        fields = []
        for field, value in records[name].items():
            lists = isinstance(value, list) and value and isinstance(value[0], dict)
            text = (
                "[\n" + ",\n".join(f"   {json.dumps(row)}" for row in value) + "\n  ]" if lists else json.dumps(value)
            )
            fields.append(f"  {json.dumps(field)}: {text}")
        parts.append(f" {json.dumps(name)}: {{\n" + ",\n".join(fields) + "\n }")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def values(found: Figures, key: str) -> np.ndarray:
    """Return one figure of all systems that have it."""
    return np.array([row[key] for row in found["systems"] if row.get(key) is not None], dtype=float)


def line(kind: str, method: str, found: Figures) -> str:
    """Return the main figures of a record in one line."""
    cells = [f"{kind:32} {method:16}"]
    for key in ("auroc", "aupr", "listed", "false", "seconds"):
        each = values(found, key)
        cells.append(f"{key} {each.mean():.3f}" if len(each) else f"{key} -")
    failed = [row["failed"] for row in found["systems"] if "failed" in row]
    cells += [f"FAILED {len(failed)}: {failed[0]}"] if failed else []
    if "calibration_error" in found:
        cells.append(f"cal {found['calibration_error']:.3f} {found['chosen']}")
    return "  ".join(cells)


def rounded(value: Any) -> Any:
    """Return the same with five digits after the point."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, 5) if isinstance(value, float) else value

"""The answers of a method, a line for each data set in ``runs/robustness``, and the summaries that the page has.

A line has the kind, the truth and the seed; AUROC and average precision (None without edges); the numbers of edges, of
listed, false and expected false ones; the pairs that may exist, for calibration; how many nodes an unseen series
reaches, whether the answer names a shared driver, and the names of what was found; and the seconds of processor time. A
data set on which the method raises has the message as ``failed`` instead.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.existence.evidence_study import read_lines
from benchmarks.existence.scores import MAY_EXIST, calibration_error, listed, off_diagonal, ranking
from benchmarks.existence.systems import System
from benchmarks.observation.methods import Answer
from benchmarks.observation.records import rounded
from benchmarks.robustness.methods import Method
from benchmarks.robustness.systems import KINDS, truths

RAW = Path("runs") / "robustness"
RESULTS = Path(__file__).parents[1] / "results" / "robustness"
LISTS = ("auroc", "aupr", "edges", "listed", "false", "expected_false", "reached", "driver", "causes", "seconds")
PRINTED = ("auroc", "aupr", "listed", "false", "expected_false", "driver", "seconds")
Row = dict[str, Any]


def scored(method: Method, system: System, truth: str, seed: int) -> Row:
    """Return the line of one data set."""
    row: Row = {"kind": system.kind, "truth": truth, "seed": seed}
    began = time.process_time()
    try:
        answer = method(system)
    except Exception as error:  # counted on the page
        return row | {"failed": f"{type(error).__name__}: {error}"[:300]}
    row["seconds"] = time.process_time() - began
    return rounded(row | figures(answer, system))


def figures(answer: Answer, system: System) -> Row:
    """Return the scores of one answer."""
    scores, edges = off_diagonal(answer.scores), off_diagonal(system.truth)
    found: Row = {**ranking(scores, edges), "edges": int(edges.sum()), "reached": system.reached}
    if answer.driver is not None:
        found |= {"driver": answer.driver, "causes": list(answer.causes)}
    if answer.listed is None:  # probabilities
        chosen, may = listed(scores), scores >= MAY_EXIST
        found["expected_false"] = float((1 - scores[chosen]).sum())
        found["may_exist"] = [round(float(one), 4) for one in scores[may]]
        found["may_exist_true"] = np.flatnonzero(edges[may]).tolist()
    elif answer.listed.size:
        chosen = off_diagonal(answer.listed)
    else:
        return found
    return found | {"listed": int(chosen.sum()), "false": int((chosen & ~edges).sum())}


def path_of(folder: Path, name: str, suffix: str) -> Path:
    """Return the file of a method."""
    return folder / f"{name.replace(' ', '_')}{suffix}"


def summary(rows: list[Row]) -> Row:
    """Return the figures of all data sets of one kind as lists in the order of their seeds, and their calibration.

    >>> row = {"seed": 3, "edges": 0, "listed": 1, "false": 1, "may_exist": [0.8], "may_exist_true": []}
    >>> found = summary([row])
    >>> found["listed"], found["calibration_error"]
    ([1], 0.8)
    """
    rows = sorted(rows, key=lambda row: row["seed"])
    done = [row for row in rows if "failed" not in row]
    found: Row = {"seeds": [row["seed"] for row in done], "failed": [row["failed"] for row in rows if "failed" in row]}
    for key in LISTS:
        if any(row.get(key) is not None for row in done):
            found[key] = [_short(row.get(key)) for row in done]
    if any("may_exist" in row for row in done):
        exists = np.concatenate([np.array(row["may_exist"]) for row in done])
        edges = np.concatenate([np.isin(np.arange(len(row["may_exist"])), row["may_exist_true"]) for row in done])
        error = calibration_error(exists, edges)
        found |= {"may_exist": len(exists), "calibration_error": None if error is None else round(float(error), 4)}
        found["by_percent"] = [
            [percent, int((mine := (100 * exists).round() == percent).sum()), int(edges[mine].sum())]
            for percent in sorted({round(100 * one) for one in exists.tolist()})
        ]
    return found


def pooled_calibration(found: list[Row]) -> float | None:
    """Return the calibration error of the pairs of several summaries, whose ``exists`` is rounded to percent.

    Pairs with one ``exists`` count as true by their share of true ones, so that their order does not matter.

    >>> pooled_calibration([{"by_percent": [[80, 2, 1]]}, {"by_percent": [[80, 3, 3]]}])
    0.0
    """
    counts = np.array([one for row in found for one in row.get("by_percent", [])], dtype=int).reshape(-1, 3)
    pairs, true = (np.bincount(counts[:, 0], weights=counts[:, place], minlength=101) for place in (1, 2))
    times = pairs.astype(int)
    error = calibration_error(np.arange(101).repeat(times) / 100, (true / np.maximum(pairs, 1)).repeat(times))
    return None if error is None else round(float(error), 4)


def some(found: Row, chosen: Sequence[bool]) -> Row:
    """Return the lists of a summary for some of its data sets.

    >>> some({"seeds": [1, 2], "listed": [3, 4], "failed": []}, [False, True])
    {'seeds': [2], 'listed': [4]}
    """
    keys = [key for key in ("seeds", *LISTS) if key in found]
    return {key: [one for one, kept in zip(found[key], chosen, strict=True) if kept] for key in keys}


def stated_and_realised(found: list[Row]) -> tuple[float, float, float] | None:
    """Return stated and realised number of false edges in the lists of summaries, and the error of their difference.

    The error is that of a sum over data sets; at least that of as many independent edges as stated, because the spread
    says nothing where no edge is false. None without a probability.

    >>> stated_and_realised([{"expected_false": [0.5, 0.5], "false": [1, 1]}])
    (1.0, 2.0, 1.0)
    """
    pairs = [pair for row in found for pair in zip(row.get("expected_false", []), row.get("false", []), strict=True)]
    if not pairs:
        return None
    stated, realised = np.array(pairs, dtype=float).T
    error = (realised - stated).std(ddof=1) * len(pairs) ** 0.5 if len(pairs) > 1 else 0.0
    return float(stated.sum()), float(realised.sum()), float(max(error, stated.sum() ** 0.5))


def summaries(rows: list[Row]) -> dict[str, dict[str, Row]]:
    """Return the summary of each kind and truth, in the order of the kinds."""
    found: dict[str, dict[str, Row]] = {}
    for kind in KINDS:
        for truth in truths(kind):
            own = [row for row in rows if (row["kind"], row["truth"]) == (kind, truth)]
            if own:
                found.setdefault(kind, {})[truth] = summary(own)
    return found


def write(name: str, raw: Path, results: Path = RESULTS) -> None:
    """Write the summaries of a method, a line for each kind and truth."""
    found = summaries(read_lines(path_of(raw, name, ".jsonl")))
    kinds = []
    for kind, of_truth in found.items():
        lines = ",\n".join(f"  {json.dumps(truth)}: {json.dumps(row)}" for truth, row in of_truth.items())
        kinds.append(f" {json.dumps(kind)}: {{\n{lines}\n }}")
    results.mkdir(parents=True, exist_ok=True)
    path_of(results, name, ".json").write_text("{\n" + ",\n".join(kinds) + "\n}\n", encoding="utf-8")


def read(name: str, results: Path = RESULTS) -> dict[str, dict[str, Row]]:
    """Return the summaries of a method by kind and truth, none if there is no file."""
    path = path_of(results, name, ".json")
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def line(kind: str, truth: str, name: str, found: Row) -> str:
    """Return the main figures of a summary in one line.

    >>> line("trend", "none", "tacit", {"seeds": [1, 2], "failed": [], "listed": [0, 3], "false": [0, 3]})
    'trend                none   tacit               2 sets  any 50%  listed 1.50  false 1.50'
    """
    cells = [f"{kind:20} {truth:6} {name:18} {len(found['seeds']):2} sets"]
    if found.get("listed"):
        cells.append(f"any {any_listed(found):.0%}")
    for key in PRINTED:
        values = [value for value in found.get(key, []) if value is not None]
        cells += [f"{key} {np.mean(values):.{3 if key.startswith('au') else 2}f}"] if values else []
    if found.get("calibration_error") is not None:
        cells.append(f"cal {found['calibration_error']:.3f}")
    return "  ".join([*cells, *[f"FAILED {len(found['failed'])}: {one}" for one in found["failed"][:1]]])


def any_listed(found: Row) -> float:
    """Return the share of data sets with a listed edge."""
    return float(np.mean(np.array(found["listed"]) > 0))


def _short(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value

"""Does ``exists`` rank edges, is it calibrated, and are listed edges true? One method on one collection of systems.

    python -m benchmarks.existence.evidence_study --method evidence --on sweep --seed-set choose --count 60

Every answer is appended to ``runs/existence`` at once, and a study that was stopped goes on there; the scores are
written to ``benchmarks/results/existence``. ``--on`` takes sweep, independent, wide, nonlinear_var, or a known graph.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.existence import systems
from benchmarks.existence.known import NAMES, data_folder, known_systems
from benchmarks.existence.methods import RECALIBRATION, RESULTS, is_probability, method, probabilities
from benchmarks.existence.scores import list_scores, log_score, off_diagonal, power_at, ranking, summary
from benchmarks.existence.stability import Recalibration
from benchmarks.existence.systems import SEEDS, SWEEP_SEEDS, System
from joblib import Parallel, delayed

GENERATED = ("sweep", "independent", "wide", "nonlinear_var", "var", "gates", "gpvar", "panels")
FALSE_SHARES = tuple(round(0.01 * number, 2) for number in range(1, 31))
RAW = Path("runs") / "existence"


def collection(name: str, seed_set: str, count: int | None, data: Path | None = None) -> Iterator[tuple[str, System]]:
    """Yield the systems of a collection with their names."""
    if name in NAMES:
        for number, pair in enumerate(known_systems(name, data_folder(data))):
            if count is None or number < count:
                yield pair
    elif name == "sweep":
        for number in range(count or 200):
            yield f"{seed_set} {number}", systems.calibration_system(number, SWEEP_SEEDS[seed_set])
    else:
        for number, seed in enumerate(SEEDS[seed_set][: count or 20]):
            own = 1 if name == "river" and number == 0 else seed  # the table of docs/index.md comes first
            yield f"{seed_set} {own}", getattr(systems, name)(own)


def answer(method_name: str, name: str, system: System) -> dict[str, Any]:
    """Return the numbers that a method gives to the edges of one system, and how long it took."""
    began = time.perf_counter()
    scores = method(method_name)(system)
    seconds = time.perf_counter() - began
    return {
        "name": name,
        "kind": system.kind,
        "nodes": system.num_nodes,
        "rows": system.num_rows,
        "seconds": round(seconds, 3),
        "truth": np.flatnonzero(off_diagonal(system.truth)).tolist(),
        "scores": [float(f"{score:.6g}") for score in off_diagonal(scores)],
    }


def vectors(method_name: str, row: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of one answer, as probabilities where the method has them, and the truth."""
    scores, truth = np.array(row["scores"]), np.zeros(len(row["scores"]), dtype=bool)
    truth[row["truth"]] = True
    return (probabilities(method_name, scores) if is_probability(method_name) else scores), truth


def scored(method_name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the scores of each system, of all, and of each kind."""
    parts = [vectors(method_name, row) for row in rows]
    each = []
    for row, part in zip(rows, parts, strict=True):
        one = {key: row[key] for key in ("name", "kind", "nodes", "rows", "seconds")} | ranking(*part)
        if is_probability(method_name):
            one |= {**list_scores(*part), "log_score": log_score(*part), "mean_exists": float(part[0].mean())}
        each.append(_rounded(one))
    found: dict[str, Any] = {"systems": each}
    if is_probability(method_name):
        exists, truth = (np.concatenate(both) for both in zip(*parts, strict=True))
        found["all"] = _rounded(summary(parts))
        found["power_at"] = {str(share): round(power_at(exists, truth, share), 4) for share in FALSE_SHARES}
        kinds = dict.fromkeys(row["kind"] for row in rows)
        of_kind = {kind: [part for row, part in zip(rows, parts, strict=True) if row["kind"] == kind] for kind in kinds}
        if len(of_kind) > 1:
            found["kinds"] = {kind: _rounded(summary(own)) for kind, own in of_kind.items()}
    return found


def recalibrate(method_name: str, rows: list[dict[str, Any]]) -> None:
    """Fit the map from shares to probabilities on these answers."""
    scores = np.concatenate([np.array(row["scores"]) for row in rows])
    truth = np.concatenate([vectors("lasso", row)[1] for row in rows])
    found = Recalibration.fit(scores, truth)
    text = {"scores": [round(x, 5) for x in found.scores], "probs": [round(p, 6) for p in found.probs]}
    RECALIBRATION.write_text(json.dumps(text) + "\n", encoding="utf-8")
    print(f"{method_name}: map from {len(rows)} systems in {RECALIBRATION}")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file of JSON lines, none if it is not there."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--method", required=True)
    parser.add_argument("--on", nargs="+", required=True, choices=[*GENERATED, *NAMES])
    parser.add_argument("--seed-set", choices=list(SEEDS), default="choose")
    parser.add_argument("--count", type=int)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--recalibrate", action="store_true", help="fit the map of stability selection on these")
    options = parser.parse_args()
    RAW.mkdir(parents=True, exist_ok=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in options.on:
        label = name if name in NAMES else f"{name}-{options.seed_set}"
        stem = f"{label}-{options.method.replace(' ', '_').replace(':', '.')}"
        raw = RAW / f"{stem}.jsonl"
        wanted = list(collection(name, options.seed_set, options.count, options.data))
        done = {row["name"] for row in read_lines(raw)}
        work = (delayed(answer)(options.method, own, system) for own, system in wanted if own not in done)
        with raw.open("a", encoding="utf-8") as file:
            for row in Parallel(n_jobs=options.jobs, return_as="generator")(work):
                print(json.dumps(row), file=file, flush=True)
        names = [own for own, _ in wanted]
        rows = [row for row in read_lines(raw) if row["name"] in names]
        if options.recalibrate:
            recalibrate(options.method, rows)
        found = {"method": options.method, "on": label, **scored(options.method, rows)}
        (RESULTS / f"{stem}.json").write_text(_one_per_line(found) + "\n", encoding="utf-8")
        print(_line(found))


def _rounded(values: dict[str, Any]) -> dict[str, Any]:
    return {
        key: round(value, 5)
        if isinstance(value, float)
        else [_rounded(one) for one in value]
        if isinstance(value, list)
        else value
        for key, value in values.items()
    }


def _one_per_line(found: dict[str, Any]) -> str:
    """Return JSON with a line for each system."""
    systems_text = ",\n".join(f"  {json.dumps(one)}" for one in found["systems"])
    rest = {key: value for key, value in found.items() if key != "systems"}
    return f'{json.dumps(rest, indent=1)[:-2]},\n "systems": [\n{systems_text}\n ]\n}}'


def _line(found: dict[str, Any]) -> str:
    each = found["systems"]
    cells = [f"{found['on']:16} {found['method']:20} {len(each):4} systems"]
    for key in ("auroc", "aupr", "seconds"):
        values = [one[key] for one in each if one[key] is not None]
        cells.append(f"{key} {np.mean(values):.3f}" if values else f"{key} -")
    for key in ("calibration_error", "calibration_error_may_exist", "log_score", "false_share", "power"):
        value = found.get("all", {}).get(key)
        cells += [] if value is None else [f"{key} {value:.3f}"]
    return "  ".join(cells)


if __name__ == "__main__":
    main()

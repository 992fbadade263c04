"""How long a person waits for ``tacit fit`` with its defaults, from the command to the page; each in a fresh process.

    python -m benchmarks.waiting

Every table is fitted twice, the second time with the compile cache of the first; ``--runs 1`` fits it once. First words
and first edges are the lines that a person sees before the answer. Seconds of a core say what the job needs where the
machine is not quiet, most reliably with ``--threads 1 --runs 1``, whose record is ``waiting_one_thread.json``
(``--out benchmarks/results/waiting_one_thread.json``). The tables are VARs, one series of each observation model with
gated edges, known graphs (:mod:`benchmarks.existence.known`), and pairs of counts. The record is
``benchmarks/results/waiting.json``; ``--only`` measures some rows again and keeps the others.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.existence.known import data_folder, known_systems
from benchmarks.observation.paper_system import CommunityCounts
from benchmarks.observation.systems import NAMES, network

RESULT = Path(__file__).parent / "results" / "waiting.json"
TABLES = {"10 x 1,000": (10, 1000), "31 x 3,650": (31, 3650), "100 x 1,000": (100, 1000)}
HEAVY = {"31 x 3,650, heavy tails": (31, 3650)}  # a VAR with t noise of four degrees
GIVEN = {f"10 x 1,000, {kind} given": kind for kind in NAMES}
CHOSEN = {f"10 x 1,000, {kind} chosen": kind for kind in NAMES}
KNOWN = {
    **{f"gnw20 {number}": "gnw20-choose" if number <= 10 else "gnw20-test" for number in range(1, 21)},
    **{f"dream4-10 {number}": "dream4-10" for number in range(1, 6)},
    **{f"F_{force}_T_1000_dataset_1": f"F_{force}_T_1000" for force in (10, 40)},
}
COUNTS = "28,000 pairs x 12 counts"
SEED = 7  # of the series of each observation model
TARGETS = {
    "10 x 1,000": 10,
    "31 x 3,650": 30,
    "31 x 3,650, heavy tails": 45,
    "100 x 1,000": 25,
    "beijing-air": 45,
    COUNTS: 60,
    "estimator, 300 x 3": 5,
    **dict.fromkeys((*GIVEN, *CHOSEN, *KNOWN), 10),
}
ESTIMATOR = """
import sys, time
import numpy as np
from tacit import LatentGraphRegressor
x = np.random.default_rng(0).normal(size=(300, 3))
y = x[:, [1, 2, 0]] + 0.1 * np.random.default_rng(1).normal(size=(300, 3))
began = time.perf_counter()
LatentGraphRegressor().fit(x, y)
print("fitted", time.perf_counter() - began, file=sys.stderr)
"""
FITTED = "fitted"
Figures = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(TARGETS), default=list(TARGETS))
    parser.add_argument("--runs", type=int, choices=(1, 2), default=2)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    rows: Figures = json.loads(options.out.read_text())["rows"] if options.out.exists() else {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in options.only:
            cache = str(folder / f"cache-{list(TARGETS).index(name)}")  # a compiler may not take spaces
            rows[name] = {
                "target": TARGETS[name],
                "runs": [measured(name, folder, cache, run, options.threads) for run in range(1, options.runs + 1)],
            }
            print(name, json.dumps(rows[name]), flush=True)
            text = json.dumps({"cores": os.cpu_count(), "rows": rows}, indent=1) + "\n"
            options.out.write_text(text, encoding="utf-8")


def measured(name: str, folder: Path, cache: str, number: int, threads: int | None = None) -> Figures:
    """Return the seconds and the memory of one run."""
    environment = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    environment |= {"TORCHINDUCTOR_CACHE_DIR": cache} | ({} if threads is None else {"OMP_NUM_THREADS": str(threads)})
    if name.startswith("estimator"):
        return spent([sys.executable, "-c", ESTIMATOR], environment)
    out = folder / f"{name} {number}"
    given = ["--set", f"observation.kind={GIVEN[name]}"] if name in GIVEN else []
    command = [sys.executable, "-m", "tacit", "fit", source_of(name, folder), "--out", str(out), *given]
    found = spent(command, environment)
    record = json.loads((out / "record.json").read_text(encoding="utf-8"))
    stages = {stage: round(value, 2) for stage, value in record["stages"].items()}
    return {**found, "threads": threads, "crps": round(record["metrics"]["crps"], 5), "stages": stages}


def source_of(name: str, folder: Path) -> str:
    """Return the file of a table, written if there is none, or the name of a data set of the package."""
    path = folder / f"{name}.csv"
    if name in TABLES:
        return str(write_table(path, *TABLES[name]))
    if name in HEAVY:
        return str(write_table(path, *HEAVY[name], degrees=4.0))
    if name in GIVEN or name in CHOSEN:
        values = network(SEED, {**GIVEN, **CHOSEN}[name], gated=True, rows=1000).series
    elif name in KNOWN:
        system = next(system for one, system in known_systems(KNOWN[name], data_folder()) if one == name)
        parts = [pd.DataFrame(part).add_prefix("v") for part in system.series]
        table = parts[0] if len(parts) == 1 else pd.concat([part.assign(experiment=k) for k, part in enumerate(parts)])
        table.rename_axis("time").to_csv(path)
        return str(path)
    elif name == COUNTS:
        pairs = CommunityCounts("poisson").generate(28_000, seed=0)
        np.savez(path.with_suffix(".npz"), x=pairs.inputs.numpy(), y=pairs.targets.numpy())
        return str(path.with_suffix(".npz"))
    else:
        return name
    pd.DataFrame(values).add_prefix("v").rename_axis("time").to_csv(path)
    return str(path)


def spent(command: list[str], environment: dict[str, str]) -> Figures:
    """Run a command and return when its lines came, what it took, and the most memory that it held."""
    load, began = os.getloadavg()[0], time.perf_counter()
    found: Figures = {}
    silent, pipe = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(command, stdout=silent, stderr=pipe, text=True, env=environment) as job:
        assert job.stderr is not None
        for line in job.stderr:
            now = time.perf_counter() - began
            if line.startswith(FITTED):
                found["seconds"] = float(line.split()[-1])
                continue
            found.setdefault("first_words", now)
            if "first look" in line:
                found["first_edges"] = now
            if "from the evidence" in line:
                found["refined_edges"] = now
        _, status, used = os.wait4(job.pid, 0)
        job.returncode = os.waitstatus_to_exitcode(status)
    assert job.returncode == 0, f"{command} ended with {job.returncode}"
    found.setdefault("seconds", time.perf_counter() - began)
    found |= {"core_seconds": used.ru_utime + used.ru_stime, "memory_gb": used.ru_maxrss / 1e6, "load_before": load}
    return {name: round(value, 2) for name, value in found.items()}


def write_table(path: Path, nodes: int, rows: int, degrees: float | None = None) -> Path:
    """Write the rows of a VAR in which a node reads two others; with ``degrees``, with noise of Student's t."""
    rng = np.random.default_rng(0)
    weights = 0.4 * np.eye(nodes)
    for node in range(nodes):
        weights[node, rng.choice(np.delete(np.arange(nodes), node), 2, replace=False)] = rng.choice([-0.3, 0.3], 2)
    weights *= min(1.0, 0.9 / np.abs(np.linalg.eigvals(weights)).max())
    values = rng.normal(size=(rows, nodes)) if degrees is None else rng.standard_t(degrees, size=(rows, nodes))
    for now in range(1, rows):
        values[now] += weights @ values[now - 1]
    pd.DataFrame(values, columns=[f"v{node}" for node in range(nodes)]).rename_axis("time").to_csv(path)
    return path


if __name__ == "__main__":
    main()

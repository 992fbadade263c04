"""How long a person waits for ``tacit fit`` with its defaults, from the command to the page; each in a fresh process.

    python benchmarks/waiting.py

Every table is fitted twice, the second time with the compile cache of the first. First words and first edges are the
lines that a person sees before the answer. Seconds of a core say what the job needs where the machine is not quiet.
The record is ``benchmarks/results/waiting.json``; ``--only`` measures some rows again and keeps the others.
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

RESULT = Path(__file__).parent / "results" / "waiting.json"
TABLES = {"10 x 1,000": (10, 1000), "31 x 3,650": (31, 3650), "100 x 1,000": (100, 1000)}
TARGETS = {"10 x 1,000": 15, "31 x 3,650": 60, "100 x 1,000": 90, "beijing-air": 60, "estimator, 300 x 3": 5}
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
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    rows: Figures = json.loads(options.out.read_text())["rows"] if options.out.exists() else {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in options.only:
            cache = str(folder / f"cache-{list(TARGETS).index(name)}")  # a compiler may not take spaces
            rows[name] = {"target": TARGETS[name], "runs": [measured(name, folder, cache, run) for run in (1, 2)]}
            print(name, json.dumps(rows[name]), flush=True)
            text = json.dumps({"cores": os.cpu_count(), "rows": rows}, indent=1) + "\n"
            options.out.write_text(text, encoding="utf-8")


def measured(name: str, folder: Path, cache: str, number: int) -> Figures:
    """Return the seconds and the memory of one run."""
    environment = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    environment |= {"TORCHINDUCTOR_CACHE_DIR": cache}
    if name.startswith("estimator"):
        return spent([sys.executable, "-c", ESTIMATOR], environment)
    source = name if name not in TABLES else str(write_table(folder / f"{name}.csv", *TABLES[name]))
    out = folder / f"{name} {number}"
    found = spent([sys.executable, "-m", "tacit", "fit", source, "--out", str(out)], environment)
    stages = json.loads((out / "record.json").read_text(encoding="utf-8"))["stages"]
    return {**found, "stages": {stage: round(value, 2) for stage, value in stages.items()}}


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


def write_table(path: Path, nodes: int, rows: int) -> Path:
    """Write the rows of a VAR in which a node reads two others."""
    rng = np.random.default_rng(0)
    weights = 0.4 * np.eye(nodes)
    for node in range(nodes):
        weights[node, rng.choice(np.delete(np.arange(nodes), node), 2, replace=False)] = rng.choice([-0.3, 0.3], 2)
    weights *= min(1.0, 0.9 / np.abs(np.linalg.eigvals(weights)).max())
    values = rng.normal(size=(rows, nodes))
    for now in range(1, rows):
        values[now] += weights @ values[now - 1]
    pd.DataFrame(values, columns=[f"v{node}" for node in range(nodes)]).rename_axis("time").to_csv(path)
    return path


if __name__ == "__main__":
    main()

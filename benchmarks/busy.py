"""How much longer the demo and a fit take beside busy processes: the ratio to the time alone, in one run.

    python benchmarks/busy.py

After a first run of each, which fills the compile cache, each job runs alone, beside one busy loop and beside three,
``--rounds`` times in turn. On two cores the share that is left of the processor is 1/2 to 2/3 of what one job needs
with one loop and less with three: targets are at most 2.5 and 4 times the time alone. The record is
``benchmarks/results/busy.json``.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

RESULT = Path(__file__).parent / "results" / "busy.json"
LOOPS = (0, 1, 3)
TARGETS = {1: 2.5, 3: 4.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_table(folder / "table.csv")
        jobs = {"demo": ["demo"], "fit": ["fit", str(folder / "table.csv")]}
        times: dict[str, dict[int, list[float]]] = {name: {count: [] for count in LOOPS} for name in jobs}
        for name, command in jobs.items():  # compiled programs are in the cache from here on
            seconds([*command, "--quiet", "--out", str(folder / f"{name}-first")], 0)
        for number in range(options.rounds):
            for count in LOOPS:
                for name, command in jobs.items():
                    out = folder / f"{name}-{count}-{number}"
                    times[name][count].append(seconds([*command, "--quiet", "--out", str(out)], count))
                    print(f"{name} beside {count} busy loops: {times[name][count][-1]:.1f} s", flush=True)
    found = {name: summary(of_job) for name, of_job in times.items()}
    load = os.getloadavg()[0]
    options.out.write_text(json.dumps({"cores": os.cpu_count(), "load_after": load, "jobs": found}, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def write_table(path: Path) -> None:
    """Write 1,000 rows of a VAR of ten nodes."""
    rng = np.random.default_rng(0)
    weights = 0.4 * np.eye(10) + 0.4 * (rng.random((10, 10)) < 0.1)
    weights *= 0.9 / max(0.9, np.abs(np.linalg.eigvals(weights)).max())
    values = rng.normal(size=(1000, 10))
    for now in range(1, len(values)):
        values[now] += weights @ values[now - 1]
    pd.DataFrame(values, columns=[f"v{node}" for node in range(10)]).rename_axis("time").to_csv(path)


def seconds(command: list[str], count: int) -> float:
    """Return how long a command of tacit takes beside so many busy loops."""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    with busy(count):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "tacit", *command], check=True, capture_output=True, env=environment)
        return time.perf_counter() - began


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep so many processes busy."""
    loops = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(count)]
    for loop in loops:
        loop.start()
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.join()


def _spin() -> None:
    while True:
        pass


def summary(times: dict[int, list[float]]) -> dict[str, object]:
    """Return the seconds of each number of loops, and how many times the time alone that is."""
    alone = statistics.median(times[0])
    ratios = {count: statistics.median(times[count]) / alone for count in TARGETS}
    return {
        "seconds": {str(count): [round(one, 2) for one in found] for count, found in times.items()},
        "ratio": {str(count): round(ratio, 2) for count, ratio in ratios.items()},
        "met": {str(count): ratio <= TARGETS[count] for count, ratio in ratios.items()},
    }


if __name__ == "__main__":
    main()

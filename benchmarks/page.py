"""How large is a page, how long does it take to open and to draw, and how soon is the help there?

Runs are made without a training (``tests/made_runs.py``): 120 nodes with truth, standard errors and flags, all 14,400
edges; 450 and 1,000 nodes with 32 candidates each; all pairs of 1,000 nodes; a demo's two runs. A page is opened in a
headless Chromium, a new profile each time, and is open when the page's own mark says that all is drawn and painted.
Commands are timed as a user calls them, a new process each. Medians of repeated runs; beside each what the process, or
the page's own thread, computed: where other work keeps the cores busy, that says more than the time that passed.

Targets: 8 MB and 2 s for 120 nodes, 5 s for 1,000; ``tacit report`` 5 s, and for a million pairs 7.5 s of core time, of
which 2.5 s are imports; ``tacit --help`` 0.5 s, ``tacit fit --help`` 0.7 s.

Run ``python benchmarks/page.py [--rounds 5] [--json FILE]`` on a machine that does nothing else.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from playwright.sync_api import sync_playwright  # noqa: E402

from browser_waits import opening_seconds  # noqa: E402
from made_runs import make_run, write_directory  # noqa: E402

RUNS: dict[str, dict[str, Any]] = {
    "120 nodes": {"nodes": 120, "truth": True, "errors": True, "flags": True},
    "450 nodes": {"nodes": 450, "candidates": 32},
    "1,000 nodes": {"nodes": 1000, "candidates": 32},
    "a million pairs": {"nodes": 1000, "evidence": True, "errors": True, "flags": True},
}
TARGETS = {
    "120 nodes: megabytes": 8.0,
    "120 nodes: opens": 2.0,
    "1,000 nodes: opens": 5.0,
    "120 nodes: tacit report": 5.0,
    "1,000 nodes: tacit report": 5.0,
    "a million pairs: tacit report, computed": 7.5,
    "demo: tacit report": 5.0,
    "tacit --help": 0.5,
    "tacit fit --help": 0.7,
}


def command_seconds(*arguments: str) -> tuple[float, float]:
    """Return seconds that passed, and that were computed."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-m", "tacit", *arguments], capture_output=True, check=True)
    passed, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return passed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(rounds: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}

    def note(name: str, call: Callable[[], tuple[float, float]]) -> None:
        passed, computed = zip(*(call() for _ in range(rounds)), strict=True)
        found[name] = [round(seconds, 3) for seconds in passed]
        found[f"{name}, computed"] = [round(seconds, 3) for seconds in computed]

    note("tacit --help", lambda: command_seconds("--help"))
    note("tacit fit --help", lambda: command_seconds("fit", "--help"))
    chromium = subprocess.run([ROOT / "tools" / "chromium.sh"], capture_output=True, text=True, check=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.stdout.strip())
        for name, size in RUNS.items():
            run = write_directory(make_run(**size), Path(folder) / name.replace(" ", "-"))
            note(f"{name}: tacit report", lambda run=run: command_seconds("report", str(run), "--quiet"))
            page = run / "report.html"
            found[f"{name}: megabytes"] = [round(page.stat().st_size / 1e6, 2)]
            note(f"{name}: opens", lambda page=page: opening_seconds(browser, page))
        browser.close()
        for name in ("known", "joint"):
            write_directory(make_run(nodes=12, truth=True), Path(folder) / "demo" / name)
        note("demo: tacit report", lambda: command_seconds("report", str(Path(folder) / "demo"), "--quiet"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    found = measure(arguments.rounds)
    print(f"load before: {load:.2f} on {os.cpu_count()} cores")
    for name, values in found.items():
        target = TARGETS.get(name)
        verdict = "" if target is None else f"   target {target:g}: {'met' if median(values) <= target else 'MISSED'}"
        print(f"{name:36} {median(values):6.2f}   from {min(values):.2f} to {max(values):.2f}{verdict}")
    if arguments.json:
        written = {"load_before": round(load, 2), "cores": os.cpu_count(), "rounds": arguments.rounds, "found": found}
        arguments.json.write_text(json.dumps(written, indent=2) + "\n")


if __name__ == "__main__":
    main()

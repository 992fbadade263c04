"""``tacit report`` on a finished run is quick."""

import os
import resource
import subprocess
import sys
import time

import pytest

from made_runs import make_run, write_directory

SECONDS = 5.0  # about 3.5 on a quiet machine, of which 2 are imports


@pytest.mark.parametrize("size", [{"nodes": 120, "truth": True, "errors": True}, {"nodes": 1000, "candidates": 32}])
def test_a_report_is_drawn_in_time(size, tmp_path):
    """The best of up to three; while others keep the cores busy, what it computed counts, and half as much again."""
    directory = write_directory(make_run(**size), tmp_path / "run")
    seen = []
    for _ in range(3):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, "-m", "tacit", "report", directory, "--quiet"], check=True, timeout=120)
        passed, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        computed = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        seen.append(computed / 1.5 if os.getloadavg()[0] > os.cpu_count() else passed)
        if seen[-1] <= SECONDS:
            break
    assert min(seen) <= SECONDS, seen
    assert (directory / "report.html").stat().st_size < 8_000_000
    assert (directory / "figures" / "network.svg").is_file()

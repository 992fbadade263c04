"""``tacit report`` on a large run: one file of a bounded size. benchmarks/page.py measures how long it takes."""

import pytest

from commands import call
from made_runs import make_run, write_directory


@pytest.mark.parametrize("size", [{"nodes": 120, "truth": True, "errors": True}, {"nodes": 1000, "candidates": 32}])
def test_a_report_of_a_large_run_is_small(size, tmp_path):
    directory = write_directory(make_run(**size), tmp_path / "run")
    assert call("report", directory, "--quiet") == 0
    assert (directory / "report.html").stat().st_size < 8_000_000
    assert (directory / "figures" / "network.svg").is_file()

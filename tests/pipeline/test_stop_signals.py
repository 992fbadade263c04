"""Signals in the stages that grow with the window: a fit ends soon after SIGTERM or Ctrl-C."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_a_fit_with_a_long_window_ends_soon(tmp_path, number):
    values = np.random.default_rng(0).normal(size=(3000, 10)).cumsum(0) * 0.1
    table = np.column_stack([np.arange(3000), values])
    header = ",".join(["time", *(f"s{node}" for node in range(10))])
    np.savetxt(tmp_path / "x.csv", table, delimiter=",", header=header, comments="")
    command = [sys.executable, "-m", "tacit", "fit", "x.csv", "--window", "790", "--out", "run"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as job:
        for line in job.stderr:
            if "regressions of mean and variance" in line:
                break
        time.sleep(1)
        assert job.poll() is None
        job.send_signal(number)
        start = time.monotonic()
        assert job.wait(60) == 1
        assert time.monotonic() - start < 5
        assert "tacit: stopped by" in job.stderr.read()

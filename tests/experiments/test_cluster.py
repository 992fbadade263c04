"""Tasks on a Dask cluster: the same records as in one process, written here; what goes wrong is said in one line."""

import os
import socket
import subprocess
import sys
import time

import dask
import pytest
import torch
from distributed import LocalCluster

from tacit.cli import main
from tacit.errors import InputError
from tacit.experiments import runner
from tacit.experiments.study import Listener, Options, Task
from tacit.experiments.task_record import try_task
from tacit.experiments.workers import Workers, workers

TINY = Options(seeds=2, quick=True)
ONE_LOSS_IS_ENOUGH = {"distributed.scheduler.allowed-failures": 0}  # a task that kills its worker is not tried again


@pytest.fixture(scope="module")
def cluster():
    """A scheduler and two worker processes on this machine."""
    with (
        dask.config.set(ONE_LOSS_IS_ENOUGH),
        LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as started,
    ):
        yield started


@pytest.fixture
def address(cluster):
    cluster.scheduler_comm  # noqa: B018
    return cluster.scheduler_address


def without_circumstances(records):
    """The numbers alone: not how long it took, where, and with how many threads."""
    left_out = {"seconds", "train_seconds", "device"}
    return {name: {k: v for k, v in values.items() if k not in left_out} for name, values in records.items()}


def test_the_same_records_as_in_one_process(address, tmp_path):
    stages = []
    runner.run_study("injectivity", tmp_path / "here", TINY)
    runner.run_study("injectivity", tmp_path / "there", TINY, scheduler=address, listener=Listener(stage=stages.append))
    here, there = (runner.read_records(tmp_path / part / "injectivity") for part in ("here", "there"))
    assert without_circumstances(here) == without_circumstances(there)
    assert any(f"tasks done, on {address}, 2 at a time" in stage for stage in stages)

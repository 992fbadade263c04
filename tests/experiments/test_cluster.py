"""Tasks on a Dask cluster: the same records as in one process, written here; what goes wrong is said in one line."""

import socket
import sys

import dask
import pytest
from benchmarks.studies.sample_size import SampleSize
from distributed import Client, LocalCluster

from commands import call
from tacit.errors import TrainingError
from tacit.experiments import STUDIES, Listener, Options, runner
from tacit.experiments import workers as cluster_module
from tacit.experiments.study import do_task
from tacit.experiments.workers import _what_fails_here, workers

TINY = Options(seeds=2, quick=True)
TASKS = list(STUDIES["injectivity"].tasks())  # of a study that trains nothing
LOCAL = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "threads_per_worker": 1}


def run_study(name, directory, options, **how):
    runner.run_studies([STUDIES[name]], directory, options, **how)
    return runner.section(STUDIES[name], directory)


@pytest.fixture(scope="module")
def address():
    """A scheduler and two worker processes on this machine; a task that kills its worker is not tried again."""
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), LocalCluster(n_workers=2, **LOCAL) as started:
        yield started.scheduler_address


def on_workers(address, function):
    with Client(address, set_as_default=False) as client:
        client.run(function)


def numbers(record):
    """A record without how long it took and where."""
    return {key: value for key, value in record.items() if key not in ("seconds", "train_seconds", "device")}


def test_the_same_records_as_in_one_process(address, tmp_path):
    stages = []
    run_study("injectivity", tmp_path / "here", TINY)
    run_study("injectivity", tmp_path / "there", TINY, scheduler=address, listener=Listener(stages.append))
    here, there = (runner.read_records(tmp_path / part / "injectivity") for part in ("here", "there"))
    assert {name: numbers(record) for name, record in here.items()} == {name: numbers(r) for name, r in there.items()}
    assert {record["device"] for record in there.values()} == {"cpu (1 threads)"}
    assert stages[1] == f"injectivity: 0 of {len(TASKS)} tasks done, on {address}, 2 at a time"
    assert [stage.split(" tasks")[0] for stage in stages[2:-1]] == [
        f"injectivity: {number} of {len(TASKS)}" for number in range(1, len(TASKS) + 1)
    ]


def test_a_training_there_equals_one_here(address):
    task = "known-000500"
    with workers(TINY, scheduler=address) as (_, outcomes):
        found = dict(outcomes(SampleSize(), [task], TINY))
    assert numbers(found[task]) == numbers(do_task(SampleSize(), task, TINY))


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("raise", "the last task broke down"),
        pytest.param("die", r"the Dask cluster lost a task \(KilledWorker\)", marks=pytest.mark.slow),
    ],
)
def test_what_was_done_before_a_failure_is_kept(address, tmp_path, end, message):
    last, others, records = TASKS[-1], len(TASKS) - 1, tmp_path / "injectivity" / "records"

    def spoil(end=end, last=last, records=records, others=others):
        import os
        import time

        from tacit.errors import TrainingError
        from tacit.experiments import STUDIES

        def fail(options, listener):
            deadline = time.monotonic() + 60
            while len(list(records.glob("*.json"))) < others and time.monotonic() < deadline:
                time.sleep(0.05)
            if end == "die":
                os._exit(1)
            raise TrainingError("the last task broke down")

        study = type(STUDIES["injectivity"])
        study.spoiled = study.tasks
        study.tasks = lambda self: self.spoiled() | {last: fail}

    def repair():
        from tacit.experiments import STUDIES

        study = type(STUDIES["injectivity"])
        if hasattr(study, "spoiled"):  # a worker that died came back whole
            study.tasks = study.spoiled
            del study.spoiled

    on_workers(address, spoil)
    try:
        with pytest.raises(TrainingError, match=message):
            run_study("injectivity", tmp_path, TINY, scheduler=address)
    finally:
        on_workers(address, repair)
    assert set(runner.read_records(tmp_path / "injectivity")) == set(TASKS[:-1])
    run_study("injectivity", tmp_path, TINY, scheduler=address)
    assert set(runner.read_records(tmp_path / "injectivity")) == set(TASKS)


def test_ctrl_c_keeps_what_was_done(address, tmp_path):
    def stop(stage):
        if "1 of" in stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study("injectivity", tmp_path, TINY, scheduler=address, listener=Listener(stop))
    assert len(runner.read_records(tmp_path / "injectivity")) == 1


@pytest.mark.parametrize("wrong", ["host:8786", "tcp://host", "tcp://:8786", "tcp://host:port", "http://host:80", ""])
def test_a_malformed_address(wrong, tmp_path, capsys):
    assert call("reproduce", "injectivity", "--scheduler", wrong, "--out", tmp_path / "out", "--quiet") == 2
    error = capsys.readouterr().err
    assert error == (
        f"tacit: scheduler must be an address like tcp://host:8786, got '{wrong}'; 'dask scheduler' shows it\n"
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("mute", [False, True])
def test_nobody_answers(mute, tmp_path, capsys, monkeypatch):
    """Neither where nobody listens, nor where one listens who is no scheduler."""
    monkeypatch.setattr(cluster_module, "CONNECT_SECONDS", 0.5)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        if mute:
            other.listen()
        address = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        assert call("reproduce", "injectivity", "--scheduler", address, "--out", tmp_path / "out", "--quiet") == 2
    assert capsys.readouterr().err == (
        f"tacit: scheduler must be a running Dask scheduler, got {address}, which did not answer within 0.5 s; "
        "start one there with 'dask scheduler', or correct the address\n"
    )
    assert not (tmp_path / "out").exists()


def test_a_scheduler_without_workers(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cluster_module, "WORKERS_SECONDS", 0.3)
    with LocalCluster(n_workers=0, **LOCAL) as empty:
        address = empty.scheduler_address
        assert call("reproduce", "injectivity", "--scheduler", address, "--out", tmp_path / "out", "--quiet") == 2
    assert f"tacit: scheduler must have at least one worker, got {address} with none; start" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_workers_with_other_versions_are_refused(address, tmp_path, capsys, monkeypatch):
    there = cluster_module.versions()
    monkeypatch.setattr(cluster_module, "versions", lambda: {**there, "torch": "0.0"})
    assert call("reproduce", "injectivity", "--scheduler", address, "--out", tmp_path / "out", "--quiet") == 2
    error = capsys.readouterr().err
    assert f"scheduler requires workers with torch 0.0 as here, got {there['torch']} at tcp://127.0.0.1:" in error
    assert not (tmp_path / "out").exists()


def test_what_a_worker_may_lack():
    needed = {"tacit": cluster_module.versions()["tacit"]}
    assert _what_fails_here(needed, TINY) is None
    assert _what_fails_here(needed, Options(data="/no/such/folder")) == (
        "the data at the same path /no/such/folder, got nothing there"
    )
    assert str(_what_fails_here(needed, Options(device="cuda:99"))).startswith("device cuda:99, got none (")


def test_without_dask_the_way_to_install_it_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    arguments = ("reproduce", "injectivity", "--scheduler", "tcp://127.0.0.1:1", "--out", tmp_path / "out", "--quiet")
    assert call(*arguments) == 2
    assert capsys.readouterr().err == (
        "tacit: scheduler requires distributed, which is not installed; pip install 'tacit[dask]'\n"
    )


def test_jobs_and_scheduler_exclude_each_other(tmp_path, capsys):
    arguments = ("--jobs", 2, "--scheduler", "tcp://127.0.0.1:1", "--out", tmp_path / "out", "--quiet")
    assert call("reproduce", "injectivity", *arguments) == 2
    assert "tacit: jobs must be 1 with a scheduler, got 2; leave out --jobs" in capsys.readouterr().err

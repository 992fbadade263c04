"""``tacit fit`` in several processes: the run of one, one voice, one exit code, and nobody waits in vain."""

import contextlib
import csv
import functools
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import tacit
from commands import call
from own_files import write_files
from tacit.cli import Launch, main
from tacit.console import Display
from tacit.pipeline import job
from tacit.training import Checkpoints
from tacit.training.processes import LOST

CHEAP = (
    "--window", "2", "--set", "training.epochs=2", "--set", "training.compile=false", "--set", "training.replicas=2",
    "--set", "model.num_graphs=4", "--std-errors", "4",
)  # fmt: skip
CALLS = {  # of the command in two processes: what differs between them is a list
    "no such file": ["none.csv"],
    "wrong option": ["wide.csv", "--sed", "1"],
    "no GPU": ["wide.csv", "--device", "cuda:7"],
    "only the first refuses": ["wide.csv", *CHEAP, "--out", "full", "--quiet"],
    "only the second refuses": [["wide.csv", "none.csv"], *CHEAP, "--out", "new", "--quiet"],
    "other data": [["wide.csv", "other.csv"], *CHEAP, "--out", "new", "--quiet"],
    "a whole run": ["wide.csv", *CHEAP, "--out", "two", "--json"],
    "the second dies": ["wide.csv", *CHEAP, "--out", "new", "--set", "training.epochs=400"],
}
SAID = {  # exit codes, and the one line
    "no such file": ([2, 2], "none.csv: there is no such file; check the name"),
    "wrong option": ([2, 2], "unknown option '--sed'; did you mean '--seed'?"),
    "no GPU": ([2, 2], "device must be an available CUDA device, got 'cuda:7' where "),
    "only the first refuses": ([2, 2], "out must be a new or empty directory, got full, which exists"),
    "only the second refuses": ([2, 2], "process 1: none.csv: there is no such file; check the name"),
    "other data": ([2, 2], "training inputs must be the same in every process, got #"),
    "the second dies": ([1, 9], LOST),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("launch")
    write_files(folder)
    lines = (folder / "wide.csv").read_text().splitlines()
    (folder / "other.csv").write_text("\n".join([lines[0], *(line.replace(".5", ".6") for line in lines[1:])]) + "\n")
    (folder / "full").mkdir()
    (folder / "full" / "mine.txt").write_text("mine")
    return folder


def work(rank, ports, folder):
    """One of two processes, which make all calls one after another."""
    torch.set_num_threads(1)
    os.chdir(folder)
    os.environ |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "RANK": f"{rank}", "LOCAL_RANK": f"{rank}"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1"}
    shown = Display.step

    def die(self, progress):
        shown(self, progress)
        if rank == 1 and progress.steps > 500 and progress.step == 10:
            os._exit(9)

    Display.step = die
    job.Checkpoints = functools.partial(Checkpoints, every=3600)  # however slow the machine, none is written
    for port, (name, arguments) in zip(ports, CALLS.items(), strict=True):
        os.environ["MASTER_PORT"] = str(port)
        own = [argument[rank] if isinstance(argument, list) else argument for argument in arguments]
        start = time.monotonic()
        with (
            (folder / f"{name}.out-{rank}").open("w") as out,
            (folder / f"{name}.err-{rank}").open("w") as err,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = call("fit", *own)
        (folder / f"{name}.end-{rank}").write_text(f"{code} {time.monotonic() - start}")


@pytest.fixture(scope="module")
def called(folder):
    """Make the calls; return the exit codes of the processes themselves, and what the folder held before."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in CALLS]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        ports = [one.getsockname()[1] for one in sockets]
    before = {path.name for path in folder.iterdir()}
    context = multiprocessing.get_context("spawn")
    running = [context.Process(target=work, args=(rank, ports, folder)) for rank in range(2)]
    for process in running:
        process.start()
    for process in running:
        process.join(300)
        process.kill()
    return [process.exitcode for process in running], before


@pytest.mark.parametrize("name", SAID)
def test_one_line_and_one_exit_code(name, called, folder):
    codes, message = SAID[name]
    ends = [path.read_text().split() for rank in range(2) if (path := folder / f"{name}.end-{rank}").exists()]
    assert [int(code) for code, _ in ends] == [code for code in codes if code != 9]
    assert max(float(seconds) for _, seconds in ends) < 250  # not the half hour of the process group
    printed = [(folder / f"{name}.err-{rank}").read_text() for rank in range(2)]
    assert printed[0].count("tacit: ") == 1
    assert f"tacit: {message}" in printed[0]
    assert printed[1] == ""
    assert "Traceback" not in printed[0]
    assert (folder / f"{name}.out-0").read_text() == (folder / f"{name}.out-1").read_text() == ""


def test_a_failed_call_leaves_nothing_behind(called, folder):
    codes, before = called
    assert codes == [0, 9]
    assert {path.name for path in folder.iterdir() if path.stem not in CALLS} == before | {"two"}
    assert [path.name for path in (folder / "full").iterdir()] == ["mine.txt"]


def by_torchrun(arguments, folder):
    """Make the run in two processes of torchrun; return what is printed, and the messages."""
    environment = {**os.environ, "PYTHONPATH": str(Path(tacit.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "tacit"]
    two = subprocess.run(
        [*launcher, "fit", *arguments, "--out", "two", "--json"],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert two.returncode == 0, two.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["two"]
    return two.stdout, two.stderr


@pytest.mark.parametrize("started", ["spawned", pytest.param("torchrun", marks=pytest.mark.slow)])
def test_two_processes_give_the_run_of_one(started, called, folder, tmp_path, capsys):
    """All stages: the fit, standard errors, other graphs and controls, each of them trained by both processes."""
    arguments, at = [str(folder / "wide.csv"), *CHEAP], folder if started == "spawned" else tmp_path
    if started == "torchrun":
        shown, said = by_torchrun(arguments, tmp_path)
    else:
        assert [(folder / f"a whole run.end-{rank}").read_text().split()[0] for rank in range(2)] == ["0", "0"]
        shown, said = (folder / "a whole run.out-0").read_text(), (folder / "a whole run.err-0").read_text()
    assert "tacit: " not in said
    assert call("fit", *arguments, "--out", str(tmp_path / "one"), "--json") == 0
    printed = [json.loads(text) for text in (shown, capsys.readouterr().out)]
    assert printed[0]["metrics"] == pytest.approx(printed[1]["metrics"], rel=1e-4)
    assert printed[0]["uncertainty"]["replicas"] == 4
    runs = [tmp_path / "one", at / "two"]
    assert len({tuple(sorted(path.name for path in run.iterdir())) for run in runs}) == 1
    tables = [list(csv.DictReader((run / "edges.csv").read_text().splitlines())) for run in runs]
    for one, other in zip(*tables, strict=True):
        assert (one["source"], one["target"], one["identifiable"]) == (
            other["source"], other["target"], other["identifiable"],
        )  # fmt: skip
        for column in ("probability", "std_error", "low", "high", "bagged"):
            assert (other[column] == "") == (one[column] == "")  # an edge that is not kept has no number
            assert float(other[column] or 0) == pytest.approx(float(one[column] or 0), abs=1e-5)
    record = json.loads((at / "two" / "record.json").read_text())
    assert record["device"].startswith("2 x cpu")


@pytest.mark.parametrize("size", ["2", "two"])
def test_half_an_environment_is_refused(size, monkeypatch, wrong_call):
    for name in ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WORLD_SIZE", size)
    wrong_call("fit", "wide.csv")


@pytest.mark.parametrize("arguments", [["demo"], ["fit", "--init", "new.toml"], ["report", "x"], ["reproduce", "all"]])
def test_only_training_is_work_for_several(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Launch, "from_environment", classmethod(lambda cls: cls(0, 2)))
    monkeypatch.setattr(Launch, "join", lambda _: None)
    monkeypatch.setattr(Launch, "end", lambda _self, code, message, _in_step: print(message) or code)
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "torchrun is for tacit fit, got tacit " in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_each_process_has_a_gpu_of_its_own(monkeypatch, refused):
    """Without a GPU at hand: the choice alone."""
    chosen = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    device = torch.device
    assert Launch(3, 4, 1, 2).own_device(device("cuda")) == device("cuda", 1)
    assert chosen == [1]
    assert Launch(1, 2, 1, 2).own_device(device("cpu")) == device("cpu")
    assert Launch().own_device(device("cuda", 1)) == device("cuda", 1)
    refused(Launch(0, 3, 0, 3).own_device, device("cuda"))
    refused(Launch(0, 2, 0, 2).own_device, device("cuda", 1))

"""A run that is killed, whenever it is killed, and resumed, ends with the files of the run that was not."""

import errno
import json
import os
import random
import shutil
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from commands import call
from stopped_runs import QUICK, begin, content, end, signal_at_step
from tacit.console import Display
from tacit.locks import LOCK, locked
from tacit.pipeline import Fitted, fitting, job
from tacit.pipeline.job import CHECKPOINT
from tacit.records import CALL, RECORD, read_run
from tacit.training import Checkpoints
from tacit.training.checkpoint import KIND

kill_at_step = partial(signal_at_step, number=signal.SIGKILL)


def everything(run):
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()}


def require_int(run):
    """Whatever has its name is whole."""
    if (run / CHECKPOINT).exists():
        KIND.unpack((run / CHECKPOINT).read_bytes(), "it")
    if (run / RECORD).exists():
        read_run(run)
    if (run / CALL).exists():
        json.loads((run / CALL).read_text())


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Write after each step, and draw no report."""
    monkeypatch.setattr(job, "Checkpoints", partial(Checkpoints, every=0))
    monkeypatch.setattr(job, "draw_run", lambda directory, _run: directory / "report.html")


@pytest.fixture(scope="module")
def data(folder, tmp_path_factory):
    """The data; one run in this process imports and sets up what those that are started from it then have."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(job, "draw_run", lambda directory, _run: directory / "report.html")
        assert call("fit", folder / "wide.csv", "--out", tmp_path_factory.mktemp("warm") / "run", *QUICK) == 0
    return folder / "wide.csv"


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory):
    """The run that nothing stopped, and how long it took."""
    run = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(job, "draw_run", lambda directory, _run: directory / "report.html")
        assert end(begin("fit", data, "--out", run, *QUICK)) == 0
        start = time.monotonic()
        assert end(begin("fit", data, "--out", run.with_name("again"), *QUICK)) == 0
    assert content(run) == content(run.with_name("again"))
    return content(run), time.monotonic() - start


@pytest.fixture
def stopped(data, tmp_path, monkeypatch):
    """A run that was killed in the middle of its training."""
    run = tmp_path / "run"
    assert end(begin("fit", data, "--out", run, *QUICK, prepare=partial(kill_at_step, 7))) == -signal.SIGKILL
    assert {path.name for path in run.iterdir()} == {CALL, CHECKPOINT, LOCK}
    return run


@pytest.mark.parametrize("enough", [4, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_random_moments_it_ends_with_the_same_files(data, whole, tmp_path, enough):
    """Real processes, SIGKILL, moments from a fixed seed spread over a run; several kills in a row on each run."""
    expected, seconds = whole
    moments, kills, runs = random.Random(0), 0, 0
    while kills < enough:
        run = tmp_path / f"run-{runs}"
        runs += 1
        for _ in range(4):
            going_on = (run / CALL).exists()
            process = begin("fit", *(["--resume", run] if going_on else [data, "--out", run, *QUICK]))
            time.sleep(moments.uniform(0, seconds))
            os.kill(process, signal.SIGKILL)
            code = end(process)
            kills += code == -signal.SIGKILL
            assert code in (0, -signal.SIGKILL)
            if run.exists():
                require_int(run)
            if (run / RECORD).exists() and not (run / CALL).exists():
                break  # it was complete
        if (run / CALL).exists():
            assert end(begin("fit", "--resume", run)) == 0
        elif not (run / RECORD).exists():
            assert end(begin("fit", data, "--out", run, *QUICK)) == 0
        assert content(run) == expected | {"names": sorted({*expected["names"], *leftover(run)})}


def leftover(run):
    """A kill in the last moment, after the run was complete, may leave these, which mean nothing."""
    return {name for name in (CHECKPOINT, LOCK) if (run / name).exists()}


def kill_at_operation(number):
    """Let the process kill itself before the ``number``-th thing that it does to files."""
    done = [0]

    def counted(original):
        def operation(*args, **kwargs):
            done[0] += 1
            if done[0] == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **kwargs)

        return operation

    for name in ("fsync", "replace", "unlink", "mkdir"):
        setattr(os, name, counted(getattr(os, name)))
    job.Checkpoints = partial(Checkpoints, every=3600)


@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_before_anything_it_does_to_files(data, tmp_path, monkeypatch, stride):
    """Before each change of a file, or each fifth, from the start to the end of a run; stages are left out."""
    monkeypatch.setattr(fitting, "assess", lambda _fit: ())
    quickest = [*QUICK, "--set", "training.epochs=2"]
    assert end(begin("fit", data, "--out", tmp_path / "whole", *quickest)) == 0
    expected = content(tmp_path / "whole")
    for number in range(1, 100, stride):
        run = tmp_path / f"run-{number}"
        code = end(begin("fit", data, "--out", run, *quickest, prepare=partial(kill_at_operation, number)))
        if code == 0:
            break
        assert code == -signal.SIGKILL
        if run.exists():
            require_int(run)
        if (run / CALL).exists():
            assert end(begin("fit", "--resume", run)) == 0
        elif not (run / RECORD).exists():
            assert end(begin("fit", data, "--out", run, *quickest)) == 0
        else:
            assert end(begin("fit", "--resume", run)) == 2  # it is finished, and tidied up
        assert content(run) == expected
    assert 15 < number < 45


def test_sigterm_names_the_command_that_goes_on(data, whole, tmp_path, monkeypatch, capsys):
    run = tmp_path / "run"
    kill_at = partial(signal_at_step, 7, signal.SIGTERM)
    with monkeypatch.context() as patched:
        patched.setattr(Display, "step", None)
        kill_at()
        assert call("fit", data, "--out", run, *QUICK) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == f"tacit: stopped by SIGTERM; resume with 'tacit fit --resume {run}'"
    assert {path.name for path in run.iterdir()} == {CALL, CHECKPOINT}
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert call("fit", "--resume", run, "--quiet") == 0
    assert capsys.readouterr().out.strip() == str(run / "report.html")
    assert content(run) == whole[0]


@pytest.mark.parametrize("command", ["fit", "demo"])
def test_sigterm_before_anything_was_done(command, data, whole, tmp_path, monkeypatch, capsys):
    def stop(_self, text):
        if (tmp_path / "run").exists():
            signal.raise_signal(signal.SIGTERM)

    arguments = [data, *QUICK] if command == "fit" else []
    with monkeypatch.context() as patched:
        patched.setattr(Display, "stage", stop)
        assert call(command, *arguments, "--out", tmp_path / "run") == 1
    said = capsys.readouterr().err.splitlines()[-1]
    if command == "demo":
        assert said == "tacit: stopped by SIGTERM"
        assert list(tmp_path.iterdir()) == []
    else:
        resumed(said, tmp_path / "run", whole)


def resumed(said, run, whole, reason="stopped by SIGTERM"):
    """A run without a checkpoint can be resumed all the same."""
    assert said == f"tacit: {reason}; resume with 'tacit fit --resume {run}'"
    assert (run / CALL).is_file()
    assert call("fit", "--resume", run) == 0
    assert content(run) == whole[0]


def test_sigterm_before_the_first_checkpoint(data, whole, tmp_path, monkeypatch, capsys):
    with monkeypatch.context() as patched:
        patched.setattr(job, "Checkpoints", Checkpoints)
        patched.setattr(Display, "step", None)
        signal_at_step(3, signal.SIGTERM)
        assert call("fit", data, *QUICK, "--out", tmp_path / "run") == 1
    resumed(capsys.readouterr().err.splitlines()[-1], tmp_path / "run", whole)


def test_a_disk_that_is_full_when_the_results_are_written(data, whole, tmp_path, monkeypatch, capsys):
    """Also without a checkpoint, as after a fit in closed form."""

    def full(_self, path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path / "forecasts.csv"))

    with monkeypatch.context() as patched:
        patched.setattr(job, "Checkpoints", Checkpoints)
        patched.setattr(Fitted, "write", full)
        assert call("fit", data, *QUICK, "--out", tmp_path / "run") == 1
    reason = f"[Errno 28] No space left on device: '{tmp_path / 'run' / 'forecasts.csv'}'"
    resumed(capsys.readouterr().err.splitlines()[-1], tmp_path / "run", whole, reason)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_a_signal_while_the_files_are_written(number, data, whole, tmp_path, monkeypatch, capsys):
    """It takes effect after the last file; nothing is removed."""
    real = Path.replace

    def stopped(path, target):
        if Path(target).name == "edges.csv":
            signal.raise_signal(number)
        return real(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", stopped)
        assert call("fit", data, *QUICK, "--out", tmp_path / "run", "--quiet") == 1
    by = "SIGTERM" if number == signal.SIGTERM else "the user"
    drawn = f"the run is complete; draw its report with 'tacit report {tmp_path / 'run'}'"
    assert capsys.readouterr().err.splitlines()[-1] == f"tacit: stopped by {by}; {drawn}"
    assert content(tmp_path / "run") == whole[0]


def test_too_little_memory_for_the_page(data, whole, tmp_path, monkeypatch, capsys):
    def large(*_):
        raise MemoryError

    monkeypatch.setattr(job, "draw_run", large)
    assert call("fit", data, *QUICK, "--out", tmp_path / "run") == 1
    drawn = f"the run is complete; draw its report with 'tacit report {tmp_path / 'run'}'"
    assert capsys.readouterr().err.splitlines()[-1] == f"tacit: out of memory; {drawn}"
    assert content(tmp_path / "run") == whole[0]


def test_after_ctrl_c_what_was_learned_is_there_and_the_run_can_go_on(data, whole, tmp_path, monkeypatch, capsys):
    run = tmp_path / "run"
    with monkeypatch.context() as patched:
        patched.setattr(Display, "step", None)
        signal_at_step(7, signal.SIGINT)
        assert call("fit", data, "--out", run, *QUICK) == 1
    message = f"partial results are in {run}; resume with 'tacit fit --resume {run}'"
    assert message in capsys.readouterr().err
    assert read_run(run).record.timings["steps"] == 7
    assert call("fit", "--resume", run) == 0
    assert content(run) == whole[0]


def test_only_one_process_writes_a_run(stopped, data, whole, capsys):
    """The first is held in its training; the second is told so; the first ends as if nothing had been."""
    process = begin("fit", "--resume", stopped, prepare=partial(signal_at_step, 10, signal.SIGSTOP))
    assert os.WIFSTOPPED(os.waitpid(process, os.WUNTRACED)[1])
    before = everything(stopped)
    try:
        assert call("fit", "--resume", stopped) == 2
        assert f"tacit: {stopped} is being written by another process; wait until" in capsys.readouterr().err
        assert call("fit", data, "--out", stopped, *QUICK) == 2
        assert f"tacit: {stopped} is being written by another process; wait until" in capsys.readouterr().err
        assert everything(stopped) == before
    finally:
        os.kill(process, signal.SIGCONT)
        code = end(process)
    assert code == 0
    assert content(stopped) == whole[0]


def test_two_that_begin_at_once(data, tmp_path, capsys):
    """The lock is taken before anything is written, and that of a process that is gone counts for nothing."""
    run = tmp_path / "run"
    run.mkdir()
    with locked(run):
        assert call("fit", data, "--out", run, *QUICK) == 2
        assert "is being written by another process" in capsys.readouterr().err
    assert list(run.iterdir()) == []
    (run / LOCK).touch()
    (run / f".{CALL}.partial-1").touch()
    assert call("fit", data, "--out", run, *QUICK) == 0
    assert LOCK not in content(run)["names"]


def test_resume_from_another_folder(data, folder, whole, tmp_path, monkeypatch):
    """Paths are those of the folder in which the run was begun, and the record says what it would have said."""
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    (tmp_path / "there" / "wide.csv").write_bytes(data.read_bytes())
    (tmp_path / "there" / "rules.csv").write_text("source,target,kind,probability\nnorth,south,forbidden,\n")
    monkeypatch.chdir(tmp_path / "there")
    arguments = ("fit", "wide.csv", "--edges", "rules.csv", *QUICK, "--seed", 4, "--out")
    assert call(*arguments, "one") == 0
    assert end(begin(*arguments, "two", prepare=partial(kill_at_step, 7))) == -signal.SIGKILL
    monkeypatch.chdir(tmp_path / "here")
    assert call("fit", "--resume", "../there/two", "--json") == 0
    assert content(tmp_path / "there" / "two") == content(tmp_path / "there" / "one")
    assert content(tmp_path / "there" / "two")["record"]["config"]["graph"]["edges"] == "rules.csv"


def only_line(capsys):
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("tacit: ")]
    assert len(lines) == 1
    return lines[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda file: file.write_text(file.read_text().replace("5", "6", 1)),
            "has changed since the run started; restore it",
        ),
        (lambda file: file.unlink(), "was removed, and the run cannot be resumed without it; put it back"),
    ],
    ids=["changed", "gone"],
)
def test_other_data_is_refused_and_the_run_stays(change, message, data, tmp_path, capsys):
    own, run = tmp_path / "own.csv", tmp_path / "run"
    own.write_bytes(data.read_bytes())
    assert end(begin("fit", own, "--out", run, *QUICK, prepare=partial(kill_at_step, 7))) == -signal.SIGKILL
    before = everything(run)
    change(own)
    assert call("fit", "--resume", run) == 2
    assert only_line(capsys).startswith(f"tacit: {own} {message}")
    del before[LOCK]
    assert everything(run) == before
    own.write_bytes(data.read_bytes())
    assert call("fit", "--resume", run) == 0


def cut(path):
    path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda run: cut(run / CHECKPOINT), "checkpoint.safetensors is a damaged checkpoint"),
        (lambda run: (run / CHECKPOINT).write_bytes(b"foreign"), "must be a checkpoint of tacit, but is damaged or"),
        (lambda run: cut(run / CALL), "call.json is damaged, so the run cannot be resumed; run the command again"),
        (
            lambda run: (run / CALL).write_text((run / CALL).read_text().replace('"format": 3', '"format": 4')),
            "call.json has format 4, this tacit reads format 3; use the version that started the run",
        ),
        (
            lambda run: (run / CALL).write_text((run / CALL).read_text().replace('"seed": 0', '"seed": 5')),
            "checkpoint.safetensors belongs to another training run: seeds is [5000, 5001] here and [0, 1] there",
        ),
    ],
)
def test_damaged_files_are_refused_and_stay(change, message, stopped, capsys):
    change(stopped)
    before = everything(stopped)
    assert call("fit", "--resume", stopped) == 2
    assert message in only_line(capsys)
    del before[LOCK]
    assert everything(stopped) == before


def test_wrong_calls(stopped, data, tmp_path, capsys):
    for arguments, given in (
        ([data], "DATA"),
        (["--window", 3], "--window"),
        (["--seed", 3], "--seed"),
        (["--out", tmp_path / "x"], "--out"),
    ):
        assert call("fit", "--resume", stopped, *arguments) == 2
        assert (
            only_line(capsys)
            == f"tacit: --resume uses the options of the original run and takes no {given}; leave it out"
        )
    assert call("predict", stopped, data) == 2
    assert only_line(capsys) == f"tacit: {stopped} is not finished; resume with 'tacit fit --resume {stopped}'"
    for nothing in (tmp_path, tmp_path / "nowhere", data):
        assert call("fit", "--resume", nothing) == 2
        assert f"--resume must be an unfinished run of tacit fit, got {nothing}" in only_line(capsys)
    assert call("fit", "--resume", stopped) == 0
    capsys.readouterr()
    before = everything(stopped)
    assert call("fit", "--resume", stopped) == 2
    assert only_line(capsys).startswith(f"tacit: {stopped} is already finished; see ")
    assert everything(stopped) == before


def test_another_version_is_noted(stopped, whole):
    text = (stopped / CALL).read_text()
    (stopped / CALL).write_text(text.replace('"python": "', '"python": "2.'))
    assert call("fit", "--resume", stopped) == 0
    found = content(stopped)
    assert "started and finished under different versions: python 2." in found["record"]["warnings"][0]
    assert found["edges.csv"] == whole[0]["edges.csv"]


def test_a_full_disk_at_the_end_costs_nothing(data, whole, tmp_path, monkeypatch, capsys):
    import tacit.records.run

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    run = tmp_path / "run"
    with monkeypatch.context() as patched:
        patched.setattr(tacit.records.run, "write_together", full)
        assert call("fit", data, "--out", run, *QUICK) == 1
    said = only_line(capsys)
    assert "No space left on device" in said
    assert said.endswith(f"; resume with 'tacit fit --resume {run}'")
    assert {path.name for path in run.iterdir()} == {CALL, CHECKPOINT}
    kill = []
    monkeypatch.setattr(Display, "step", lambda _self, progress: kill.append(progress))
    assert call("fit", "--resume", run) == 0
    assert kill == []  # no step is repeated
    assert content(run) == whole[0]


def test_a_directory_that_vanishes_is_an_error(data, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        Display, "step", lambda _self, progress: shutil.rmtree(tmp_path / "run") if progress.step == 5 else None
    )
    assert call("fit", data, "--out", tmp_path / "run", *QUICK) == 1
    assert only_line(capsys) == f"tacit: {tmp_path / 'run'} was removed or replaced while the command was running"
    assert list(tmp_path.iterdir()) == []


def test_over_a_table_of_candidates(data, tmp_path):
    """Its candidates are made anew from the data, and what was learned goes back into them."""
    candidates = '[["north", "east"], ["east", "south"], ["west", "south"], ["south", "west"]]'
    table = ("--set", "graph.layout=table", "--set", f"graph.candidates={candidates}")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert end(begin("fit", data, "--out", whole, *QUICK, *table)) == 0
    for step in (1, 7):
        shutil.rmtree(killed, ignore_errors=True)
        arguments = ("fit", data, "--out", killed, *QUICK, *table)
        assert end(begin(*arguments, prepare=partial(kill_at_step, step))) == -signal.SIGKILL
        assert end(begin("fit", "--resume", killed)) == 0
        assert content(killed) == content(whole)
    assert content(whole)["record"]["config"]["graph"]["layout"] == "table"


def test_ctrl_c_before_a_resumed_training_names_the_way_to_go_on(stopped, monkeypatch, capsys):
    before = everything(stopped)
    with monkeypatch.context() as patched:
        patched.setattr(Display, "stage", lambda _self, text: "reading" in text and signal.raise_signal(signal.SIGINT))
        assert call("fit", "--resume", stopped) == 1
    assert only_line(capsys) == f"tacit: stopped by the user; resume with 'tacit fit --resume {stopped}'"
    del before[LOCK]
    assert everything(stopped) == before


def test_a_run_kept_by_ctrl_c_stays_whole_when_its_rewriting_fails(data, whole, tmp_path, monkeypatch, capsys):
    """Each name that is given in turn fails: what the first part of the training left can be used until the end."""
    run = tmp_path / "run"
    with monkeypatch.context() as patched:
        patched.setattr(Display, "step", None)
        signal_at_step(7, signal.SIGINT)
        assert call("fit", data, "--out", run, *QUICK) == 1
    kept = {name: (run / name).read_bytes() for name in ("record.json", "edges.csv", "model.safetensors")}
    capsys.readouterr()
    original = os.replace
    for failing in (*kept, "history.jsonl"):
        to_fail = [failing]

        def replace(source, target, to_fail=to_fail):
            if Path(target).name in to_fail:
                to_fail.clear()  # once
                raise OSError(28, "No space left on device")
            original(source, target)

        with monkeypatch.context() as patched:
            patched.setattr(os, "replace", replace)
            assert call("fit", "--resume", run) == 1
        assert f"No space left on device: '{run / failing}'; resume with" in only_line(capsys)
        assert {name: (run / name).read_bytes() for name in kept} == kept
        assert not list(run.glob(".*.partial-*"))
        assert read_run(run).record.timings["steps"] == 7
    assert call("fit", "--resume", run) == 0
    assert content(run) == whole[0]

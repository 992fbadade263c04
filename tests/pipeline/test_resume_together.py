"""Several processes whose run is stopped, in whatever way, and which go on, or one of them alone: one result."""

import csv
import os
import shutil
import signal
from functools import partial

import pytest
import torch

from stopped_runs import QUICK, begin, content, end, signal_at_step
from tacit.locks import LOCK
from tacit.pipeline import job
from tacit.pipeline.job import CHECKPOINT
from tacit.records import CALL, RECORD
from tacit.training import Checkpoints, checkpoint
from tacit.training.checkpoint import KIND
from tacit.training.processes import LOST

WHOLE = "edges.csv", "forecasts.csv", "history.jsonl", "lags.csv", "model.safetensors", RECORD


@pytest.fixture(autouse=True, scope="module")
def quick():
    """Write after each step, draw no report, and start from a process in which everything is imported."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(job, "Checkpoints", partial(Checkpoints, every=0))
        patched.setattr(job, "draw_run", lambda directory, _run: directory / "report.html")
        yield


@pytest.fixture
def together(tmp_path):
    """Run ``tacit fit`` in two processes side by side; return exit codes and what each said on its own."""

    def fit(*arguments, prepare=(None, None), folders=(tmp_path, tmp_path)):
        store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        said = [tmp_path / f"said-{rank}" for rank in range(2)]
        running = [
            begin(
                "fit",
                *arguments,
                "--quiet",
                prepare=partial(_join, rank, store.port, folders[rank], own),
                said=said[rank],
            )
            for rank, own in enumerate(prepare)
        ]
        codes = [end(process) for process in running]
        del store
        lines = [line for path in said for line in path.read_text().splitlines() if line.startswith("tacit: ")]
        for path in said:
            path.unlink()
        return codes, lines

    return fit


def _join(rank, port, folder, prepare):
    """Be one of two processes, as torchrun would have it: they meet at a store that is none of theirs."""
    torch.set_num_threads(1)  # the threads of the process that started this one are not in it
    os.chdir(folder)
    os.environ |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "RANK": f"{rank}", "LOCAL_RANK": f"{rank}"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": f"{port}"}
    os.environ |= {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0"}
    if prepare is not None:
        prepare()


@pytest.fixture
def stopped(together, folder, tmp_path):
    """A run of two processes the second of which was killed in the middle of the training, and what was said."""
    kill = partial(signal_at_step, 7, signal.SIGKILL)
    codes, lines = together(folder / "wide.csv", "--out", "run", *QUICK, prepare=(None, kill))
    assert codes == [1, -signal.SIGKILL]
    return tmp_path / "run", lines


@pytest.fixture(scope="module")
def alone(folder, tmp_path_factory):
    """The edges of one process that nothing stopped."""
    run = tmp_path_factory.mktemp("alone") / "run"
    assert end(begin("fit", folder / "wide.csv", "--out", run, *QUICK, prepare=partial(torch.set_num_threads, 1))) == 0
    return probabilities(run)


def probabilities(run):
    return [float(row["probability"] or 0) for row in csv.DictReader((run / "edges.csv").read_text().splitlines())]


def resume_line(run):
    return f"resume with 'tacit fit --resume {run}', with or without torchrun"


def test_one_that_is_killed_costs_nothing(stopped, together, folder, alone, tmp_path):
    """The other says how to go on; two go on to the bits of two that nothing stopped, one alone up to rounding."""
    run, lines = stopped
    assert lines == [f"tacit: {LOST}; {resume_line('run')}"]
    assert {path.name for path in run.iterdir()} == {CALL, CHECKPOINT}
    text, tensors = KIND.unpack((run / CHECKPOINT).read_bytes(), "it")
    assert text["steps_done"] == 7
    assert tensors
    shutil.copytree(run, tmp_path / "copy")
    assert together("--resume", "run") == ([0, 0], [])
    assert together(folder / "wide.csv", "--out", "whole", *QUICK) == ([0, 0], [])
    whole, resumed = (content(tmp_path / name) for name in ("whole", "run"))
    assert resumed["record"].pop("command") == whole["record"].pop("command")
    assert resumed == whole
    assert set(whole["names"]) == set(WHOLE)
    assert end(begin("fit", "--resume", tmp_path / "copy", prepare=partial(torch.set_num_threads, 1))) == 0
    assert probabilities(tmp_path / "copy") == pytest.approx(probabilities(run), abs=1e-6)
    assert probabilities(run) == pytest.approx(alone, abs=1e-6)


def test_the_first_is_killed(together, folder, alone, tmp_path):
    """Nobody tidies up, and the lock of the dead holds nobody off."""
    kill = partial(signal_at_step, 7, signal.SIGKILL)
    codes, lines = together(folder / "wide.csv", "--out", "run", *QUICK, prepare=(kill, None))
    assert codes == [-signal.SIGKILL, 1]
    assert lines == [f"tacit: {LOST}; {resume_line('run')}"]
    assert {path.name for path in (tmp_path / "run").iterdir()} == {CALL, CHECKPOINT, LOCK}
    assert together("--resume", "run") == ([0, 0], [])
    assert probabilities(tmp_path / "run") == pytest.approx(alone, abs=1e-6)


def test_two_go_on_with_what_one_began(together, folder, alone, tmp_path):
    """The second process is in a folder where there is no run: it hears all from the first."""
    (tmp_path / "elsewhere").mkdir()

    def kill():
        torch.set_num_threads(1)
        signal_at_step(7, signal.SIGKILL)

    arguments = (folder / "wide.csv", "--out", tmp_path / "run", *QUICK)
    assert end(begin("fit", *arguments, prepare=kill)) == -signal.SIGKILL
    assert together("--resume", "run", folders=(tmp_path, tmp_path / "elsewhere")) == ([0, 0], [])
    assert probabilities(tmp_path / "run") == pytest.approx(alone, abs=1e-6)
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (
            signal.SIGTERM,
            "stopped by SIGTERM, sent by torchrun because another process of this training ended; start all",
        ),
        (signal.SIGINT, "stopped by the user; resume"),
    ],
)
def test_asked_to_stop(number, line, together, folder, tmp_path):
    """torchrun asks all of them; here both ask themselves before the same step."""
    stop = partial(signal_at_step, 7, number)
    codes, lines = together(folder / "wide.csv", "--out", "run", *QUICK, prepare=(stop, stop))
    assert codes == [1, 1]
    assert len(lines) == 1
    assert lines[0].startswith(f"tacit: {line}")
    assert lines[0].endswith(resume_line("run"))
    assert {path.name for path in (tmp_path / "run").iterdir()} == {CALL, CHECKPOINT}


def test_a_checkpoint_that_cannot_be_written(together, folder, tmp_path):
    """The first says so, and the other, in the middle of a step, does not wait for it."""

    def fail_from_the_fourth():  # after the two steps and the end of the first epoch
        written, write = [], checkpoint.write_atomic

        def write_some(path, data):
            written.append(path)
            if len(written) > 3:
                raise OSError(28, "No space left on device", str(path))
            write(path, data)

        checkpoint.write_atomic = write_some

    prepare = (fail_from_the_fourth, None)
    codes, (line,) = together(folder / "wide.csv", "--out", "run", *QUICK, prepare=prepare)
    assert codes == [1, 1]
    assert line.startswith("tacit: process 0 could not write its checkpoint: [Errno 28] No space left on device: 'run/")
    assert line.endswith(f"; free some space; {resume_line('run')}")
    assert KIND.unpack((tmp_path / "run" / CHECKPOINT).read_bytes(), "it")[0]["steps_done"] == 2


def test_what_is_refused_is_refused_in_both(stopped, together):
    run, _ = stopped
    good = (run / CHECKPOINT).read_bytes()
    (run / CHECKPOINT).write_bytes(good[:-20])
    codes, (line,) = together("--resume", "run")
    assert codes == [2, 2]
    assert line.startswith("tacit: ")
    assert "checkpoint.safetensors is a damaged checkpoint" in line
    (run / CHECKPOINT).write_bytes(good)
    (run / CALL).rename(run / "other.json")
    codes, (line,) = together("--resume", "run")
    assert codes == [2, 2]
    assert "--resume must be an unfinished run of tacit fit, got run; check the path" in line
    assert (run / CHECKPOINT).read_bytes() == good

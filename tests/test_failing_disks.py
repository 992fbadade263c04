"""A full disk, a directory that may not be written, one that vanishes, two processes at once: one line, nothing lost.

Processes of their own, as root with a disk of a few kilobytes, and as a user who may not write; both are skipped where
the system does not let the tests make them.
"""

import importlib
import os
import pwd
import resource
import shutil
import subprocess
import tempfile
import threading
from functools import partial
from pathlib import Path

import pytest

from commands import call
from own_files import write_files
from stopped_runs import QUICK, begin, content, end
from tacit.console import Display
from tacit.locks import LOCK, locked
from tacit.pipeline.job import CHECKPOINT
from tacit.records import CALL, read_run

TINY_DEMO = "[system]\nnum_pairs = 60\n[model]\nnum_graphs = 4\n[training]\nepochs = 1\nreplicas = 1\ncompile = false\n"
SMALL = [*QUICK, "--set", "training.epochs=1", "--set", "training.replicas=1"]


def everything(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def one_line(said):
    lines = [line for line in said.splitlines() if line.startswith("tacit: ")]
    assert len(lines) == 1, said
    assert "Traceback" not in said
    return lines[0].removeprefix("tacit: ")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Data and a finished run with its report, for all users to read."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    write_files(folder)
    (folder / "demo.toml").write_text(TINY_DEMO)
    assert call("fit", folder / "wide.csv", "--out", folder / "run", *SMALL) == 0
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def run(place, tmp_path):
    """A copy of the run."""
    return shutil.copytree(place / "run", tmp_path / "run")


@pytest.fixture
def small_disk(tmp_path):
    """A function that makes a disk of some kilobytes, or makes it larger."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def make(kilobytes):
        again = ["-o", f"remount,size={kilobytes}k"] if os.path.ismount(folder) else ["-o", f"size={kilobytes}k"]
        made = subprocess.run(["mount", "-t", "tmpfs", *again, "tmpfs", str(folder)], capture_output=True, text=True)
        if made.returncode:
            pytest.skip(f"a small disk cannot be made here: {made.stderr.strip()}")
        return folder

    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("a small disk cannot be made here: it takes root and mount")
    yield make
    subprocess.run(["umount", str(folder)], capture_output=True)


@pytest.fixture
def not_root():
    """What lets a process go on as a user who is not root, who may be unable to import what is not there yet."""
    importlib.import_module("tacit.experiments.runner")
    if os.geteuid() != 0:
        return lambda: None
    nobody = pwd.getpwnam("nobody")

    def drop():
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)

    return drop


def commands(place, out):
    """Every command that writes, into a directory."""
    return {
        "fit": ("fit", place / "wide.csv", "--out", out / "fit", *SMALL),
        "demo": ("demo", "--config", place / "demo.toml", "--out", out / "demo"),
        "reproduce": ("reproduce", "counterexample", "--quick", "--out", out / "results"),
        "predict": ("predict", place / "run", place / "wide.csv", "--out", out / "new" / "a.csv"),
        "parquet": ("predict", place / "run", place / "wide.csv", "--out", out / "a.parquet"),
        "init": ("fit", "--init", out / "choices.toml"),
    }


NAMES = ["fit", "demo", "reproduce", "predict", "parquet", "init"]


@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk(name, place, small_disk, tmp_path):
    """Not even the first file fits: exit code 1, one line, nothing left."""
    disk, said = small_disk(4), tmp_path / "said"
    disk.joinpath("mine.txt").write_bytes(b"x" * 4096)
    assert end(begin(*commands(place, disk)[name], said=said)) == 1
    assert "No space left on device" in one_line(said.read_text())
    assert everything(disk) == {"mine.txt": b"x" * 4096}
    assert os.listdir(disk) == ["mine.txt"]


def test_a_disk_that_fills_up_under_way(place, small_disk, tmp_path):
    """The run fits and its page does not: the line names the command that draws it when there is space."""
    disk, said = small_disk(1000), tmp_path / "said"
    assert end(begin("fit", place / "wide.csv", "--out", disk / "run", *SMALL, said=said)) == 1
    line = one_line(said.read_text())
    assert "No space left on device" in line
    assert line.endswith(f"the run is complete; draw its report with 'tacit report {disk / 'run'}'")
    read_run(disk / "run")
    assert not {CALL, CHECKPOINT} & set(os.listdir(disk / "run"))
    assert not list((disk / "run").rglob("*.partial-*"))
    small_disk(20_000)
    assert end(begin("report", disk / "run")) == 0
    found, expected = content(disk / "run"), content(place / "run")
    assert found == expected


def test_a_page_that_does_not_fit_leaves_the_old_one(run, tmp_path):
    """A limit on the size of files; figures fit."""
    before, said = everything(run), tmp_path / "said"
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (10**6, 10**6))
    assert end(begin("report", run, prepare=limit, said=said)) == 1
    assert one_line(said.read_text()).startswith(f"[Errno 27] File too large: '{run / 'report.html'}'")
    after = everything(run)
    assert after.keys() == before.keys()
    assert {name: data for name, data in after.items() if "/" not in name} == {
        name: data for name, data in before.items() if "/" not in name
    }


@pytest.mark.parametrize("name", [*NAMES, "report"])
def test_a_directory_that_may_not_be_written(name, place, not_root, tmp_path):
    """Exit code 2, as another directory would do."""
    said = tmp_path / "said"
    said.touch()
    said.chmod(0o666)
    for folder in (tmp_path, *tmp_path.parents):  # pytest keeps its folders to root
        if "pytest-" in str(folder):
            folder.chmod(0o755)
    out = tmp_path / "out"
    out.mkdir()
    shutil.copytree(place / "run", out / "run")
    before = everything(out)
    for folder in (out, out / "run", out / "run" / "figures"):
        folder.chmod(0o555)
    arguments = ("report", out / "run") if name == "report" else commands(place, out)[name]
    assert end(begin(*arguments, prepare=not_root, said=said)) == 2, said.read_text()
    line = one_line(said.read_text())
    assert "Permission denied" in line
    assert str(out) in line
    assert everything(out) == before
    for folder in (out, out / "run", out / "run" / "figures"):
        folder.chmod(0o755)


def test_a_disk_that_may_not_be_written(place, small_disk, tmp_path):
    disk, said = small_disk(20_000), tmp_path / "said"
    shutil.copytree(place / "run", disk / "run")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    before = everything(disk)
    for arguments in (("report", disk / "run"), commands(place, disk)["predict"], commands(place, disk)["fit"]):
        assert end(begin(*arguments, said=said)) == 2
        assert "(Read-only file system)" in one_line(said.read_text())
    assert everything(disk) == before


@pytest.mark.parametrize(
    ("name", "stage"), [("fit", "fit: training"), ("fit", "scoring"), ("demo", "psi known"), ("reproduce", "counter")]
)
def test_a_directory_that_another_process_takes_away(name, stage, place, tmp_path, monkeypatch, capsys):
    """And makes anew, with a run of its own: nothing is written into that, or taken from it."""
    arguments = commands(place, tmp_path)[name]
    out = tmp_path / arguments[arguments.index("--out") + 1].name
    shown = Display.stage

    def replace(self, text):
        shown(self, text)
        if text.startswith(stage) and not (out / "theirs").exists():
            subprocess.run(
                ["sh", "-c", 'rm -r "$1" && mkdir -p "$1/theirs" && touch "$1/.lock"', "sh", out], check=True
            )

    monkeypatch.setattr(Display, "stage", replace)
    assert call(*arguments) == 1
    assert one_line(capsys.readouterr().err).endswith("was removed or replaced while the command was running")
    assert sorted(path.name for path in out.rglob("*")) == [".lock", "theirs"]


@pytest.mark.parametrize("name", ["fit", "demo", "reproduce", "report"])
def test_a_second_process_is_refused_while_the_first_writes(name, place, run, tmp_path, capsys):
    arguments = ("report", run) if name == "report" else commands(place, tmp_path)[name]
    out = run if name == "report" else tmp_path / arguments[arguments.index("--out") + 1].name
    out = out / "counterexample" if name == "reproduce" else out
    out.mkdir(parents=True, exist_ok=True)
    before = everything(out)
    with locked(out):
        assert call(*arguments) == 2
        assert one_line(capsys.readouterr().err) == f"{out} is being written by another process; wait until that ends"
        assert everything(out) == before | {LOCK: b""}


@pytest.mark.parametrize("name", ["predict", "init", pytest.param("demo", marks=pytest.mark.slow), "fit", "reproduce"])
def test_two_processes_at_once(name, place, tmp_path):
    """One does the job, and the other is refused, or finds that it is done."""
    together, said = tmp_path / "together", [tmp_path / "first", tmp_path / "second"]
    together.mkdir()
    processes = [begin(*commands(place, together)[name], said=file) for file in said]
    codes = [end(process) for process in processes]
    assert sorted(codes) in ([0, 2], [0, 0] if name == "reproduce" else [0, 2])
    if 2 in codes:
        line = one_line(said[codes.index(2)].read_text())
        assert "which exists" in line or "is being written by another process" in line
    assert not list(together.rglob(".*"))
    if name in ("predict", "init"):
        (tmp_path / "alone").mkdir()
        assert end(begin(*commands(place, tmp_path / "alone")[name])) == 0
        assert everything(together) == everything(tmp_path / "alone")
    for run in {"fit": ["fit"], "demo": ["demo/known", "demo/joint"]}.get(name, []):
        read_run(together / run)


def test_reports_drawn_at_once_are_whole(run):
    """Two processes over and over; the page is never half there."""
    seen, stop = set(), threading.Event()

    def look():
        while not stop.is_set():
            seen.add((run / "report.html").read_bytes()[-8:].strip())

    watcher = threading.Thread(target=look)
    watcher.start()
    codes = [end(process) for process in [begin("report", run), begin("report", run)]]
    stop.set()
    watcher.join()
    assert sorted(codes) in ([0, 0], [0, 2])
    assert seen == {b"</html>"}
    assert LOCK not in os.listdir(run)


def test_output_that_cannot_be_printed(place, tmp_path):
    said = tmp_path / "said"

    def full():
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
        import sys

        sys.stdout = os.fdopen(os.dup(1), "w")

    for arguments in (("predict", place / "run", place / "wide.csv"), ("fit", "--init", tmp_path / "a.toml")):
        assert end(begin(*arguments, prepare=full, said=said)) == 1  # much, and a line
        assert "No space left on device" in one_line(said.read_text())

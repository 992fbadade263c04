"""Wrong calls of the command: one readable line, exit code 2, nothing written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tacit import cli
from tacit.graph.memory import size_in_words
from tacit.pipeline.choices import REPLICAS
from tacit.pipeline.plan import NUMBER_BYTES

TABLE = "time,a,b,c\n" + "".join(f"{t},{t * 7 % 5},{t * t % 7},{(t * 3 + t // 4) % 6}\n" for t in range(40))
ANYTHING = "x" * 5000


@pytest.fixture
def rude(tmp_path, monkeypatch, wrong_call):
    """Return a function that calls the command in a folder with a table; the line is short, and nothing is written."""
    (tmp_path / "t.csv").write_text(TABLE)
    monkeypatch.chdir(tmp_path)

    def rude(*arguments, code=2):
        before = sorted(os.listdir(tmp_path))
        line = wrong_call(*arguments, "--quiet", code=code)
        assert line.isprintable()
        assert len(line) < 310
        assert sorted(os.listdir(tmp_path)) == before
        return line

    return rude


CALLS = {
    "control characters": ("fit", "t.csv", "--set", "data.a\nb\x1b[31m=1"),
    "a long key": ("fit", "t.csv", "--set", f"{ANYTHING}.key=1"),
    "no text": ("fit", "t.csv", "--out", "run\udcff"),
    "a long name of data": ("fit", ANYTHING),
    "a long name to write": ("fit", "t.csv", "--out", ANYTHING),
    "a long name of a run": ("predict", ANYTHING, "t.csv"),
    "a long name to report": ("report", ANYTHING),
    "no name": ("fit", ""),
    "half a seed": ("fit", "t.csv", "--seed=1.5"),
    "a large seed": ("fit", "t.csv", f"--seed={'9' * 32}"),
    "an endless seed": ("fit", "t.csv", f"--seed={'9' * 5000}"),
    "a word as window": ("fit", "t.csv", "--window", "two"),
    "a word as horizon": ("fit", "t.csv", "--horizon", "two"),
    "a word as errors": ("fit", "t.csv", "--std-errors", "two"),
    "graphs that cannot be compared": ("fit", "t.csv", "--set", "model.num_graphs=400000"),
    "epochs": ("fit", "t.csv", "--set", "training.epochs=1000000000"),
    "layers": ("fit", "t.csv", "--set", "predictor.layers=1000000000"),
    "rate": ("fit", "t.csv", "--set", "training.learning_rate=1e300"),
}


@pytest.mark.parametrize("name", CALLS)
def test_rude_calls(name, rude):
    rude(*CALLS[name])


def test_sizes_beyond_any_memory(rude):
    """Every two graphs are compared, at each of 3 nodes, for each of 26 training pairs, in each replica."""
    line = rude("fit", "t.csv", "--window", "2", "--set", f"model.num_graphs={10**400}")
    assert size_in_words(NUMBER_BYTES * 26 * 10**800 * 3 * REPLICAS) in line


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: 9")])
def test_memory_that_runs_out_after_all(error, rude, monkeypatch):
    def make(*_, **__):
        raise error

    monkeypatch.setattr("tacit.pipeline.job.resolve", make)
    rude("fit", "t.csv", code=1)


# ---------------------------------------------------------------- wrong calls in processes of their own


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])}  # this package, wherever it is installed


@pytest.fixture
def tacit(tmp_path):
    """Run the command in a folder with a table."""
    (tmp_path / "t.csv").write_text(TABLE)

    def run(*arguments, **environment):
        command, environment = [sys.executable, "-m", "tacit", *arguments], ENVIRONMENT | environment
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=120, check=False)

    return run


def test_bytes_that_are_no_text(tacit, tmp_path):
    ended = tacit(b"fit", b"t.csv", b"--out", b"run\xff\xfe", b"--quiet")
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"tacit: arguments must be text in UTF-8, got 'run\\udcff\\udcfe'; rename")
    assert os.listdir(tmp_path) == ["t.csv"]


def test_names_of_the_world_on_a_terminal_of_letters(tacit, tmp_path):
    """A terminal that knows ASCII alone gets a line too."""
    (tmp_path / "größe.csv").write_text("time,é\n0,1\n")
    ended = tacit("fit", "größe.csv", "--quiet", PYTHONIOENCODING="ascii")
    assert ended.returncode == 2
    assert ended.stderr == b"tacit: gr\\xf6\\xdfe.csv: two nodes or more must remain, got none; left out: '\\xe9' (constant)\n"  # noqa: E501 # fmt: skip


def test_a_fit_on_a_terminal_that_lacks_letters(tacit, tmp_path):
    """Names are escaped, also in forecasts on standard output."""
    (tmp_path / "n.csv").write_text(TABLE.replace("time,a,b", "time,Zürich,Łódź"), encoding="utf-8")
    ended = tacit("fit", "n.csv", "--out", "run", "--quick", PYTHONIOENCODING="ascii")
    assert ended.returncode == 0, ended.stderr
    ended = tacit("predict", "run", "n.csv", PYTHONIOENCODING="cp1252")
    assert ended.returncode == 0, ended.stderr
    assert b"\\u0141" in ended.stdout


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams(tmp_path, closed):
    shell = f"{sys.executable} -m tacit --version {closed}"
    ended = subprocess.run(["bash", "-c", shell], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are those of Linux")
@pytest.mark.parametrize("kilobytes", [314_572, 838_860])
def test_a_small_address_space(tmp_path, kilobytes):
    """Refused at once: the libraries may hang while they are loaded."""
    (tmp_path / "t.csv").write_text(TABLE)
    shell = f"ulimit -v {kilobytes} && {sys.executable} -m tacit fit t.csv --out run --quiet"
    ended = subprocess.run(["bash", "-c", shell], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith(b"tacit: out of memory: tacit needs an address space of 1.5 GB")
    assert os.listdir(tmp_path) == ["t.csv"]


def test_a_pipe_that_nobody_writes_to(rude, tmp_path):
    os.mkfifo(tmp_path / "e.csv")
    rude("fit", "t.csv", "--edges", "e.csv")


def test_a_reader_that_has_gone(tmp_path):
    """``tacit fit --help | true`` ends quietly."""
    shell = f"{sys.executable} -m tacit fit --help | true"
    ended = subprocess.run(
        ["bash", "-c", shell], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, timeout=120, check=False
    )
    assert ended.stderr == b""

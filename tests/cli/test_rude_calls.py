"""Wrong calls of the command: one readable line, exit code 2, nothing written."""

import os

import pytest

from tacit.graph.candidate_edges import size_in_words
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
    "a negative seed": ("fit", "t.csv", "--seed=-1"),
    "half a seed": ("fit", "t.csv", "--seed=1.5"),
    "a word as seed": ("fit", "t.csv", "--seed=x"),
    "a large seed": ("fit", "t.csv", f"--seed={'9' * 32}"),
    "an endless seed": ("fit", "t.csv", f"--seed={'9' * 5000}"),
    "a word as window": ("fit", "t.csv", "--window", "two"),
    "a word as horizon": ("fit", "t.csv", "--horizon", "two"),
    "a word as errors": ("fit", "t.csv", "--std-errors", "two"),
    "graphs that cannot be compared": ("fit", "t.csv", "--set", "model.num_graphs=400000"),
    "epochs": ("fit", "t.csv", "--set", "training.epochs=1000000000"),
    "layers": ("fit", "t.csv", "--set", "predictor.layers=1000000000"),
    "rate": ("fit", "t.csv", "--set", "training.learning_rate=1e300"),
    "misspelt": ("predit",),
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

    monkeypatch.setattr("tacit.pipeline.job.Plan.make", make)
    rude("fit", "t.csv", code=1)

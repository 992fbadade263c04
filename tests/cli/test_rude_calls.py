"""Wrong calls of the command: one readable line, exit code 2, nothing written."""

import os

import pytest

from tacit.cli import main
from tacit.graph.memory import size_in_words
from tacit.pipeline.choices import REPLICAS
from tacit.pipeline.plan import NUMBER_BYTES

TABLE = "time,a,b,c\n" + "".join(f"{t},{t * 7 % 5},{t * t % 7},{(t * 3 + t // 4) % 6}\n" for t in range(40))
ANYTHING = "x" * 5000


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """Call the command in a folder with a table, and return the line that refuses it."""
    (tmp_path / "t.csv").write_text(TABLE)
    monkeypatch.chdir(tmp_path)

    def call(*arguments, code=2):
        before = sorted(os.listdir(tmp_path))
        with pytest.raises(SystemExit) as caught:
            main([*map(str, arguments), "--quiet"])
        printed = capsys.readouterr()
        assert caught.value.code == code, printed.err
        assert printed.out == ""
        assert printed.err.startswith("tacit: ")
        assert printed.err.count("\n") == 1
        assert printed.err[:-1].isprintable()
        assert len(printed.err) < 310
        assert sorted(os.listdir(tmp_path)) == before
        return printed.err.removeprefix("tacit: ").strip()

    return call


def test_what_is_typed_is_shown_without_control_characters_and_not_at_length(refused):
    assert "unknown key 'a b\\x1b[31m' in [data]" in refused("fit", "t.csv", "--set", "data.a\nb\x1b[31m=1")
    line = refused("fit", "t.csv", "--set", f"{ANYTHING}.key=1")
    assert line.startswith("unknown key 'xxx")
    assert line.endswith("known are assessment, data, graph, model, observation, predictor, training")


def test_bytes_that_are_no_text(refused):
    assert refused("fit", "t.csv", "--out", "run\udcff").startswith("arguments must be text in UTF-8, got 'run\\udcff'")


@pytest.mark.parametrize(
    "arguments",
    [("fit", ANYTHING), ("fit", "t.csv", "--out", ANYTHING), ("predict", ANYTHING, "t.csv"), ("report", ANYTHING)],
)
def test_names_that_no_file_can_have(refused, arguments):
    assert "File name too long" in refused(*arguments)


@pytest.mark.parametrize("seed", ["-1", "1.5", "x", "9" * 32, "9" * 5000])
def test_seeds_that_are_none(refused, seed):
    assert "must be an integer of at " in refused("fit", "t.csv", f"--seed={seed}")


def test_sizes_beyond_any_memory(refused):
    """Every two graphs are compared, at each of 3 nodes, for each of 26 training pairs, in each replica."""
    line = refused("fit", "t.csv", "--window", "2", "--set", f"model.num_graphs={10**400}")
    assert f"requires about {size_in_words(NUMBER_BYTES * 26 * 10**800 * 3 * REPLICAS)} of memory" in line
    assert "num_graphs" in line


def test_more_graphs_than_can_be_compared(refused):
    assert "num_graphs in [model]" in refused("fit", "t.csv", "--set", "model.num_graphs=400000")


@pytest.mark.parametrize(
    "choice", ["training.epochs=1000000000", "predictor.layers=1000000000", "training.learning_rate=1e300"]
)
def test_numbers_that_nobody_can_wait_for(refused, choice):
    assert "input should be less than or equal to" in refused("fit", "t.csv", "--set", choice)


def test_memory_that_runs_out_after_all(refused, monkeypatch):
    for error in (MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9")):
        monkeypatch.setattr("tacit.pipeline.job.Plan.make", raising(error))
        assert refused("fit", "t.csv", code=1) == "out of memory; lower batch_size, num_graphs, replicas or hidden"


def raising(error):
    def make(*_, **__):
        raise error

    return make


def test_data_without_a_name(refused):
    assert refused("fit", "") == "DATA must be a file (.csv, .parquet, .npz) or a folder, got ''; check the path"


@pytest.mark.parametrize("option", ["--window", "--horizon", "--std-errors"])
def test_a_word_where_a_number_is_needed(refused, option):
    assert f"Invalid value for '{option}': must be an integer of at least" in refused("fit", "t.csv", option, "two")


def test_a_command_that_is_misspelt(refused):
    assert refused("predit") == "there is no command 'predit'; did you mean 'predict'?"

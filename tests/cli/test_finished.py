"""``tacit plot`` and ``tacit compare``: files, what is printed, wrong calls."""

import json

import pytest

from commands import call
from made_runs import make_run, write_directory

BEGIN = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    made = make_run(5, evidence=True, errors=True, truth=True)
    return write_directory(made, tmp_path_factory.mktemp("runs") / "run")


@pytest.mark.parametrize(
    ("kind", "suffix"), [("graph", "svg"), ("matrix", "pdf"), ("calibration", "png"), ("training", "png")]
)
def test_a_plot_is_written_in_the_format_of_its_suffix(kind, suffix, run, tmp_path, capsys):
    out = tmp_path / "new" / f"plot.{suffix}"
    assert call("plot", run, kind, "--out", out, "--quiet") == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (f"{out}\n", "")
    assert out.read_bytes().startswith(BEGIN[suffix])
    first = out.read_bytes()
    assert call("plot", run, kind, "--out", out.with_name(f"again.{suffix}"), "--quiet") == 0
    assert out.with_name(f"again.{suffix}").read_bytes() == first


def test_the_default_file_is_among_the_figures_of_the_run_and_is_replaced(run, capsys):
    for _ in range(2):
        assert call("plot", run, "matrix", "--values", "effect", "--json") == 0
        assert json.loads(capsys.readouterr().out) == {"plot": str(run / "figures" / "matrix.png")}
    assert [path.name for path in (run / "figures").iterdir()] == ["matrix.png"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["plot", "nothing", "graph"],
        ["plot", "RUN", "grph"],
        ["plot", "RUN", "graph", "--out", "a.bmp"],
        ["plot", "RUN", "graph", "--out", "taken.png"],
        ["plot", "RUN", "graph", "--node", "a"],
        ["plot", "RUN", "graph", "--data", "a"],
        ["plot", "RUN", "matrix", "--values", "x"],
        ["plot", "RUN", "forecast"],
        ["plot", "RUN", "forecast", "--steps", "0"],
        ["compare", "RUN", "nothing"],
    ],
)
def test_wrong_calls_are_one_line_and_write_nothing(arguments, run, tmp_path, monkeypatch, wrong_call):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken.png").write_text("mine")
    wrong_call(*[run if word == "RUN" else word for word in arguments])
    assert [path.name for path in tmp_path.iterdir()] == ["taken.png"]
    assert (tmp_path / "taken.png").read_text() == "mine"


def test_two_runs_are_compared(run, tmp_path, capsys):
    other = write_directory(make_run(5, evidence=True, errors=True, seed=1), tmp_path / "other")
    assert call("compare", run, other) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("10 edges are listed by both")
    head = lines.index("edges:") + 1
    assert lines[head].split() == ["edge", "listed", "exists", "1", "2", "acts", "1", "2", "difference", "SE"]
    assert lines[head + 1].split()[5] == "both"
    assert any(line.split() == ["MAE", "0.1", "0.1", "+0"] for line in lines)
    assert call("compare", run, other, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert list(printed) == ["first", "second", "sentences", "edges", "scores", "nodes"]
    assert len(printed["edges"]) == 10

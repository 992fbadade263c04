"""The command as a user meets it: files, output, exit codes, wrong calls."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import load_file

from commands import call
from run_files import write_fields
from tacit.cli.options import next_free
from tacit.edges import schema
from tacit.experiments import demo as demonstration
from tacit.records.record import sealed

TINY = """
[system]
num_pairs = 300
[model]
num_graphs = 4
[training]
epochs = 2
batch_size = 32
replicas = 2
halve_after = [1]
compile = false
"""


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture
def undrawn(monkeypatch):
    """No page and no figures: they take longer than a small demo."""
    monkeypatch.setattr(demonstration, "draw_demo", lambda directory, _run: directory / "report.html")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """One finished demo that several tests look at."""
    directory = tmp_path_factory.mktemp("demo")
    (directory / "tiny.toml").write_text(TINY)
    assert call("demo", "--config", directory / "tiny.toml", "--out", directory / "out", "--quiet", "--seed", 4) == 0
    return directory / "out"


def test_run_directories_follow_the_contract(finished):
    assert sorted(path.name for path in finished.iterdir()) == ["joint", "known", "report.html"]
    for name in ("known", "joint"):
        run = finished / name
        files = {path.name for path in run.iterdir()}
        assert files == {
            "record.json", "edges.csv", "forecasts.csv", "model.safetensors", "history.jsonl", "figures", "report.html",
        }  # fmt: skip
        record = json.loads((run / "record.json").read_text())
        assert record["seed"] == 4
        assert {"config", "versions", "device", "timings", "metrics", "warnings"} <= set(record)
        assert {"train_seconds", "steps"} <= set(record["timings"])
        assert set(record["metrics"]) == {
            "edge_prob_mae", "edge_prob_max_error", "edge_prob_mae_identifiable", "point_mae", "point_mse",
            "energy_score", "distribution_loss",
        }  # fmt: skip
        assert record["timings"]["steps"] == 2 * (240 // 32)
        assert {path.suffix for path in (run / "figures").iterdir()} == {".png", ".pdf", ".svg"}


def test_edges_follow_the_model(finished):
    with (finished / "known" / "edges.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == schema.names(schema.file_columns())
    assert len(rows) == 144
    logits = load_file(finished / "known" / "model.safetensors")["graph.edge_logits"]
    for row in rows:
        expected = torch.sigmoid(logits[int(row["target"]), int(row["source"])]).item()
        assert float(row["probability"]) == pytest.approx(expected, abs=1e-6)
        assert row["std_error"] == row["low"] == row["high"] == row["bagged"] == ""
        assert row["identifiable"] in ("yes", "no")


def test_history_has_a_line_per_epoch_and_an_entry_per_replica(finished):
    lines = [json.loads(line) for line in (finished / "joint" / "history.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2]
    assert [sum(value is not None for value in line["validation_loss"]) for line in lines] == [2, 1]
    assert {"train_loss", "learning_rate", "edge_prob_mae", "seconds"} <= set(lines[0])


def test_page_holds_everything_itself(finished):
    page = (finished / "report.html").read_text()
    assert "psi known" in page
    assert "psi learned" in page
    assert page.count('<div class="plot ') == 2 * (
        1 + 1 + 3 + 3 + 3
    )  # of each run: graph, forecasts, matrices, curves, trust
    for tag in ("<script src", "<link", '<img src="http', "@import"):
        assert tag not in page


def test_report_is_drawn_from_records_alone(finished, capsys):
    page = finished / "report.html"
    before = page.read_text()
    page.unlink()
    (finished / "known" / "model.safetensors").rename(finished / "known" / "moved")
    try:
        assert call("report", finished) == 0
    finally:
        (finished / "known" / "moved").rename(finished / "known" / "model.safetensors")
    assert str(page) in capsys.readouterr().out
    assert page.read_text() == before
    assert call("report", finished / "known", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"report": str(finished / "known" / "report.html")}


def test_json_and_table(tiny, tmp_path, capsys, undrawn):
    assert call("demo", "--config", tiny, "--out", tmp_path / "a", "--json", "--method", "paper") == 0
    printed = capsys.readouterr()
    result = json.loads(printed.out)
    assert printed.err == ""
    assert set(result["runs"]) == {"known", "joint"}
    assert call("demo", "--config", tiny, "--out", tmp_path / "b") == 0
    printed = capsys.readouterr()
    for word in ("psi known", "psi learned", "paper", "optimal", "report:"):
        assert word in printed.out
    assert printed.err.splitlines()[0].endswith(" s  starting")


WRONG = [
    ("demo", "--method", "nodes"),
    ("demo", "--device", "tpu"),
    ("demo", "--device", "cuda:99"),
    ("demo", "--config", "none.toml"),
    ("dem",),
    ("report", "nowhere"),
    ("reproduce",),
    ("reproduce", "losse"),
    ("reproduce", "counterexample", "--seeds", "0"),
    ("reproduce", "counterexample", "--out", "/dev/null/x"),
    ("reproduce", "counterexample", "--data", "/dev"),
    ("reproduce", "all", "--data", "/dev"),
]


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_calls_write_nothing(arguments, tmp_path, monkeypatch, wrong_call):
    monkeypatch.chdir(tmp_path)
    wrong_call(*arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_found_before_any_work(tiny, tmp_path, monkeypatch, wrong_call):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("precious")
    before = sorted(tmp_path.rglob("*"))
    for out in ("out", "tiny.toml", "tiny.toml/sub", "/proc/nope/x", "x" * 300):
        wrong_call("demo", "--config", tiny, "--out", out)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_free_number_is_found(tmp_path):
    assert next_free(tmp_path / "runs", "demo").name == "demo-1"
    for number in (1, 2):
        (tmp_path / "runs" / f"demo-{number}").mkdir(parents=True)
    assert next_free(tmp_path / "runs", "demo").name == "demo-3"


@pytest.mark.slow
def test_default_directories_are_numbered(tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "demo-1").mkdir(parents=True)
    assert call("demo", "--config", tiny, "--quiet") == 0
    assert (tmp_path / "runs" / "demo-2" / "report.html").is_file()
    assert not list((tmp_path / "runs" / "demo-1").iterdir())


def test_reading_foreign_or_damaged_runs(finished, tmp_path, wrong_call):
    wrong_call("report", tmp_path)
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for name in ("record.json", "edges.csv", "forecasts.csv", "history.jsonl"):
        (damaged / name).write_text((finished / "known" / name).read_text())
    record = json.loads((damaged / "record.json").read_text())

    def changed(**fields):
        return sealed(json.dumps(record | {"sha256": ""} | fields)).decode()

    for name, text in (
        ("edges.csv", "source,target,probability\n0,0,0.5\n"),
        ("edges.csv", "nothing"),
        ("history.jsonl", "{}\n"),
        ("history.jsonl", "3\n"),
        ("history.jsonl", '{"epoch": 1, "train_loss": [1, 2]}\n'),
        ("record.json", '{"title": 3}'),
        ("record.json", "not json"),
        ("record.json", json.dumps(record | {"format": 9, "new": 1})),
        ("record.json", changed(metrics={})),
        ("record.json", changed(timings={})),
        ("record.json", changed(true_edge_probs=[[1.0]])),
    ):
        whole = {part: (damaged / part).read_bytes() for part in ("record.json", "edges.csv", "history.jsonl")}
        (damaged / name).write_text(text)
        if name != "record.json":
            write_fields(damaged, record | {"files": {"edges.csv": "", "history.jsonl": ""}})
        wrong_call("report", damaged)
        for part, data in whole.items():
            (damaged / part).write_bytes(data)
    assert call("report", damaged, "--quiet") == 0


def test_a_failed_write_leaves_nothing_behind(tiny, tmp_path, monkeypatch, capsys):
    import tacit.records.run

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tacit.records.run, "pack_model", full)
    assert call("demo", "--config", tiny, "--out", tmp_path / "out") == 1
    assert "No space left on device" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


OFTEN = "from tacit import cli, console; console.INTERVAL = 0.1; cli.main()"  # more lines than ten seconds would give


def test_ctrl_c_keeps_what_was_learned(tmp_path):
    """A real process, stopped while it trains: exit code 1, the run directory whole, one line says so."""
    (tmp_path / "long.toml").write_text(TINY.replace("epochs = 2", "epochs = 100000"))
    arguments = ["demo", "--config", str(tmp_path / "long.toml"), "--out", str(tmp_path / "out")]
    process = subprocess.Popen(
        [sys.executable, "-c", OFTEN, *arguments],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    heard = ""
    deadline = time.monotonic() + 120
    while "epoch" not in heard and time.monotonic() < deadline:
        heard += process.stderr.readline()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 1, errors
    assert "stopped early; partial results are in" in errors
    assert "stopped by the user after" in output
    record = json.loads((tmp_path / "out" / "known" / "record.json").read_text())
    assert record["timings"]["steps"] > 0
    assert (tmp_path / "out" / "report.html").is_file()
    assert not (tmp_path / "out" / "joint").exists()


@pytest.mark.parametrize(
    "stages",
    [
        pytest.param(("psi known: scoring",), marks=pytest.mark.slow),
        ("psi learned: scoring", "drawing the report"),
    ],
)
def test_ctrl_c_while_scoring_or_drawing_loses_nothing(stages, tiny, tmp_path, monkeypatch, capsys):
    from tacit.console import Display

    shown, stopped = Display.stage, []

    def stop(self, text):
        shown(self, text)
        if text.startswith(stages):
            stopped.append(text)
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)  # and once more, as an impatient user does

    monkeypatch.setattr(Display, "stage", stop)
    out = tmp_path / "out"
    complete = "psi known: scoring" not in stages
    assert call("demo", "--config", tiny, "--out", out) == (0 if complete else 1)
    assert len(stopped) >= len(stages)
    assert (out / "known" / "model.safetensors").is_file()
    assert (out / "report.html").is_file()
    assert (out / "joint" / "model.safetensors").is_file() == complete


def test_ctrl_c_before_anything_was_learned(tiny, tmp_path, monkeypatch, capsys):
    from tacit.console import Display

    monkeypatch.setattr(Display, "stage", lambda _self, _text: signal.raise_signal(signal.SIGINT))
    assert call("demo", "--config", tiny, "--out", tmp_path / "out") == 1
    assert "tacit: stopped by the user" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_no_command_shows_the_help(capsys):
    assert call() == 2
    printed = capsys.readouterr()
    assert "Commands:" in printed.out
    assert printed.err == ""


def test_reproduce_names_its_studies_and_runs_one(tmp_path, capsys):
    assert call("reproduce", "--list") == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in ("losses", "perturbed", "generic-gnn", "counterexample"))
    out = tmp_path / "results"
    assert call("reproduce", "counterexample", "--out", out) == 0
    shown = capsys.readouterr().out
    assert "| point MAE | flat above 1/2 | every theta from 0.51 to 1.00 |" in shown
    (out / "RESULTS.md").write_text("an older page of all studies")
    assert call("reproduce", "counterexample", "--out", out, "--json") == 0
    assert "## counterexample" in (out / "RESULTS.md").read_text()
    assert json.loads(capsys.readouterr().out)["page"] == str(out / "RESULTS.md")
    assert (out / "counterexample" / "curves.png").is_file()

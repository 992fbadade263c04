"""``tacit fit``, ``predict`` and ``evaluate`` as a user meets them: files, output, exit codes, wrong calls."""

import csv
import json
import math
import re
import signal
from importlib.metadata import PackageNotFoundError

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from commands import call
from own_files import NODES, series
from tacit.cli.answers import print_group_scores
from tacit.cli.runs import FIT_JSON
from tacit.edges import schema
from tacit.pipeline.state import PRELIMINARY

QUICK = (
    "--set", "training.epochs=2", "--set", "training.compile=false", "--set", "training.replicas=2",
    "--set", "model.num_graphs=4", "--set", "graph.evidence=none",
)  # fmt: skip
RULES = "source,target,kind,probability\nnorth,south,forbidden,\nnorth,east,required,\neast,south,prior,0.9\n"


@pytest.fixture(scope="module")
def finished(folder, tmp_path_factory):
    """One finished run that several tests look at."""
    directory = tmp_path_factory.mktemp("fit")
    (directory / "rules.csv").write_text(RULES)
    arguments = ("--window", 2, "--edges", directory / "rules.csv", "--out", directory / "run", "--seed", 3, "--quiet")
    assert call("fit", folder / "wide.csv", *arguments, *QUICK) == 0
    return directory / "run"


def test_the_run_directory_follows_the_contract(finished):
    files = {path.name for path in finished.iterdir()}
    written = {"record.json", "edges.csv", "model.safetensors", "history.jsonl", "forecasts.csv"}
    assert files == written | {"figures", "report.html"}
    record = json.loads((finished / "record.json").read_text())
    assert record["seed"] == 3
    assert record["config"]["data"]["window"] == 2
    assert {"train_seconds", "steps"} <= set(record["timings"])
    assert set(record["metrics"]) == {
        "point_mae", "point_mse", "crps", "coverage_0.5", "coverage_0.8", "coverage_0.95", "energy_score",
        "distribution_loss", "log_score",
    }  # fmt: skip
    assert {path.name for path in (finished / "figures").iterdir()} == {
        f"{name}.{suffix}" for name in ("edge_probs", "losses", "network", "ranks") for suffix in ("png", "pdf", "svg")
    }
    lines = (finished / "history.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1, 2]


def test_edges(finished):
    with (finished / "edges.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == schema.names(schema.file_columns())
    assert [(row["source"], row["target"]) for row in rows] == [(j, i) for i in NODES for j in NODES]
    probability = {(row["source"], row["target"]): row["probability"] for row in rows}
    assert probability["north", "south"] == "0"
    assert probability["north", "east"] == "1"
    assert all(probability[node, node] == "0" for node in NODES)
    assert 0 < float(probability["west", "south"]) < 1


def test_the_page(finished):
    page = (finished / "report.html").read_text()
    assert page.count('<div class="plot ') == 7  # graph, forecasts, matrix, two losses, ranks, coverage
    for words in (
        "wide.csv, value, 1 step ahead",
        "the last value",
        "ridge regression",
        "Settings chosen from the data",
    ):
        assert words in page
    for words in ("oracle", "<script src", "<link", '<img src="http'):
        assert words not in page


def test_report_draws_it_again(finished, capsys):
    before = (finished / "report.html").read_text()
    (finished / "report.html").unlink()
    (finished / "figures" / "network.png").unlink()
    assert call("report", finished) == 0
    assert (finished / "report.html").read_text() == before
    assert (finished / "figures" / "network.png").is_file()
    assert str(finished / "report.html") in capsys.readouterr().out


def test_words_for_a_person(folder, tmp_path, monkeypatch, capsys):
    """A config file, then --set over it, then options over both; directories are numbered."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.toml").write_text("[data]\nwindow = 5\nhorizon = 2\n[training]\nepochs = 9\ncompile = false\n")
    arguments = ("--config", "my.toml", "--set", "training.epochs=1", "--set", "data.window=4", "--window", 3)
    assert (
        call("fit", folder / "wide.csv", *arguments, "--set", "graph.symmetric=true", "--set", "model.num_graphs=4")
        == 0
    )
    printed = capsys.readouterr()
    for words in ("chosen: predictor = filter: ", "learned graph", "ridge regression", " acts", "report: "):
        assert words in printed.out
    assert re.match(r" +\d+ s  starting\n +(\d+ s  .*\n)*? +\d+ s  first look ", printed.err)
    assert re.search(r"^took [\d.]+ s: .*writing [\d.]+", printed.out, re.MULTILINE)
    assert printed.out.startswith(("A graph was found", "No graph found"))
    assert printed.out.index(" acts") < printed.out.index("learned graph  ") < printed.out.index("chosen: ")
    record = json.loads((tmp_path / "runs" / "wide-1" / "record.json").read_text())
    config = record["config"]
    assert (config["data"]["window"], config["data"]["horizon"], config["training"]["epochs"]) == (3, 2, 1)
    assert config["graph"]["symmetric"] is True
    assert call("fit", folder / "wide.csv", *arguments, "--json", "--symmetric", "--quick") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    result = json.loads(printed.out)
    assert result["directory"] == "runs/wide-2"
    assert set(result) == {"directory", "report", *FIT_JSON}


def test_init_writes_a_file_that_fit_takes(folder, tmp_path, capsys):
    path = tmp_path / "choices.toml"
    assert call("fit", "--init", path) == 0
    assert capsys.readouterr().out.strip() == str(path)
    assert call("fit", folder / "wide.csv", "--config", path, "--out", tmp_path / "run", "--quiet", *QUICK) == 0
    assert call("fit", "--init", path) == 2
    assert "which exists; choose another name" in capsys.readouterr().err


def test_predict_prints_or_writes(finished, folder, tmp_path, capsys):
    assert call("predict", finished, folder / "wide.csv") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    lines = printed.out.splitlines()
    assert lines[0] == "time,node,variable,mean,q2.5,q10,median,q90,q97.5,actual"
    assert lines[-1].startswith("2024-01-06 00:00:00,west,value,")
    out = tmp_path / "out.csv"
    assert call("predict", finished, folder / "wide.csv", "--out", out, "--quiet") == 0
    assert out.read_text() == printed.out
    assert capsys.readouterr().out.strip() == str(out)
    assert call("predict", finished, folder / "wide.csv", "--out", out) == 2
    assert "out must be a new file" in capsys.readouterr().err
    assert call("predict", finished, folder / "wide.csv", "--json", "--samples", 2) == 0
    printed = json.loads(capsys.readouterr().out)
    assert list(printed) == ["predictions", "notes"]  # one object, as all commands print
    rows = printed["predictions"]
    assert len(rows) == len(lines) - 1
    assert rows[-1]["time"].startswith("2024-01-06T00:00:00")
    assert {"sample_0", "sample_1"} <= set(rows[0])


def test_paths_are_printed(finished, folder, capsys):
    arguments = ("predict", finished, folder / "wide.csv", "--steps", 3)
    assert call(*arguments, "--origin", "2024-01-05 20:00", "--samples", 1) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "origin,step,time,node,variable,mean,q2.5,q10,median,q90,q97.5,actual,sample_0"
    assert len(lines) == 1 + 3 * 4
    assert lines[-1].startswith("2024-01-05 20:00:00,3,2024-01-05 23:00:00,west,value,")
    assert call(*arguments, "--every", 40, "--json") == 0
    rows = json.loads(capsys.readouterr().out)["predictions"]
    assert [len({row["origin"] for row in rows}), len(rows)] == [3, 3 * 3 * 4]


def test_many_nodes_are_shown_by_their_ends(capsys):
    scores = {f"node {number}": float(number) for number in range(12)} | {"never": math.nan}
    print_group_scores(Console(width=200), "node", {"scaled_crps": scores, "coverage_0.8": {"node 3": 0.5}})
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("by node, the 5 highest and the 5 lowest scaled CRPS of 13 (--json prints all)")
    assert [" ".join(line.split()[:2]) for line in lines[3:]] == [
        *("node 11", "node 10", "node 9", "node 8", "node 7", "node 3", "node 2", "node 1", "node 0", "never -")
    ]
    assert "50.0%" in lines[8]


def test_evaluate(finished, folder, capsys):
    assert call("evaluate", finished) == 0
    printed = capsys.readouterr().out
    assert "ridge regression" in printed
    assert "on the test part, in the units of the data" in printed
    assert "\nby node; scaled CRPS: in standard deviations" in printed
    assert "\neast  " in printed
    assert call("evaluate", finished, folder / "wide.csv", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pairs"] == 118
    assert set(found["by_node"]["crps"]) == set(NODES)
    assert call("evaluate", finished, folder / "wide.csv", "--json") == 0
    assert json.loads(capsys.readouterr().out) == found


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """The working directory, with a table and some files that have one thing wrong; tests/data has all the others."""
    texts = {
        "ok.csv": "time,a,b,c\n" + "".join(f"{t},{t % 3},{t * 7 % 5},{t * t % 7}\n" for t in range(40)),
        "words.csv": "time,a,b\n0,1,2\n1,x,3\n2,4,5\n",
        "few.csv": "time,a,b\n" + "".join(f"{t},{t % 3},{t % 4}\n" for t in range(9)),
        "one.csv": "time,a\n" + "".join(f"{t},{t % 3}\n" for t in range(40)),
        "table.ods": "1",
        "loop.csv": "source,target,kind\na,a,required\n",
        "bad.toml": "[data",
        "flat.toml": "window = 3\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    np.savez(tmp_path / "pairs.npz", x=np.random.default_rng(0).normal(size=(40, 3, 1)), y=np.ones((40, 3)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


FIT = {
    "nothing": (),
    "no file": ("none.csv",),
    "no data of this name": ("beijing",),
    "no table": ("table.ods",),
    "words": ("words.csv",),
    "a window too long": ("few.csv", "--window", "9"),
    "no pair for a part": ("few.csv", "--window", "7"),
    "one node": ("one.csv",),
    "a rule that cannot be": ("ok.csv", "--edges", "loop.csv"),
    "no file of rules": ("ok.csv", "--edges", "none.csv"),
    "no config": ("ok.csv", "--config", "none.toml"),
    "a broken config": ("ok.csv", "--config", "bad.toml"),
    "a flat config": ("ok.csv", "--config", "flat.toml"),
    "window": ("ok.csv", "--window", "0"),
    "horizon": ("ok.csv", "--horizon", "x"),
    "no section": ("ok.csv", "--set", "epochs=3"),
    "no value": ("ok.csv", "--set", "training.epochs"),
    "no such key": ("ok.csv", "--set", "training.epoch=3"),
    "too small": ("ok.csv", "--set", "training.epochs=0"),
    "too long": ("ok.csv", "--set", f"training.epochs={'9' * 5000}"),
    "too deep": ("ok.csv", "--set", f"graph.forbidden={'[' * 5000}"),
    "another type": ("ok.csv", "--set", "graph.edges=3"),
    "no such kind": ("ok.csv", "--set", "predictor.kind=gru"),
    "targets": ("ok.csv", "--set", "data.targets=z"),
    "covariates": ("ok.csv", "--set", "data.covariates=z"),
    "separator": ("ok.csv", "--set", "data.separator=:"),
    "fractions": ("ok.csv", "--set", "data.train_fraction=0.95"),
    "no coordinates": ("ok.csv", "--set", "graph.k_nearest=2"),
    "device": ("ok.csv", "--device", "tpu"),
    "out exists": ("ok.csv", "--out", "ok.csv"),
    "out is here": ("ok.csv", "--out", "."),
    "misspelt": ("ok.csv", "--sed", "1"),
    "a setting as an option": ("ok.csv", "--epochs", "10"),
    "another setting": ("ok.csv", "--bootstrap-replicas", "10"),
    "pairs have no window": ("pairs.npz", "--window", "3"),
    "built-in data": ("beijing-air", "--set", "data.layout=wide"),
}
OTHERS = {
    "no run": ("predict", "nowhere", "ok.csv"),
    "other nodes": ("predict", "RUN", "ok.csv"),
    "pairs": ("predict", "RUN", "pairs.npz"),
    "suffix": ("predict", "RUN", "WIDE", "--out", "a.xlsx"),
    "samples": ("predict", "RUN", "WIDE", "--samples", "-1"),
    "no data": ("predict", "RUN"),
    "no settings": ("predict", "RUN", "WIDE", "--epochs", "10"),
    "every": ("predict", "RUN", "WIDE", "--every", "4"),
    "steps": ("predict", "RUN", "WIDE", "--steps", "0"),
    "origin": ("predict", "RUN", "WIDE", "--steps", "2", "--origin", "2030-01-01"),
    "evaluate: other nodes": ("evaluate", "RUN", "beijing-air"),
    "evaluate: no run": ("evaluate", "."),
}


@pytest.mark.parametrize("name", [*FIT, *OTHERS])
def test_wrong_calls_write_and_touch_nothing(name, broken, finished, folder, wrong_call):
    names = {"RUN": finished, "WIDE": folder / "wide.csv"}
    before = {path.name: path.read_bytes() for path in broken.iterdir()}
    line = wrong_call(*(("fit", *FIT[name]) if name in FIT else (names.get(word, word) for word in OTHERS[name])))
    assert ("--set" in line) == (name in ("no section", "no value", "a setting as an option", "another setting"))
    assert {path.name: path.read_bytes() for path in broken.iterdir()} == before


def test_ctrl_c_keeps_what_was_learned(folder, tmp_path, monkeypatch, capsys):
    from tacit.console import Display

    shown = Display.step

    def stop(self, progress):
        shown(self, progress)
        if progress.step == 4:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Display, "step", stop)
    out = tmp_path / "out"
    assert call("fit", folder / "wide.csv", "--window", 2, "--out", out, *QUICK, "--set", "training.epochs=5000") == 1
    assert f"stopped early; partial results are in {out}" in capsys.readouterr().err
    assert json.loads((out / "record.json").read_text())["answer"][0] == PRELIMINARY
    assert not (out / "report.html").exists()  # drawing takes seconds
    assert call("report", out) == 0
    assert call("predict", out, folder / "wide.csv", "--out", tmp_path / "a.csv") == 0
    assert len(pd.read_csv(tmp_path / "a.csv")) == 4 * 119


def test_a_failed_write_leaves_only_what_it_takes_to_go_on(folder, tmp_path, monkeypatch, capsys):
    import tacit.records.run

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tacit.records.run, "pack_model", full)
    assert call("fit", folder / "wide.csv", "--window", 2, "--out", tmp_path / "out", *QUICK) == 1
    assert f"No space left on device; resume with 'tacit fit --resume {tmp_path / 'out'}'" in capsys.readouterr().err
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"call.json", "checkpoint.safetensors"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_json_is_one_object_on_every_command(finished, folder, tmp_path, capsys):
    new = ("--window", 2, "--out", tmp_path / "run", *QUICK, "--set", "assessment.enabled=false")
    calls = [("fit", folder / "wide.csv", *new), ("predict", finished, folder / "wide.csv")]
    for words in (*calls, ("evaluate", finished), ("report", finished)):
        capsys.readouterr()
        assert call(*words, "--json") == 0
        assert isinstance(json.loads(capsys.readouterr().out), dict)


def test_times_that_start_again_are_several_series(tmp_path, capsys):
    """A panel in which every part has the same times: each is a series, and a note says so."""
    parts = [pd.DataFrame(series(40, seed), columns=NODES).assign(time=range(40)) for seed in range(6)]
    pd.concat(parts).to_csv(tmp_path / "panel.csv", index=False)
    run, quick = tmp_path / "run", (*QUICK, "--set", "assessment.enabled=false")
    assert call("fit", tmp_path / "panel.csv", "--window", 2, "--out", run, "--quiet", *quick) == 0
    record = json.loads((run / "record.json").read_text())
    assert any("series" in note for note in record["warnings"])
    capsys.readouterr()
    assert call("predict", run, tmp_path / "panel.csv") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("series,time,node,")
    assert len(lines) - 1 == 6 * 39 * 4  # every window of two rows, in none of which two series meet


def test_a_source_tree_without_installed_metadata(folder, tmp_path, monkeypatch):
    """A record has ``tacit.__version__``; it does not look for the metadata of an installation."""
    import tacit
    from tacit.records import record

    installed = record.version

    def version(name):
        if name == "tacit":
            raise PackageNotFoundError(name)
        return installed(name)

    monkeypatch.setattr(record, "version", version)
    quick = (*QUICK, "--set", "assessment.enabled=false")
    assert call("fit", folder / "wide.csv", "--window", 2, "--out", tmp_path / "run", "--quiet", *quick) == 0
    assert json.loads((tmp_path / "run" / "record.json").read_text())["versions"]["tacit"] == tacit.__version__

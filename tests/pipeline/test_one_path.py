"""The command and the estimators are two doors to one path: same data, same choices, same numbers to the last bit."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from own_files import NODES, series
from tacit import LatentGraphForecaster, LatentGraphRegressor
from tacit.cli import main
from tacit.config import AssessmentOptions, DataOptions, GraphOptions, ModelConfig, TrainingOptions

SETTINGS = {
    "training": TrainingOptions(epochs=2, replicas=2, compile=False),
    "assessment": AssessmentOptions(bootstrap_replicas=4, controls=True),
    "model": ModelConfig(num_graphs=4),
    "random_state": 3,
}
OPTIONS = ["--seed", "3", "--std-errors", "4", "--quiet"]
OPTIONS += [
    text
    for setting in (
        "training.epochs=2",
        "training.replicas=2",
        "training.compile=false",
        "assessment.controls=true",
        "model.num_graphs=4",
    )
    for text in ("--set", setting)
]


def tacit(*arguments):
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    assert end.value.code == 0


def pairs(rows=120):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 4, 2))
    y = x[:, :, 0] + (rng.random((rows, 4)) < 0.6) * x[:, [1, 2, 3, 0], 0] + 0.1 * rng.normal(size=(rows, 4))
    y[rng.random(y.shape) < 0.05] = np.nan
    return x, y


def require_same_answer(model, directory):
    """Compare what an estimator learned with a run directory: every tensor, every edge, every number of the record."""
    stored, own = load_file(directory / "model.safetensors"), model._fitted.to_parts()[1]
    assert stored.keys() == own.keys()
    for name, value in stored.items():
        assert torch.equal(value, own[name]), name
    record, ours = json.loads((directory / "record.json").read_text()), model.record_.model_dump(mode="json")
    for key in (
        "config",
        "metrics",
        "references",
        "findings",
        "goodness",
        "choices",
        "warnings",
        "preparation",
        "evidence",
        "answer",
        "node_gains",
    ):
        for part in (record, ours):  # a column names the series in a file, a level of the index in a table
            part["config"]["data"].pop("series", None)
        assert record[key] == ours[key], key
    edges = pd.read_csv(directory / "edges.csv", na_values=[""], keep_default_na=False)
    table = model.edges_.set_index(["source", "target"]).loc[list(zip(edges.source, edges.target, strict=True))]
    for column in ("exists", "probability", "std_error", "low", "high", "effect", "bagged"):
        assert [f"{value:.6g}" for value in table[column]] == [f"{value:.6g}" for value in edges[column]], column
    assert table.identifiable.tolist() == edges.identifiable.fillna("").tolist()


def test_pairs_give_one_answer_through_both_doors(tmp_path, capsys):
    x, y = pairs()
    np.savez(tmp_path / "pairs.npz", x=x, y=y, nodes=np.array(NODES))
    tacit("fit", tmp_path / "pairs.npz", "--out", tmp_path / "run", *OPTIONS)
    columns = pd.MultiIndex.from_product([NODES, ["u", "v"]])
    inputs = pd.DataFrame(x.reshape(len(x), -1), columns=columns)
    model = LatentGraphRegressor(**SETTINGS).fit(inputs, pd.DataFrame(y, columns=NODES))
    require_same_answer(model, tmp_path / "run")
    capsys.readouterr()
    tacit("predict", tmp_path / "run", tmp_path / "pairs.npz", "--json")
    rows = json.loads(capsys.readouterr().out)["predictions"]
    predicted = np.array([row["mean"] for row in rows]).reshape(y.shape)
    np.testing.assert_allclose(model.predict(inputs), predicted, rtol=1e-6)
    median = np.array([row["median"] for row in rows]).reshape(y.shape)
    np.testing.assert_allclose(model.predict(inputs, point="median"), median, rtol=1e-6)


def test_a_series_gives_one_answer_through_both_doors(tmp_path, capsys):
    times = pd.date_range("2024-01-01", periods=120, freq="h")
    table = pd.DataFrame(series(), columns=NODES, index=pd.Index(times, name="time")).astype(float)
    table.iloc[5:9, 1] = np.nan
    table.to_csv(tmp_path / "levels.csv")
    rules = {"forbidden": (("west", "north"),), "density": 0.3}
    graph = ["--set", 'graph.forbidden=[["west","north"]]', "--set", "graph.density=0.3"]
    tacit("fit", tmp_path / "levels.csv", "--window", 2, "--out", tmp_path / "run", *graph, *OPTIONS)
    model = LatentGraphForecaster(window=2, graph=GraphOptions(**rules), **SETTINGS).fit(table)
    require_same_answer(model, tmp_path / "run")
    capsys.readouterr()
    tacit("predict", tmp_path / "run", tmp_path / "levels.csv", "--json")
    rows = json.loads(capsys.readouterr().out)["predictions"]
    forecast = model.predict(table)
    np.testing.assert_allclose(
        forecast.to_numpy(), np.array([row["mean"] for row in rows]).reshape(forecast.shape), rtol=1e-6
    )
    assert forecast.index[-1] == times[-1] + pd.Timedelta(hours=1)
    tacit("evaluate", tmp_path / "run", tmp_path / "levels.csv", "--json")
    scores = json.loads(capsys.readouterr().out)
    assert scores["metrics"] == pytest.approx(model.evaluate(table)["metrics"], rel=1e-9)


def test_several_series_give_one_answer_through_both_doors(tmp_path):
    frames = [pd.DataFrame(series(rows, seed), columns=NODES) for seed, rows in enumerate((40, 30, 35, 40, 50, 45))]
    table = pd.concat(dict(enumerate(frames)), names=["place", "time"])
    table.reset_index().to_csv(tmp_path / "panel.csv", index=False)
    tacit("fit", tmp_path / "panel.csv", "--series", "place", "--window", 2, "--out", tmp_path / "run", *OPTIONS)
    model = LatentGraphForecaster(window=2, **SETTINGS).fit(table)
    require_same_answer(model, tmp_path / "run")
    assert any("split by whole series" in note for note in model.notes_)
    forecast = model.predict(table)
    assert forecast.index.nlevels == 2
    assert len(forecast) == sum(len(frame) - 1 for frame in frames)  # every window of two rows, the last included


def test_a_row_s_median_does_not_depend_on_the_rows_beside_it(tmp_path, capsys):
    x, y = pairs()
    np.savez(tmp_path / "pairs.npz", x=x, y=y)
    quick = [*OPTIONS, "--set", "assessment.enabled=false"]
    quick.remove("--std-errors")
    quick.remove("4")
    tacit("fit", tmp_path / "pairs.npz", "--out", tmp_path / "run", *quick)
    found = []
    for rows in (3, 90):
        np.savez(tmp_path / "new.npz", x=x[:rows])
        capsys.readouterr()
        tacit("predict", tmp_path / "run", tmp_path / "new.npz")
        found.append(capsys.readouterr().out.splitlines())
    assert found[0] == found[1][: len(found[0])]


def test_pairs_are_shuffled_before_they_are_split_unless_told_otherwise():
    x, y = pairs()
    x[:, :, 1] = np.arange(len(x))[:, None]
    quick = {**SETTINGS, "assessment": AssessmentOptions(enabled=False)}
    means = {}
    for shuffle in (True, False):
        model = LatentGraphRegressor(data=DataOptions(shuffle=shuffle), **quick).fit(x, y)
        means[shuffle] = model.record_.preparation["input_units"]["mean"][1]
    assert means[False] == pytest.approx(np.arange(84).mean())
    assert abs(means[True] - np.arange(120).mean()) < 10

"""The lags of a fit, from the table to edges.csv, lags.csv, the terminal and the estimators."""

from contextlib import redirect_stdout

import numpy as np
import pandas as pd
import pytest

import tacit
from commands import call
from tacit.config import AssessmentOptions, DataOptions, GraphOptions, TrainingOptions
from tacit.edges import LAGS
from tacit.records import read_run
from tacit.sklearn import LatentGraphForecaster

NODES = ("a", "b", "c")


def delayed(rows=600, seed=0):
    """Values of a, b and c: a -> b at lag 3, b -> c at lag 1, the second relation negative."""
    rng = np.random.default_rng(seed)
    values = np.zeros((rows, 3))
    for step in range(3, rows):
        values[step] = 0.5 * values[step - 1] + rng.normal(size=3)
        values[step, 1] += 0.6 * values[step - 3, 0]
        values[step, 2] -= 0.6 * values[step - 1, 1]
    return pd.DataFrame(values, columns=NODES).rename_axis("step").reset_index()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lags")
    delayed().to_csv(folder / "table.csv", index=False)
    with (folder / "printed.txt").open("w") as printed, redirect_stdout(printed):
        assert call("fit", folder / "table.csv", "--quick", "--out", folder / "run") == 0
    return folder / "run"


def lags_of(table):
    """The lag of each edge that has one."""
    return {(row.source, row.target): row.lag for row in table[table.lag.notna()].itertuples()}


def test_the_dominant_lag_of_each_listed_edge(finished):
    assert lags_of(pd.read_csv(finished / "edges.csv")) == {("a", "b"): 3, ("b", "c"): 1}


def test_the_profile_of_each_kept_edge(finished):
    table = pd.read_csv(finished / LAGS)
    assert list(table.columns) == ["source", "target", "lag", "effect", "share"]
    for (source, target), rows in table.groupby(["source", "target"]):
        assert rows.lag.tolist() == list(range(1, 13))
        assert rows.share.sum() == pytest.approx(1)
        assert rows.effect.abs().idxmax() == rows.share.idxmax(), (source, target)


def test_a_run_is_read_with_its_lags_and_without_them_where_it_has_none(finished):
    lags = read_run(finished).edges.lags
    assert dict(zip(zip(lags.source, lags.target, strict=True), lags.dominant.tolist(), strict=True)) == {
        (0, 1): 3,
        (1, 2): 1,
    }


def test_changed_lags_are_refused(finished, tmp_path, refused):
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in finished.iterdir():
        if path.is_file():
            (copy / path.name).write_bytes(path.read_bytes())
    (copy / LAGS).write_text((copy / LAGS).read_text().replace("a,b,3", "a,b,4"))
    refused(read_run, copy)


def test_the_terminal_shows_the_lag(finished):
    lines = [line.split() for line in finished.with_name("printed.txt").read_text().splitlines()]
    assert ["edge", "exists", "acts", "effect", "lag"] in lines
    assert {line[2]: line[-1] for line in lines if line[1:2] == ["->"]} == {"b": "3", "c": "1"}


def test_the_newest_input_is_at_the_horizon(tmp_path):
    """Two steps ahead a -> b at lag 3 is seen, and b -> c at lag 1 only through the past of b."""
    model = LatentGraphForecaster(data=DataOptions(window=4, horizon=2), assessment=AssessmentOptions(enabled=False))
    model.fit(delayed().set_index("step"))
    assert lags_of(model.edges_)["a", "b"] == 3
    assert model.lags_.lag.min() == 2
    assert model.lags_.lag.max() == 5


def test_estimators_have_lags_also_after_a_file(tmp_path):
    quick = {"assessment": AssessmentOptions(enabled=False), "data": DataOptions(window=4)}
    model = LatentGraphForecaster(**quick).fit(delayed().set_index("step"))
    assert lags_of(model.edges_) == {("a", "b"): 3, ("b", "c"): 1}
    assert model.edge_lags_[1, 0] == 3
    assert np.isnan(model.edge_lags_[0, 1])
    model.save(tmp_path / "model")
    again = tacit.load(tmp_path / "model")
    pd.testing.assert_frame_equal(again.lags_, model.lags_)
    pd.testing.assert_frame_equal(again.edges_, model.edges_)
    short = TrainingOptions(epochs=1, replicas=1, compile=False)
    without = LatentGraphForecaster(**quick, graph=GraphOptions(symmetric=True), training=short).fit(
        delayed().set_index("step")
    )
    lag = without.edge_lags_
    np.testing.assert_array_equal(lag, lag.T)
    assert lag[1, 0] == 3


def test_pairs_without_time_have_no_lags(folder):
    inputs, targets = (np.load(folder / "pairs.npz")[name] for name in ("x", "y"))
    model = tacit.LatentGraphRegressor(assessment=AssessmentOptions(enabled=False)).fit(inputs, targets)
    assert "lag" not in model.edges_
    with pytest.raises(AttributeError, match="fit a series"):
        model.lags_  # noqa: B018


def test_an_edge_beyond_the_window_of_the_model_is_said():
    """Few edges act at lag 4 and strong autocorrelation: the form of the evidence reads fewer steps."""
    rng = np.random.default_rng(0)
    values = np.zeros((800, 6))
    for step in range(4, len(values)):
        values[step] = 0.8 * values[step - 1] + rng.normal(size=6)
        values[step, 1:5] += 0.3 * values[step - 1, :4]
        values[step, 5] += 0.2 * values[step - 4, 0]
    table = pd.DataFrame(values, columns=list("abcdef"))
    model = LatentGraphForecaster(assessment=AssessmentOptions(enabled=False)).fit(table)
    assert lags_of(model.edges_)["a", "f"] == 4
    window = model.record_.config["data"]["window"]
    said = [note for note in model.notes_ if "a -> f acts at lag 4" in note]
    assert window < 4
    assert said
    assert "--window 4" in said[0]

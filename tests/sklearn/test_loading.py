"""``tacit.load`` of a run directory: the same edges, graph and forecasts as the fit that wrote it."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

import tacit
from made_runs import make_run, write_directory
from tacit.config import AssessmentOptions
from tacit.edges import EdgeTable, edges_text
from tacit.errors import InputError
from tacit.graph import BernoulliGraph, CandidateEdges
from tacit.records import Run
from tiny_fits import random_pairs, regressor


@pytest.fixture(scope="module")
def table():
    rng, values = np.random.default_rng(0), np.zeros((220, 3))
    for row in range(1, 220):
        values[row] = 0.5 * values[row - 1] + [0.8 * values[row - 1, 1], 0, 0] + 0.3 * rng.normal(size=3)
    return pd.DataFrame(values, columns=["a", "b", "c"])


def test_a_run_of_a_series_is_a_fitted_forecaster(table, tmp_path):
    model = tacit.LatentGraphForecaster(window=1, assessment=AssessmentOptions(enabled=False), device="cpu").fit(table)
    model._fitted.write(tmp_path / "run")
    (tmp_path / "run" / "report.html").write_text("")
    loaded = tacit.load(tmp_path / "run", verbose=True)
    assert isinstance(loaded, tacit.LatentGraphForecaster)
    pd.testing.assert_frame_equal(loaded.edges_, model.edges_, rtol=1e-5, atol=1e-5)
    pd.testing.assert_frame_equal(loaded.lags_, model.lags_, rtol=1e-5, atol=1e-5)
    assert sorted(loaded.to_networkx().edges) == sorted(model.to_networkx().edges) == [("b", "a")]
    pd.testing.assert_frame_equal(loaded.predict(table), model.predict(table))
    assert (loaded.answer_, loaded.verbose, loaded._page) == (model.answer_, True, tmp_path / "run" / "report.html")
    assert clone(loaded)._config()[0].data.window == 1  # it can be fitted again with the choices of the run
    loaded.save(tmp_path / "saved")
    pd.testing.assert_frame_equal(tacit.load(tmp_path / "saved").edges_, loaded.edges_)


def test_a_run_of_pairs_is_a_fitted_regressor_with_its_history(tmp_path):
    x, y = random_pairs(60)
    model = regressor().fit(x, y)
    model._fitted.write(tmp_path / "run")
    loaded = tacit.load(tmp_path / "run")
    assert isinstance(loaded, tacit.LatentGraphRegressor)
    assert loaded.predict(x).shape == y.shape
    np.testing.assert_array_equal(loaded.sample(x, 5), model.sample(x, 5))
    assert loaded.history_ == model.history_


def test_what_is_no_run_of_a_fit_is_said(tmp_path):
    (tmp_path / "demo" / "joint").mkdir(parents=True)
    for path in (tmp_path / "demo", tmp_path / "demo" / "joint"):
        with pytest.raises(InputError, match=r"path must be a run of tacit fit, got .* of a demo, .*; read its edges"):
            tacit.load(path)
    with pytest.raises(InputError, match=r"must be a run directory, but record.json cannot be read"):
        tacit.load(tmp_path)
    write_directory(make_run(3, preparation={}), tmp_path / "other")
    with pytest.raises(InputError, match="must be a run of tacit fit, got a run of another command"):
        tacit.load(tmp_path / "other")


def test_findings_over_a_table_of_candidates_have_its_shape_again():
    candidates = CandidateEdges.from_edges(torch.tensor([1, 2, 0, 0, 1]), torch.tensor([0, 0, 1, 2, 2]), 3)
    assert candidates.used.tolist() == [[True, True], [True, False], [True, True]]
    exists = torch.tensor([[0.9, 0.01], [0.5, torch.nan], [0.3, 0.2]], dtype=torch.float64)
    varies = torch.tensor([[2, 1], [0, 0], [1, 0]], dtype=torch.uint8)
    made = make_run(3, candidates=2, evidence=True)
    record = made.record.model_copy(update={"candidates": made.record.candidates.model_copy(update={"count": 5})})
    probs = torch.tensor([[0.7, 0.0], [1.0, 0.0], [0.4, 0.6]])
    graph = BernoulliGraph(probs, candidates=candidates)
    columns = {"exists": exists, "varies": varies, "probability": probs}
    given = EdgeTable(graph.index(record.node_names), {name: graph.vector(one) for name, one in columns.items()})
    found = Run.of(record, [], {"edges.csv": edges_text(replace(given, keep=record.keep))}).edges
    torch.testing.assert_close(graph.placed(found["exists"], math.nan), exists, equal_nan=True)
    assert torch.equal(graph.placed(found["varies"]), varies)

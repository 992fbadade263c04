import copy
import math
import pickle
import pickletools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

import tacit
from made_runs import make_run, write_directory
from tacit import LatentGraphForecaster, LatentGraphRegressor
from tacit.config import AssessmentOptions
from tacit.edges import EdgeTable, edges_text
from tacit.graph import BernoulliGraph, CandidateEdges
from tacit.records import Run
from tacit.sklearn.saved import KIND
from tacit.tensor_files import Kind
from tiny_fits import OneLayer, one_layer, random_pairs, regressor


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 3)), rng.normal(size=(60, 3))


@pytest.fixture(scope="module")
def fitted(pairs):
    return regressor().fit(*pairs)


def test_a_pickle_names_this_class_and_nothing_else(fitted):
    strings, named = [], []
    for opcode, argument, _ in pickletools.genops(pickle.dumps(fitted)):
        if "UNICODE" in opcode.name:
            strings.append(argument)
        if opcode.name == "STACK_GLOBAL":
            named.append(tuple(strings[-2:]))
        assert opcode.name not in ("GLOBAL", "REDUCE", "INST", "OBJ")
    assert named == [("tacit.sklearn.regressor", "LatentGraphRegressor")]
    assert not hasattr(pickle.loads(pickle.dumps(LatentGraphRegressor())), "edge_probs_")


def test_damaged_and_foreign_files_are_refused(fitted, tmp_path, refused):
    path = tmp_path / "model.safetensors"
    refused(LatentGraphRegressor.load, tmp_path / "nothing")
    refused(fitted.save, tmp_path / "no" / "such" / "place")
    data = fitted.save(path) or path.read_bytes()
    refused(LatentGraphForecaster.load, path)
    text, tensors = KIND.unpack(data, "it")
    unfinished = {**text, "fitted": {name: part for name, part in text["fitted"].items() if name != "history"}}
    for bad in (
        b"",
        data[:100],
        pickle.dumps(3),
        data.replace(b'"kind"', b'"king"'),
        data.replace(f'"{KIND.format}"'.encode(), b'"1"'),
        data.replace(b'\\"symmetric\\"', b'\\"symmmtric\\"'),
        Kind(KIND.name, 9, "").pack({}, {}),
        KIND.pack(unfinished, tensors),
        KIND.pack(text, {name: value for name, value in tensors.items() if name != "graph.edge_logits"}),
    ):
        path.write_bytes(bad)
        assert "model.safetensors" in refused(LatentGraphRegressor.load, path)


def test_a_module_of_ones_own_is_kept_by_its_weights(pairs, tmp_path, refused):
    x, y = pairs
    model = regressor(predictor=OneLayer(1)).fit(x, y)
    pickled = pickle.loads(pickle.dumps(model))  # a pickle holds objects that were passed
    np.testing.assert_array_equal(pickled.predict(x), model.predict(x))
    np.testing.assert_array_equal(pickled.predictor.weight.detach(), [[0.5]])  # as it was passed, not as it was fitted
    model.save(tmp_path / "own")
    restored = LatentGraphRegressor.load(tmp_path / "own")
    np.testing.assert_array_equal(restored.edge_probs_, model.edge_probs_)  # needs no predictor
    assert restored.edges_.equals(model.edges_)
    refused(restored.predict, x)
    refused(clone(restored).fit, x, y)
    again = pickle.loads(pickle.dumps(restored)).set_params(predictor=OneLayer(1))
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    made = LatentGraphRegressor.load(tmp_path / "own", predictor=one_layer)
    np.testing.assert_array_equal(made.predict(x), model.predict(x))
    loaded = LatentGraphRegressor.load(tmp_path / "own", predictor=lambda in_channels, **_: OneLayer(in_channels))
    np.testing.assert_array_equal(loaded.predict(x), model.predict(x))
    refused(LatentGraphRegressor.load(tmp_path / "own", predictor=OneLayer(2)).predict, x)
    assert copy.deepcopy(model).predictor.weight is not model.predictor.weight


# ---------------------------------------------------------------- ``tacit.load`` of a run directory


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


def test_what_is_no_run_of_a_fit_is_said(tmp_path, refused):
    (tmp_path / "demo" / "joint").mkdir(parents=True)
    for path in (tmp_path / "demo", tmp_path / "demo" / "joint"):
        refused(tacit.load, path)
    refused(tacit.load, tmp_path)
    write_directory(make_run(3, preparation={}), tmp_path / "other")
    refused(tacit.load, tmp_path / "other")


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

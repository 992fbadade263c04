import copy
import pickle
import pickletools

import numpy as np
import pytest
from sklearn.base import clone

from tacit import LatentGraphForecaster, LatentGraphRegressor
from tacit.errors import InputError
from tacit.sklearn.saved import KIND
from tacit.tensor_files import Kind
from tiny_fits import OneLayer, one_layer, regressor


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 3)), rng.normal(size=(60, 3))


@pytest.fixture(scope="module")
def fitted(pairs):
    return regressor().fit(*pairs)


def test_a_pickle_names_this_class_and_nothing_else(fitted, pairs):
    data = pickle.dumps(fitted)
    strings, named = [], []
    for opcode, argument, _ in pickletools.genops(data):
        if "UNICODE" in opcode.name:
            strings.append(argument)
        if opcode.name == "STACK_GLOBAL":
            named.append(tuple(strings[-2:]))
        assert opcode.name not in ("GLOBAL", "REDUCE", "INST", "OBJ")
    assert named == [("tacit.sklearn.regressor", "LatentGraphRegressor")]
    restored = pickle.loads(data)
    np.testing.assert_array_equal(restored.predict(pairs[0]), fitted.predict(pairs[0]))
    np.testing.assert_array_equal(restored.sample(pairs[0], 5), fitted.sample(pairs[0], 5))
    assert restored.get_params() == fitted.get_params()
    assert restored.history_ == fitted.history_
    assert (restored.replicas_, restored.best_replica_) == (fitted.replicas_, fitted.best_replica_)
    assert not hasattr(pickle.loads(pickle.dumps(LatentGraphRegressor())), "edge_probs_")


def test_save_and_load(fitted, pairs, tmp_path):
    path = tmp_path / "model.safetensors"
    fitted.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]
    np.testing.assert_array_equal(LatentGraphRegressor.load(path).predict(pairs[0]), fitted.predict(pairs[0]))
    with pytest.raises(InputError, match=r"path must be a readable file, got .*nothing"):
        LatentGraphRegressor.load(tmp_path / "nothing")
    with pytest.raises(InputError, match="path must be a file that can be written"):
        fitted.save(tmp_path / "no" / "such" / "place")
    data = path.read_bytes()
    for number, bad in enumerate(
        (b"", data[:100], pickle.dumps(3), data.replace(b'"kind"', b'"king"'), data.replace(b'"5"', b'"1"'))
    ):
        (tmp_path / f"bad{number}").write_bytes(bad)
        with pytest.raises(InputError, match=f"bad{number} (must be a saved estimator of tacit, but is|has format 1)"):
            LatentGraphRegressor.load(tmp_path / f"bad{number}")
    path.write_bytes(Kind(KIND.name, 9, "").pack({}, {}))
    with pytest.raises(
        InputError, match=r"has format 9 of tacit .*, this tacit reads format 5 of a saved estimator; use"
    ):
        LatentGraphRegressor.load(path)
    path.write_bytes(data.replace(b'\\"symmetric\\"', b'\\"symmmtric\\"'))
    with pytest.raises(InputError, match=r"is a damaged saved estimator \(the checksum does not match\); fit"):
        LatentGraphRegressor.load(path)
    text, tensors = KIND.unpack(data, "it")
    del text["fitted"]["history"]
    path.write_bytes(KIND.pack(text, tensors))
    with pytest.raises(InputError, match=r"is a damaged saved estimator \('history'\); fit and save it again"):
        LatentGraphRegressor.load(path)
    text, tensors = KIND.unpack(data, "it")
    path.write_bytes(KIND.pack(text, {name: value for name, value in tensors.items() if name != "graph.edge_logits"}))
    with pytest.raises(InputError, match=r"is a damaged saved estimator \(must have graph.edge_logits of shape"):
        LatentGraphRegressor.load(path)
    path.write_bytes(data)
    with pytest.raises(
        InputError, match=r"is a saved LatentGraphRegressor, and .* cannot load it; use LatentGraphRegressor.load"
    ):
        LatentGraphForecaster.load(path)


def test_a_module_of_ones_own_is_kept_by_its_weights(pairs, tmp_path):
    x, y = pairs
    model = regressor(predictor=OneLayer(1)).fit(x, y)
    pickled = pickle.loads(pickle.dumps(model))  # a pickle holds objects that were passed
    np.testing.assert_array_equal(pickled.predict(x), model.predict(x))
    np.testing.assert_array_equal(pickled.predictor.weight.detach(), [[0.5]])  # as it was passed, not as it was fitted
    model.save(tmp_path / "own")
    restored = LatentGraphRegressor.load(tmp_path / "own")
    np.testing.assert_array_equal(restored.edge_probs_, model.edge_probs_)  # needs no predictor
    assert restored.edges_.equals(model.edges_)
    with pytest.raises(InputError, match="only the weights of the predictor are stored; pass the module with set_par"):
        restored.predict(x)
    with pytest.raises(InputError, match="predictor was a OneLayer, which is not stored; pass it with set_params"):
        clone(restored).fit(x, y)
    again = pickle.loads(pickle.dumps(restored)).set_params(predictor=OneLayer(1))
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    made = LatentGraphRegressor.load(tmp_path / "own", predictor=one_layer)
    np.testing.assert_array_equal(made.predict(x), model.predict(x))
    loaded = LatentGraphRegressor.load(tmp_path / "own", predictor=lambda in_channels, **_: OneLayer(in_channels))
    np.testing.assert_array_equal(loaded.predict(x), model.predict(x))
    with pytest.raises(InputError, match="predictor must have the structure of the fitted one"):
        LatentGraphRegressor.load(tmp_path / "own", predictor=OneLayer(2)).predict(x)
    assert copy.deepcopy(model).predictor.weight is not model.predictor.weight

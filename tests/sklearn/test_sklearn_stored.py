import copy
import pickle
import pickletools

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

from tacit import LatentGraphRegressor
from tacit.errors import InputError
from tacit.sklearn.saved import KIND
from tacit.tensor_files import Kind

TINY = {"noise": "none", "replicas": 1, "epochs": 1, "batch_size": 16, "num_graphs": 4, "point_graphs": 8}


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 3)), rng.normal(size=(60, 3))


@pytest.fixture(scope="module")
def fitted(pairs):
    return LatentGraphRegressor(**TINY).fit(*pairs)


class OneLayer(nn.Module):
    """A module of the user's own."""

    def __init__(self, in_channels):
        super().__init__()
        self.weight = nn.Parameter(torch.full((in_channels, 1), 0.5))

    def forward(self, inputs, graphs):
        return inputs[:, None] @ self.weight + graphs @ (inputs[:, None] @ self.weight)


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
    with pytest.raises(InputError, match=r"path needs a readable file, got .*nothing"):
        LatentGraphRegressor.load(tmp_path / "nothing")
    with pytest.raises(InputError, match="path needs a place that can be written"):
        fitted.save(tmp_path / "no" / "such" / "place")
    data = path.read_bytes()
    for number, bad in enumerate(
        (b"", data[:100], pickle.dumps(3), data.replace(b'"kind"', b'"king"'), data.replace(b'"2"', b'"1"'))
    ):
        (tmp_path / f"bad{number}").write_bytes(bad)
        with pytest.raises(InputError, match=f"bad{number} needs to be a saved LatentGraphRegressor of tacit, but is"):
            LatentGraphRegressor.load(tmp_path / f"bad{number}")
    path.write_bytes(Kind(KIND.name, 9, "").pack({}, {}))
    with pytest.raises(InputError, match=r"is format 9 of tacit .*, this tacit reads a saved .* up to format 2; use"):
        LatentGraphRegressor.load(path)
    path.write_bytes(data.replace(b'\\"symmetric\\"', b'\\"symmmtric\\"'))
    with pytest.raises(InputError, match=r"is a damaged saved LatentGraphRegressor \(the checksum does not fit\); fit"):
        LatentGraphRegressor.load(path)
    text, tensors = KIND.unpack(data, "it")
    del text["fitted"]["symmetric"]
    path.write_bytes(KIND.pack(text, tensors))
    with pytest.raises(InputError, match=r"holds a damaged estimator \('symmetric'\); fit and save it again"):
        LatentGraphRegressor.load(path)


def test_a_module_of_ones_own_is_kept_by_its_weights(pairs, tmp_path):
    x, y = pairs
    model = LatentGraphRegressor(**TINY, predictor=OneLayer(1)).fit(x, y)
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.edge_probs_, model.edge_probs_)  # needs no predictor
    with pytest.raises(InputError, match="predictor was a OneLayer, of which only the weights are stored; pass it"):
        restored.predict(x)
    with pytest.raises(InputError, match="predictor was a OneLayer, which is not stored; pass it with set_params"):
        clone(restored).fit(x, y)
    again = pickle.loads(pickle.dumps(restored)).set_params(predictor=OneLayer(1))
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    model.save(tmp_path / "own")
    loaded = LatentGraphRegressor.load(tmp_path / "own", predictor=lambda in_channels, **_: OneLayer(in_channels))
    np.testing.assert_array_equal(loaded.predict(x), model.predict(x))
    with pytest.raises(InputError, match="predictor needs to be like the one that was fitted"):
        LatentGraphRegressor.load(tmp_path / "own", predictor=OneLayer(2)).predict(x)
    assert copy.deepcopy(model).predictor.weight is not model.predictor.weight

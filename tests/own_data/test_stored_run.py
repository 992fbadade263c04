"""A finished run as a model again; what is damaged or foreign is named in one line."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from own_files import learn
from tacit.errors import InputError
from tacit.own_data.stored import StoredRun

CPU = torch.device("cpu")


@pytest.fixture
def copy(plain, tmp_path):
    """A copy to damage."""
    return shutil.copytree(plain[0].directory, tmp_path / "copy")


def refused(directory):
    with pytest.raises(InputError) as caught:
        StoredRun.read(directory, CPU)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_read_back_is_what_was_learned(plain):
    _, result = plain
    stored = StoredRun.read(plain[0].directory, CPU)
    learned = result.model.state_dict()
    assert all(torch.equal(value, learned[name]) for name, value in stored.model.state_dict().items())
    assert not stored.model.training


def test_a_damaged_model(copy):
    model = copy / "model.safetensors"
    whole, tensors = model.read_bytes(), load_file(model)
    end = "); run tacit fit again"
    for damage, message in (
        (whole[: len(whole) // 2], f"{copy} holds a damaged run (model.safetensors: "),
        (whole[:3], "(model.safetensors: "),
        (b"", "(model.safetensors: "),
        (b"not tensors" * 100, "(model.safetensors: "),
    ):
        model.write_bytes(damage)
        text = refused(copy)
        assert message in text
        assert text.endswith(end)
    model.unlink()
    assert "(model.safetensors: No such file or directory)" in refused(copy)
    save_file({name: value for name, value in tensors.items() if "own" not in name}, model)
    assert "model.safetensors needs predictor.predictor.own of shape (4, 2, 1), got none" in refused(copy)
    save_file({**tensors, "graph.fixed": tensors["graph.fixed"][:2].contiguous()}, model)
    assert "model.safetensors needs graph.fixed of shape (4, 4), got (2, 4)" in refused(copy)


def test_a_model_of_another_run(copy, folder, tmp_path):
    other, _ = learn(folder / "wide.csv", tmp_path / "other", predictor={"kind": "recurrent", "hidden": 3})
    shutil.copy(other.directory / "model.safetensors", copy / "model.safetensors")
    assert "model.safetensors needs predictor." in refused(copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record["preparation"].pop("scaling"), "(record.json: lacks 'scaling')"),
        (lambda record: record["preparation"].pop("kind"), "(record.json: lacks 'kind')"),
        (lambda record: record["preparation"]["windows"].update(window=0), "window needs to be a whole number"),
        (lambda record: record["preparation"]["scaling"].pop("mean"), "a stored scaling needs exactly"),
        (lambda record: record["preparation"]["scaling"].update(mean=[1.0]), "(record.json: "),
        (lambda record: record["preparation"].update(windows=3), "(record.json: "),
        (lambda record: record["config"].update(extra=1), "(record.json: extra: Extra inputs are not permitted)"),
        (lambda record: record["config"]["predictor"].update(kind="tree"), "(record.json: predictor.kind: "),
        (lambda record: record.update(preparation={}), "is a run of tacit demo or another job"),
        (lambda record: record.update(format=9), "has format 9, this tacit reads format 1"),
        (lambda record: record.pop("seed"), "holds a damaged run (seed: Field required)"),
    ],
)
def test_a_damaged_record(change, message, copy):
    record = json.loads((copy / "record.json").read_text())
    change(record)
    (copy / "record.json").write_text(json.dumps(record))
    assert message in refused(copy)


def test_what_is_no_run(tmp_path, copy):
    assert "needs to be a run directory, but record.json cannot be read" in refused(tmp_path)
    (copy / "record.json").write_bytes(b"\xff\xfe")
    assert "holds a damaged run" in refused(copy)
    (copy / "record.json").write_text("[]")
    assert "holds a damaged run" in refused(copy)

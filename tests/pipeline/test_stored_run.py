"""A finished run as a model again; what is damaged or foreign is named in one line."""

import shutil

import pytest
import torch

from own_files import learn
from run_files import read_fields, reseal, write_fields
from tacit.errors import InputError
from tacit.pipeline import Fitted
from tacit.records.record import KIND

CPU = torch.device("cpu")


@pytest.fixture
def copy(plain, tmp_path):
    """A copy to damage."""
    return shutil.copytree(plain[0].directory, tmp_path / "copy")


def refused(directory):
    with pytest.raises(InputError) as caught:
        Fitted.read(directory, CPU)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_read_back_is_what_was_learned(plain):
    _, result = plain
    stored = Fitted.read(plain[0].directory, CPU)
    learned = result.model.state_dict()
    assert all(torch.equal(value, learned[name]) for name, value in stored.model.state_dict().items())
    assert not stored.model.training


def test_a_damaged_model(copy):
    """What lies behind the checksum is looked at too."""
    model = copy / "model.safetensors"
    text, tensors = KIND.unpack(model.read_bytes(), "it")

    def changed(tensors):
        model.write_bytes(KIND.pack(text, tensors))
        reseal(copy)
        message = refused(copy)
        assert message.startswith(f"{copy} is a damaged run (model.safetensors: must have ")
        assert message.endswith("; run tacit fit again")
        return message

    own = tensors["predictor.own"]
    assert "own of shape (4, 2, 1) and type float32, got none" in changed(
        {name: value for name, value in tensors.items() if "own" not in name}
    )
    assert "graph.fixed of shape (4, 4) and type bool, got shape (2, 4)" in changed(
        tensors | {"graph.fixed": tensors["graph.fixed"][:2]}
    )
    assert "own of shape (4, 2, 1) and type float32, got shape (4, 2, 1) and type complex64" in changed(
        tensors | {"predictor.own": own.to(torch.complex64)}
    )
    model.write_bytes(KIND.pack(text, tensors | {"graph.candidates.used": tensors["graph.fixed"]}))
    reseal(copy)
    assert "is a damaged run (model.safetensors: lacks 'graph.candidates.row_node')" in refused(copy)


def test_a_model_of_another_run(copy, folder, tmp_path):
    other, _ = learn(folder / "wide.csv", tmp_path / "other", predictor={"kind": "recurrent", "hidden": 3})
    shutil.copy(other.directory / "model.safetensors", copy / "model.safetensors")
    assert "model.safetensors is not the model of this run: its checksum differs" in refused(copy)
    reseal(copy)
    assert "model.safetensors: must have predictor." in refused(copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record["preparation"].pop("scaling"), "(record.json: lacks 'scaling')"),
        (lambda record: record["preparation"].pop("kind"), "(record.json: lacks 'kind')"),
        (lambda record: record["preparation"]["windows"].update(window=0), "window must be an integer"),
        (lambda record: record["preparation"]["scaling"].pop("mean"), "a stored scaling must have exactly"),
        (lambda record: record["preparation"]["scaling"].update(mean=[1.0]), "(record.json: "),
        (lambda record: record["preparation"].update(windows=3), "(record.json: "),
        (lambda record: record["config"].update(extra=1), "(record.json: extra: Extra inputs are not permitted)"),
        (lambda record: record["config"]["predictor"].update(kind="tree"), "(record.json: predictor.kind: "),
        (lambda record: record.update(preparation={}), "must be a run of tacit fit, got a run of another command"),
        (lambda record: record.update(format=9), "has format 9, this tacit reads format 5"),
        (lambda record: record.pop("seed"), "is a damaged run (seed: Field required)"),
    ],
)
def test_a_damaged_record(change, message, copy):
    record = read_fields(copy)
    change(record)
    write_fields(copy, record)
    assert message in refused(copy)


def test_what_is_no_run(tmp_path, copy):
    assert "must be a run directory, but record.json cannot be read" in refused(tmp_path)
    (copy / "record.json").write_bytes(b"\xff\xfe")
    assert "is a damaged run" in refused(copy)
    (copy / "record.json").write_text("[]")
    assert "is a damaged run" in refused(copy)

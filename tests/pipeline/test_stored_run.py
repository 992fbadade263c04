"""A finished run as a model again; what is damaged or foreign is named in one line."""

import shutil

import pytest
import torch

from own_files import learn
from run_files import read_fields, reseal, write_fields
from tacit.pipeline import Fitted
from tacit.records.record import KIND

CPU = torch.device("cpu")


@pytest.fixture
def copy(plain, tmp_path):
    """A copy to damage."""
    return shutil.copytree(plain[0].directory, tmp_path / "copy")


def test_what_is_read_back_is_what_was_learned(plain):
    _, result = plain
    stored = Fitted.read(plain[0].directory, CPU)
    learned = result.model.state_dict()
    assert all(torch.equal(value, learned[name]) for name, value in stored.model.state_dict().items())
    assert not stored.model.training


def test_a_damaged_model(copy, refused):
    """What lies behind the checksum is looked at too."""
    model = copy / "model.safetensors"
    text, tensors = KIND.unpack(model.read_bytes(), "it")
    own, fixed = tensors["predictor.own"], tensors["graph.fixed"]
    for changed in (
        {name: value for name, value in tensors.items() if "own" not in name},
        tensors | {"graph.fixed": fixed[:2]},
        tensors | {"predictor.own": own.to(torch.complex64)},
        tensors | {"graph.candidates.used": fixed},
    ):
        model.write_bytes(KIND.pack(text, changed))
        reseal(copy)
        refused(Fitted.read, copy, CPU)


def test_a_model_of_another_run(copy, folder, tmp_path, refused):
    other, _ = learn(folder / "wide.csv", tmp_path / "other", predictor={"kind": "recurrent", "hidden": 3})
    shutil.copy(other.directory / "model.safetensors", copy / "model.safetensors")
    refused(Fitted.read, copy, CPU)
    reseal(copy)
    refused(Fitted.read, copy, CPU)


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["preparation"].pop("scaling"),
        lambda record: record["preparation"].pop("kind"),
        lambda record: record["preparation"]["windows"].update(window=0),
        lambda record: record["preparation"]["scaling"].pop("mean"),
        lambda record: record["preparation"]["scaling"].update(mean=[1.0]),
        lambda record: record["preparation"].update(windows=3),
        lambda record: record["config"].update(extra=1),
        lambda record: record["config"]["predictor"].update(kind="tree"),
        lambda record: record.update(preparation={}),
        lambda record: record.update(format=9),
        lambda record: record.pop("seed"),
    ],
)
def test_a_damaged_record(change, copy, refused):
    record = read_fields(copy)
    change(record)
    write_fields(copy, record)
    refused(Fitted.read, copy, CPU)


def test_what_is_no_run(tmp_path, copy, refused):
    refused(Fitted.read, tmp_path, CPU)
    for data in (b"\xff\xfe", b"[]"):
        (copy / "record.json").write_bytes(data)
        refused(Fitted.read, copy, CPU)

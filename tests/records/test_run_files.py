"""Files of a run that are cut, changed, foreign, mixed, newer or missing are refused; so are those of other formats."""

import os
import pickle
import shutil

import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import torch

from commands import call
from made_runs import make_run, write_directory
from own_files import learn
from run_files import read_fields, reseal, write_fields
from tacit import LatentGraphRegressor
from tacit.edges import schema
from tacit.errors import InputError
from tacit.pipeline import Fitted
from tacit.records import read_record, read_run
from tacit.records.record import KIND, sealed
from tacit.tensor_files import Kind

CPU = torch.device("cpu")
FILES = ("record.json", "model.safetensors", "edges.csv", "forecasts.csv", "history.jsonl")


class Trap:
    """Leaves a mark where it is unpickled."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return os.mkdir, (self.mark,)


def read_all(directory):
    read_run(directory)
    Fitted.read(directory, CPU)


@pytest.mark.parametrize("name", FILES)
def test_cut_off_or_with_a_changed_byte_nothing_is_read(name, copy):
    """Every place of a small file, many of a large one; all but a digit of the format speak of damage."""
    path = copy / name
    data = path.read_bytes()
    read_all(copy)
    places = range(0, len(data), max(1, len(data) // 150))
    for damaged in (
        *(data[:place] for place in places),
        *(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :] for place in places),
        data + b"\n",
        data.replace(b"\n", b"\r\n") if name != "model.safetensors" else data[::-1],
    ):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=rf"{copy}.*again") as caught:
            read_all(copy)
        assert len(str(caught.value)) < 400
        assert "\n" not in str(caught.value)
    path.write_bytes(data)
    read_all(copy)


def test_an_edited_table_of_edges_is_said_and_the_run_still_predicts(copy, written, wrong_call, capsys):
    edges = copy / "edges.csv"
    edges.write_text(edges.read_text().replace("north,east,", "north,east,1", 1))
    wrong_call("report", copy)
    assert not (copy / "report.html").exists()
    assert call("predict", copy, written[1], "--quiet") == 0
    assert "mean" in capsys.readouterr().out


def test_files_of_two_runs_are_not_mixed(copy, written, tmp_path, refused, wrong_call):
    other = learn(written[1], tmp_path / "other", training={"epochs": 2})[0].directory
    for name in ("model.safetensors", "edges.csv", "history.jsonl"):
        mixed = shutil.copytree(copy, tmp_path / f"mixed-{name}")
        shutil.copy(other / name, mixed / name)
        refused(read_all, mixed)
    shutil.copy(other / "record.json", copy / "record.json")
    wrong_call("predict", copy, written[1])
    wrong_call("report", copy)


def foreign(folder):
    """Files that are none of ours, by what they are."""
    folder.mkdir()
    tensors = {"weight": torch.zeros(2)}
    safetensors.torch.save_file(tensors, folder / "plain", {"format": "pt"})
    torch.save(tensors, folder / "torch")
    (folder / "pickle").write_bytes(pickle.dumps(Trap(folder / "sprung")))
    (folder / "image").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4)
    (folder / "empty").write_bytes(b"")
    (folder / "huge").write_bytes((2**63).to_bytes(8, "little") + b"{}")
    (folder / "deep").write_bytes((10**5).to_bytes(8, "little") + b"[" * 10**5)
    (folder / "words").write_bytes(_file(b'{"__metadata__": {"kind": ["model"], "format": {}}}'))
    (folder / "lists").write_bytes(
        _file(b'{"__metadata__": {"kind": "model", "format": "3", "text": [], "sha256": 1}}')
    )
    (folder / "types").write_bytes(
        _file(b'{"__metadata__": {"kind": "model", "format": "3", "text": "{}", "sha256": ""}, "a": {"dtype": "Q7"}}')
    )
    (folder / "checkpoint").write_bytes(Kind("checkpoint", 1, "").pack({}, {}))
    return sorted(folder.iterdir())


def _file(header):
    return len(header).to_bytes(8, "little") + header


def test_a_foreign_model_is_refused_and_no_code_runs(copy, tmp_path, refused, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in foreign(tmp_path / "foreign"):
        shutil.copy(path, copy / "model.safetensors")
        refused(Fitted.read, copy, CPU)
        refused(LatentGraphRegressor.load, shutil.copy(path, "it"))
    assert not (tmp_path / "foreign" / "sprung").exists()
    pickle.loads((tmp_path / "foreign" / "pickle").read_bytes())  # it would have
    assert (tmp_path / "foreign" / "sprung").exists()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("what", ["missing", "directory", "pipe", "device"])
def test_what_is_no_file_is_refused_at_once(what, name, copy, wrong_call, written):
    path = copy / name
    path.unlink()
    if what == "directory":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "device":
        path.symlink_to("/dev/zero")
    line = wrong_call("predict", copy, written[1]) if name == "model.safetensors" else wrong_call("report", copy)
    assert name in line


@pytest.mark.parametrize("format", [6, 4, 0, -1, "2", None, True, 2.5])
def test_a_record_of_another_format_or_none(format, copy, refused):
    write_fields(copy, read_fields(copy) | {"format": format, "more": 1})
    refused(read_record, copy)


def test_a_model_of_a_newer_format(copy, refused):
    (copy / "model.safetensors").write_bytes(Kind("model", 4, "").pack({}, {}))
    reseal(copy)
    refused(Fitted.read, copy, CPU)


@pytest.mark.parametrize("text", ["NaN", "[" * 10**5, "3", "null", '{"format": 5, "sha256": ""}', '{"format": 5}'])
def test_what_is_no_record(text, copy, refused):
    (copy / "record.json").write_text(text)
    refused(read_record, copy)


def test_numbers_that_are_none_are_refused(copy, refused):
    model = copy / "model.safetensors"
    text, tensors = KIND.unpack(model.read_bytes(), "it")

    def changed(name, place, value):
        values = tensors[name].clone()
        values.flatten()[place] = value
        model.write_bytes(KIND.pack(text, tensors | {name: values}))
        reseal(copy)

    for name, value in (("predictor.own", torch.nan), ("predictor.own", -torch.inf), ("graph.edge_logits", torch.nan)):
        changed(name, 1, value)
        assert name in refused(Fitted.read, copy, CPU)
    changed("graph.edge_logits", 1, -torch.inf)  # an edge that is never there has this logit
    assert Fitted.read(copy, CPU).model.graph.edge_probs[0, 1] == 0


@pytest.mark.parametrize("probability", ["nan", "inf", "-0.1", "1.5", "", "high"])
def test_a_probability_that_is_none(probability, copy, refused):
    lines = (copy / "edges.csv").read_text().splitlines()
    cells = lines[2].split(",")
    cells[3] = probability
    (copy / "edges.csv").write_text("\n".join([*lines[:2], ",".join(cells), *lines[3:]]) + "\n")
    reseal(copy)  # so that no checksum notices it
    refused(read_run, copy)


def test_the_checksum_of_a_record_can_be_made_with_common_tools(copy, tmp_path):
    """As the documentation says it."""
    import re
    import subprocess

    found = re.search(r'"sha256": "([0-9a-f]{64})"', (copy / "record.json").read_text()).group(1)
    command = """sed 's/"sha256": "[0-9a-f]*"/"sha256": ""/' record.json | sha256sum"""
    made = subprocess.run(command, shell=True, cwd=copy, capture_output=True, text=True, check=True).stdout
    assert made.split()[0] == found
    listed = read_fields(copy)["files"]
    assert set(listed) == set(FILES) - {"record.json"}
    made = subprocess.run(["sha256sum", *listed], cwd=copy, capture_output=True, text=True, check=True).stdout
    assert {line.split()[1]: line.split()[0] for line in made.splitlines()} == listed


def test_a_text_without_a_place_for_its_checksum():
    with pytest.raises(ValueError, match="must have a place for its checksum"):
        sealed("{}")


@pytest.mark.parametrize("candidates", [None, 4])
def test_what_exists_is_read_as_it_was_written(candidates, tmp_path, refused):
    """Edges that are not kept have no probability, error nor interval, and a second writing changes nothing."""
    made = make_run(7, evidence=True, errors=candidates is None, flags=candidates is None, candidates=candidates)
    directory = write_directory(made, tmp_path / "run")
    read = read_run(directory)
    pd.testing.assert_frame_equal(read.edges.frame(), made.edges.frame())
    assert (read.record.answer, read.record.node_gains) == (made.record.answer, made.record.node_gains)
    text = (directory / "edges.csv").read_text()
    assert write_directory(read, tmp_path / "again").joinpath("edges.csv").read_text() == text
    pd.testing.assert_frame_equal(read_run(tmp_path / "again").edges.frame(), read.edges.frame())
    if candidates is None:
        assert text.splitlines()[0] == ",".join(schema.names(schema.file_columns()))
        exists = read.edges.matrix("exists")
        for name in ("probability", "std_error", "low", "high"):
            assert np.array_equal(np.isnan(read.edges.matrix(name)), exists < 0.1)
        assert 0 < (exists < 0.1).sum() < exists.size
    rows = [line.split(",") for line in text.splitlines()]
    kept = next(row for row in rows[1:] if float(row[rows[0].index("exists")]) > 0.5)
    kept[rows[0].index("probability")] = ""
    (directory / "edges.csv").write_text("\n".join(",".join(row) for row in rows) + "\n")
    reseal(directory)
    refused(read_run, directory)

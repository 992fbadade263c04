"""Files of a run that are cut, changed, foreign, mixed, newer or missing are refused; so are those of other formats."""

import os
import pickle
import shutil

import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import torch

from made_runs import make_run, write_directory
from own_files import learn
from run_files import read_fields, reseal, write_fields
from tacit import LatentGraphRegressor
from tacit.cli import main
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


def one_line(error):
    assert "\n" not in str(error.value)
    return str(error.value)


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
        with pytest.raises(InputError) as caught:
            read_all(copy)
        line = one_line(caught)
        assert str(copy) in line
        assert "again" in line
        assert len(line) < 400
    path.write_bytes(data)
    read_all(copy)


def test_an_edited_table_of_edges_is_said_and_the_run_still_predicts(copy, written, refused, capsys):
    edges = copy / "edges.csv"
    edges.write_text(edges.read_text().replace("north,east,", "north,east,1", 1))
    assert refused("report", copy) == (
        f"{edges} has changed since the run wrote it (its checksum does not match); restore it and change a copy, or "
        "run the command again"
    )
    assert not (copy / "report.html").exists()
    with pytest.raises(SystemExit) as caught:
        main(["predict", str(copy), str(written[1]), "--quiet"])
    assert caught.value.code == 0
    assert "mean" in capsys.readouterr().out


def test_files_of_two_runs_are_not_mixed(copy, written, tmp_path, refused):
    other = learn(written[1], tmp_path / "other", training={"epochs": 2})[0].directory
    for name, message in (
        ("model.safetensors", "is not the model of this run: its checksum differs from that in record.json"),
        ("edges.csv", "has changed since the run wrote it"),
        ("history.jsonl", "has changed since the run wrote it"),
    ):
        mixed = shutil.copytree(copy, tmp_path / f"mixed-{name}")
        shutil.copy(other / name, mixed / name)
        with pytest.raises(InputError) as caught:
            read_all(mixed)
        assert one_line(caught).startswith(f"{mixed / name} {message}")
    shutil.copy(other / "record.json", copy / "record.json")
    assert "is not the model of this run" in refused("predict", copy, written[1])
    assert "has changed since the run wrote it" in refused("report", copy)


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


def test_a_foreign_model_is_refused_and_no_code_runs(copy, written, tmp_path, refused, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = copy / "model.safetensors"
    for path in foreign(tmp_path / "foreign"):
        shutil.copy(path, model)
        line = refused("predict", copy, written[1])
        assert line.startswith(f"{model} "), path.name
        assert line.endswith("put back the file that the run wrote, or run the command again")
        with pytest.raises(InputError, match=r"it (must be|is) .*; fit and save it again$"):
            LatentGraphRegressor.load(shutil.copy(path, "it"))
    assert not (tmp_path / "foreign" / "sprung").exists()
    pickle.loads((tmp_path / "foreign" / "pickle").read_bytes())  # it would have
    assert (tmp_path / "foreign" / "sprung").exists()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("what", ["missing", "directory", "pipe", "device"])
def test_what_is_no_file_is_refused_at_once(what, name, copy, refused, written):
    path = copy / name
    path.unlink()
    if what == "directory":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "device":
        path.symlink_to("/dev/zero")
    reason = {"missing": "No such file or directory", "directory": "Is a directory"}.get(what, "Not a regular file")
    line = refused("predict", copy, written[1]) if name == "model.safetensors" else refused("report", copy)
    assert f"({reason})" in line
    assert name in line


def test_newer_formats(copy, written, refused):
    fields = read_fields(copy)
    write_fields(copy, fields | {"format": 6, "more": 1})
    assert refused("report", copy) == (
        f"{copy} has format 6, this tacit reads format 5; use the version that wrote it, or run the command again"
    )
    write_fields(copy, fields)
    (copy / "model.safetensors").write_bytes(Kind("model", 4, "").pack({}, {}))
    reseal(copy)
    line = refused("predict", copy, written[1])
    assert (
        "model.safetensors has format 4 of tacit 0.1.0, this tacit reads format 3 of a model; use the version" in line
    )


@pytest.mark.parametrize("format", [0, -1, "2", None, True, 2.5])
def test_a_record_without_a_format(format, copy):
    write_fields(copy, read_fields(copy) | {"format": format})
    with pytest.raises(InputError, match=r"is a damaged run \(record.json has no format\)"):
        read_record(copy)


def test_a_record_of_an_older_format_is_refused(copy):
    write_fields(copy, read_fields(copy) | {"format": 4})
    with pytest.raises(InputError, match=r"has format 4, this tacit reads format 5; use the version that wrote it"):
        read_record(copy)


@pytest.mark.parametrize("text", ["NaN", "[" * 10**5, "3", "null", '{"format": 5, "sha256": ""}', '{"format": 5}'])
def test_what_is_no_record(text, copy):
    (copy / "record.json").write_text(text)
    with pytest.raises(InputError) as caught:
        read_record(copy)
    assert "record.json" in one_line(caught) or "is a damaged run" in one_line(caught)


def test_numbers_that_are_none_are_refused(copy):
    model = copy / "model.safetensors"
    text, tensors = KIND.unpack(model.read_bytes(), "it")
    own, logits = (tensors[name] for name in ("predictor.own", "graph.edge_logits"))
    end = "put back the file that the run wrote, or run the command again"
    for name, values, value, message in (
        ("predictor.own", own, torch.nan, "got NaN in predictor.own"),
        ("predictor.own", own, -torch.inf, "got infinity in predictor.own"),
        ("graph.edge_logits", logits, torch.nan, "got NaN in graph.edge_logits"),
    ):
        changed = values.clone()
        changed.flatten()[1] = value
        model.write_bytes(KIND.pack(text, tensors | {name: changed}))
        reseal(copy)
        with pytest.raises(InputError) as caught:
            Fitted.read(copy, CPU)
        assert one_line(caught) == f"{model} must be finite, {message}; {end}"
    certain = logits.clone()
    certain[0, 1] = -torch.inf  # an edge that is never there has this logit
    model.write_bytes(KIND.pack(text, tensors | {"graph.edge_logits": certain}))
    reseal(copy)
    assert Fitted.read(copy, CPU).model.graph.edge_probs[0, 1] == 0


@pytest.mark.parametrize("probability", ["nan", "inf", "-0.1", "1.5", "", "high"])
def test_a_probability_that_is_none(probability, copy):
    run = copy
    lines = (run / "edges.csv").read_text().splitlines()
    cells = lines[2].split(",")
    cells[3] = probability
    (run / "edges.csv").write_text("\n".join([*lines[:2], ",".join(cells), *lines[3:]]) + "\n")
    reseal(run)  # so that no checksum notices it
    with pytest.raises(InputError, match=r"is a damaged run \(.*\); run the command again"):
        read_run(run)


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
def test_what_exists_is_read_as_it_was_written(candidates, tmp_path):
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
    with pytest.raises(InputError, match=r"is a damaged run \(.*\); run the command again"):
        read_run(directory)

"""Options that choose columns: a fit, and new data read by what the run remembers; wrong calls."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

from commands import call
from own_files import NODES, learn, plan_of, quick, series
from tacit.config import DataOptions
from tacit.pipeline import Fitted, Source, evaluate, forecast_table, read_new, read_sources, read_table
from tacit.pipeline.job import Request, files_read

CPU = torch.device("cpu")


def messy(rows=60, first=0):
    """A table with a decimal comma, an index, day-first dates, text, a constant and an empty column."""
    values = pd.DataFrame(series(90)[first : first + rows], columns=NODES).round(3)
    days = pd.date_range("2021-03-01", periods=90)[first : first + rows]
    values.insert(0, "Datum", days.strftime("%d.%m.%Y"))
    values.insert(1, "city", "Lugano")
    return values.assign(id=7, broken=np.nan)


def fit(source, folder, **sections):
    learn(source, folder / "run", **sections)
    return Fitted.read(folder / "run", CPU)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("messy")
    messy().to_csv(folder / "messy.csv", sep=";", decimal=",")
    return fit(folder / "messy.csv", folder, data={"decimal": ",", "window": 2})


def test_the_run_remembers_how_its_table_was_read(run):
    assert run.nodes == NODES
    options = run.config.data
    assert (options.time, options.dayfirst, options.drop) == ("Datum", True, ("city", "id", "broken"))
    said = "left out: the column without a name (index of rows), 'city' (text), 'id' (constant), 'broken' (empty)"
    assert said in run.record.warnings


def test_new_rows_are_read_alike(run, tmp_path, refused):
    new = messy(8, first=61)  # May: every date could be read both ways
    new = new.assign(id=range(8), city=range(8))  # what training left out may be anything
    new.to_csv(tmp_path / "new.csv", sep=";", decimal=",")
    source = read_new(run, [str(tmp_path / "new.csv")])
    assert source.content.nodes == NODES
    assert source.content.times[0].astype("datetime64[D]").astype(str) == "2021-05-01"
    assert len(forecast_table(run, source)) == 7 * 4
    assert evaluate(run, source)["pairs"] == 6
    new.assign(north="high").to_csv(tmp_path / "bad.csv", sep=";", decimal=",")
    refused(read_new, run, [str(tmp_path / "bad.csv")])
    new[["Datum", *NODES]].to_csv(tmp_path / "less.csv", sep=";", decimal=",", index=False)
    assert read_new(run, [str(tmp_path / "less.csv")]).content.notes == ()


def test_rows_without_times_stay_so(tmp_path):
    pd.DataFrame(series(60), columns=NODES).to_csv(tmp_path / "rows.csv", index=False)
    run = fit(tmp_path / "rows.csv", tmp_path, data={"window": 1})
    assert run.config.data.time is False
    rising = pd.DataFrame({"north": [1, 2, 3], "east": [5, 4, 6], "south": [-20, 3, 5], "west": [3, 4, 3]})
    rising.to_csv(tmp_path / "new.csv", index=False)  # the first column alone would pass for times
    assert read_new(run, [str(tmp_path / "new.csv")]).content.nodes == NODES


def test_the_same_from_files_and_tables(tmp_path, refused):
    parts = [messy(40), messy(40, first=40).drop(columns="id")]
    for number, part in enumerate(parts):
        part.to_csv(tmp_path / f"{number}.csv", index=False)
    files = [str(tmp_path / f"{number}.csv") for number in range(2)]
    for options in (DataOptions(), DataOptions(drop=("west", "id")), DataOptions(columns=("north", "east"))):
        one, other = read_sources(files, options).content, read_table(parts, options).content
        assert one.nodes == other.nodes == (options.columns or tuple(n for n in NODES if n not in options.drop))
        assert np.array_equal(one.values, other.values)
        assert dict(one.settled) == dict(other.settled)
        assert one.settled["dayfirst"] is True
    assert "id" in read_sources(files, DataOptions()).content.settled["drop"]
    for options in (DataOptions(drop=("wst",)), DataOptions(columns=("north", "wst"))):
        refused(read_sources, files, options)
    rows = pd.DataFrame(series(40), columns=NODES)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    refused(read_sources, [files[0], str(tmp_path / "rows.csv")], DataOptions())


def pairs(rows=80, gaps=0.1):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 3, 2)).round(4) + np.array([5, 0])
    y = (x[:, :, 0] + 0.5 * x[:, [1, 2, 0], 1] + 0.1 * rng.normal(size=(rows, 3))).round(4)
    x[:, :, 0][rng.random((rows, 3)) < gaps] = np.nan  # of the first channel only
    return x, y


def pair_table(x, y=None):
    columns = {f"x:{n}:{c}": x[:, i, k] for i, n in enumerate("abc") for k, c in enumerate("uv")}
    columns |= {} if y is None else {f"y:{n}": y[:, i] for i, n in enumerate("abc")}
    return pd.DataFrame(columns)


def test_pairs_in_tables_are_those_of_arrays(tmp_path, refused):
    x, y = pairs()
    np.savez(tmp_path / "p.npz", x=x, y=y, nodes=list("abc"))
    pair_table(x, y).to_csv(tmp_path / "p.csv", index=False)
    plain = pair_table(x).rename(columns=lambda name: name.removeprefix("x:").replace(":", "_"))
    plain.to_csv(tmp_path / "x.csv", index=False)
    pd.DataFrame(y, columns=list("abc")).to_csv(tmp_path / "y.csv", index=False)
    expected = plan_of(tmp_path / "p.npz").dataset
    two = {"y_file": str(tmp_path / "y.csv"), "separator": "_", "window": None}
    for file, data in (("p.csv", {"window": None}), ("x.csv", two)):
        found = plan_of(tmp_path / file, data=data).dataset
        assert found.nodes == ("a", "b", "c")
        assert torch.equal(found.split.train.inputs, expected.split.train.inputs)
        assert torch.equal(found.split.test.targets, expected.split.test.targets)
        assert found.notes == expected.notes
    config = quick(tmp_path / "x.csv", data=two)
    files = files_read([str(tmp_path / "x.csv")], config)
    assert set(files) == {str(tmp_path / "x.csv"), str(tmp_path / "y.csv")}
    (tmp_path / "y.csv").write_text((tmp_path / "y.csv").read_text() + "1,2,3\n")
    request = Request(
        sources=[str(tmp_path / "x.csv")], config=config.model_dump(mode="json"), seed=0, device="cpu", command="",
        folder=str(tmp_path), files=files, versions={},
    )  # fmt: skip
    refused(request.require_same_files)


def test_missing_inputs_are_filled_with_means_and_flagged(tmp_path):
    x, y = pairs()
    np.savez(tmp_path / "p.npz", x=x, y=y)
    dataset = plan_of(tmp_path / "p.npz", data={"shuffle": False}).dataset
    train = x[: len(dataset.split.train)]
    units = dataset.preparation.input_units
    made = dataset.split.train.inputs
    assert made.shape[2] == dataset.preparation.sizes.in_channels == 3  # two channels, and a flag of the first
    for pair in range(len(train)):
        for node in range(3):
            for channel in range(2):
                value = train[pair, node, channel]
                value = np.nanmean(train[:, node, channel]) if np.isnan(value) else value
                scaled = (value - np.nanmean(train[..., channel])) / np.nanstd(train[..., channel])
                assert made[pair, node, channel].item() == pytest.approx(scaled, abs=1e-5)
            assert made[pair, node, 2] == (not np.isnan(train[pair, node, 0]))
    assert units.mean[0] == pytest.approx(np.nanmean(train[..., 0]))
    words = f"{np.isnan(x).sum()} missing inputs were replaced by the mean of node and channel and flagged"
    assert any(note.startswith(words) for note in dataset.notes)


def test_missing_inputs_of_new_pairs(tmp_path, refused):
    x, y = pairs(gaps=0.0)
    pair_table(x, y).to_csv(tmp_path / "p.csv", index=False)
    complete = fit(tmp_path / "p.csv", tmp_path / "complete", data={"window": None})
    gap = x[:4].copy()
    gap[2, 1, 0] = np.nan
    pair_table(gap).to_csv(tmp_path / "new.csv", index=False)
    filled = gap.copy()
    filled[2, 1, 0] = complete.preparation.fill[1, 0]
    pair_table(filled).to_csv(tmp_path / "filled.csv", index=False)
    tables = [
        forecast_table(complete, read_new(complete, [str(tmp_path / name)])) for name in ("new.csv", "filled.csv")
    ]
    pd.testing.assert_frame_equal(*tables)
    assert tables[0].attrs["notes"] == ["1 missing inputs were replaced by the mean of node and channel"]
    x, y = pairs()
    pair_table(x, y).to_csv(tmp_path / "gaps.csv", index=False)
    run = fit(tmp_path / "gaps.csv", tmp_path / "gaps", data={"window": None})
    assert run.preparation.flags == (0,)  # read again from the record
    assert np.isfinite(forecast_table(run, read_new(run, [str(tmp_path / "new.csv")]))["mean"]).all()
    assert evaluate(run, read_new(run, [str(tmp_path / "gaps.csv")]))["pairs"] == 80
    refused(evaluate, run, read_new(run, [str(tmp_path / "new.csv")]))


def test_inputs_that_cannot_be_filled(tmp_path, refused):
    x, y = pairs()
    pair_table(x, y).to_csv(tmp_path / "p.csv", index=False)
    refused(plan_of, tmp_path / "p.csv", data={"window": None}, predictor={"kind": "hops"})
    x[:, 1, 1] = np.nan
    pair_table(x, y).to_csv(tmp_path / "p.csv", index=False)
    refused(plan_of, tmp_path / "p.csv", data={"window": None})


def test_candidates_by_correlation_do_not_see_what_was_filled(tmp_path):
    x, y = pairs()
    pair_table(x, y).to_csv(tmp_path / "p.csv", index=False)
    seen = plan_of(tmp_path / "p.csv", data={"window": None, "shuffle": False}).dataset.seen.inputs
    assert np.array_equal(np.isnan(seen.numpy()), np.isnan(x[: len(seen)]))


@pytest.fixture
def files(tmp_path):
    messy().to_csv(tmp_path / "messy.csv", sep=";", decimal=",")
    table = messy().drop(columns=["city", "id", "broken"])
    table.to_csv(tmp_path / "wide.csv", index=False)
    table.head(12).to_csv(tmp_path / "ambiguous.csv", index=False)
    tags = table.melt("Datum", var_name="tag", value_name="level")
    tags.assign(noise=tags["level"] ** 2).to_csv(tmp_path / "tags.csv", index=False)
    x, y = pairs()
    pair_table(x, y).to_csv(tmp_path / "pairs.csv", index=False)
    np.savez(tmp_path / "pairs.npz", x=x, y=y)
    return tmp_path


WRONG = [
    ("messy.csv",),
    ("wide.csv", "--decimal", ";"),
    ("wide.csv", "--columns", "north,est"),
    ("wide.csv", "--drop", "zz*"),
    ("wide.csv", "--columns", "north", "--drop", "north"),
    ("wide.csv", "--columns", ""),
    ("wide.csv", "--columns", "north"),
    ("messy.csv", "--decimal", ",", "--columns", "north,city"),
    ("messy.csv", "--decimal", ",", "--drop", "north,east,south"),
    ("ambiguous.csv",),
    ("wide.csv", "--set", "data.dayfirst=false"),
    ("tags.csv",),
    ("pairs.csv", "--window", "2"),
    ("pairs.csv", "--dayfirst"),
    ("pairs.csv", "--y-file", "wide.csv"),
    ("wide.csv", "--y-file", "none.csv"),
    ("wide.csv", "--y-file", "pairs.npz"),
    ("pairs.npz", "--y-file", "wide.csv"),
    ("pairs.npz", "--columns", "a"),
    ("beijing-air", "--drop", "a"),
]


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_calls(arguments, files, monkeypatch, wrong_call):
    monkeypatch.chdir(files)
    before = sorted(files.iterdir())
    wrong_call("fit", *arguments)
    assert sorted(files.iterdir()) == before


def test_the_options_of_the_command(files, monkeypatch, capsys, wrong_call):
    monkeypatch.chdir(files)
    short = ("--set", "training.epochs=1", "--set", "graph.evidence=none", "--quick", "--window", "2", "--json")
    options = ("--decimal", ",", "--columns", "north,east", "--columns", "s*", "--dayfirst", "--drop", "bro*,id")
    assert call("fit", "messy.csv", *options, *short) == 0
    directory = json.loads(capsys.readouterr().out)["directory"]
    data = json.loads((files / directory / "record.json").read_text())["config"]["data"]
    assert data["columns"] == ["north", "east", "s*"]
    assert data["dayfirst"] is True
    assert call("predict", directory, "messy.csv") == 0
    rows = capsys.readouterr().out.splitlines()
    assert {row.split(",")[1] for row in rows[1:]} == {"north", "east", "south"}
    wrong_call("fit", "--resume", directory, "--columns", "north")


def test_what_a_source_settled_goes_into_the_config():
    source = read_table(messy(), DataOptions())
    assert isinstance(source, Source)
    config = source.settled(quick("x.csv", data={"drop": ("note",)}))
    assert config.data.drop == ("note", "city", "id", "broken")
    assert config.data.time == "Datum"

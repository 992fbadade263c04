"""Several files and folders as several series: read, fitted, predicted, resumed; levels; wrong calls."""

import numpy as np
import pandas as pd
import pytest
import torch

from own_files import NODES, quick, series
from tacit.config import DataOptions, FitConfig, override
from tacit.pipeline import (
    Fitted,
    evaluate,
    forecast_table,
    path_table,
    read_new,
    read_sources,
    read_table,
    resolve,
    run_fit,
)
from tacit.pipeline.job import Request, files_read

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Six tables of one system, each around another level; the third lacks a node, the last is longer."""
    place = tmp_path_factory.mktemp("recordings")
    for number in range(6):
        frame = pd.DataFrame(series(60 + 10 * (number == 5), seed=number) + 300 * number, columns=NODES).round(6)
        frame.insert(0, "time", np.arange(len(frame)))
        frame.drop(columns=["west"] * (number == 2)).to_csv(place / f"day{number}.csv", index=False)
    (place / "readme.md").write_text("not a table")
    (place / "readme.txt").write_text("not a table either")
    return place


def files_of(folder):
    return sorted(str(file) for file in folder.glob("*.csv"))


def test_files_a_folder_and_a_list_of_tables_are_the_same_series(folder):
    options = DataOptions()
    one, other = (read_sources(sources, options).content for sources in ([str(folder)], files_of(folder)))
    tables = read_table([pd.read_csv(file) for file in files_of(folder)], options).content
    assert np.array_equal(one.values, other.values, equal_nan=True)
    assert np.array_equal(one.values, tables.values, equal_nan=True)
    assert one.series_names == tuple(f"day{number}" for number in range(6))
    assert one.lengths == (60, 60, 60, 60, 60, 70)
    assert np.isnan(one.parts[2].values[:, 3]).all()
    assert "1 of 6 series lack some nodes, which are missing values there: west" in one.notes


def test_files_with_several_series_each_keep_both_names(folder, tmp_path):
    both = pd.concat([pd.read_csv(file).assign(who=name) for file, name in zip(files_of(folder), "xy", strict=False)])
    both.to_csv(tmp_path / "both.csv", index=False)
    pd.read_csv(files_of(folder)[3]).assign(who="z").to_csv(tmp_path / "third.csv", index=False)
    read = read_sources([str(tmp_path / "both.csv"), str(tmp_path / "third.csv")], DataOptions(series="who"))
    assert read.content.series_names == ("both/x", "both/y", "third/z")
    assert read.name == "both.csv and third.csv"


def plan(folder, **data):
    config = override(FitConfig(), {"data": data, "assessment": {"enabled": False}})
    return resolve(read_sources([str(folder)], config.data), config, seed=0, device=CPU, command="tests")


def test_levels_that_differ_are_noticed_and_taken_out(folder):
    chosen = plan(folder)
    assert chosen.config.data.scale_by == "level"
    assert ("scale_by", "levels differ") in {(one.option, one.reason) for one in chosen.choices}
    assert chosen.dataset.preparation.scaling.by == "level"
    assert "split in time order within each of 6 series" in chosen.notes
    assert plan(folder, scale_by="all").dataset.preparation.scaling.by == "all"


def test_alike_series_share_their_scale(tmp_path):
    for number in range(6):
        frame = pd.DataFrame(series(60, seed=number), columns=NODES).assign(time=np.arange(60))
        frame.to_csv(tmp_path / f"{number}.csv", index=False)
    chosen = plan(tmp_path)
    assert chosen.config.data.scale_by == "all"
    assert "split by whole series: 4 for training, 1 for validation, 1 for the test" in chosen.notes


def test_a_run_of_a_folder_is_predicted_and_scored_in_the_units_of_each_series(folder, tmp_path):
    config = quick("x.csv", data={"scale_by": "level", "window": 2}, assessment={"enabled": False})
    run_fit([str(folder)], config, tmp_path / "run", device=CPU)
    fitted = Fitted.read(tmp_path / "run", CPU)
    table = forecast_table(fitted, read_new(fitted, [str(folder)]))
    centre = table[table["node"] == "north"].groupby("series")["mean"].mean()
    assert (centre.round(-2) == [0, 300, 600, 900, 1200, 1500]).all()
    found = evaluate(fitted, read_new(fitted, files_of(folder)[:2]))
    assert found["metrics"]["point_mae"] < 100  # of values up to 1,500
    assert found["data"] == "day0.csv and day1.csv"


def test_one_file_of_a_panel_keeps_its_level_and_may_lack_a_node(folder, tmp_path):
    config = quick("x.csv", data={"scale_by": "level", "window": 2}, assessment={"enabled": False})
    run_fit([str(folder)], config, tmp_path / "run", device=CPU)
    fitted = Fitted.read(tmp_path / "run", CPU)
    everything = forecast_table(fitted, read_new(fitted, [str(folder)]))
    for number in (2, 4):
        one = forecast_table(fitted, read_new(fitted, files_of(folder)[number : number + 1]))
        expected = everything[everything["series"] == f"day{number}"].reset_index(drop=True)
        pd.testing.assert_frame_equal(one, expected)
        assert one.loc[one["node"] == "west", "mean"].isna().all() == (number == 2)  # never observed there
        assert ("nodes without a known level are not forecast: west in day2" in one.attrs["notes"]) == (number == 2)
    path = path_table(fitted, read_new(fitted, files_of(folder)[2:3]), 3)
    assert path.loc[path["node"] == "west", "mean"].isna().all()
    assert path.loc[path["node"] != "west", "mean"].notna().all()


def test_effects_are_in_deviations_within_series(folder):
    """The scale that is chosen from the data gives the effects of the same scale asked for."""
    chosen, asked = (plan(folder, scale_by=by).evidence for by in ("auto", "level"))
    real = chosen.exists > 0.5
    assert real.any()
    effects = chosen.table["effect"][real]
    assert np.allclose(effects, asked.table["effect"][real], rtol=0.05)
    assert abs(effects).max() < 1


def test_resuming_requires_the_same_files(folder, tmp_path, refused):
    place = tmp_path / "copy"
    place.mkdir()
    for file in folder.glob("*.csv"):
        (place / file.name).write_bytes(file.read_bytes())
    files = files_read([str(place)], FitConfig())
    assert len(files) == 6
    stored = {"config": {}, "seed": 0, "device": "cpu", "command": "", "folder": "", "versions": {}}
    request = Request(sources=[str(place)], files=files, **stored)
    request.require_same_files()
    (place / "new.csv").write_text("time,north\n0,1\n")
    refused(request.require_same_files)


def test_wrong_calls(folder, tmp_path, refused):
    hourly = pd.DataFrame(series(50), columns=NODES, index=pd.date_range("2024-01-01", periods=50, freq="h"))
    daily = hourly.set_axis(pd.date_range("2024-01-01", periods=50, freq="D"))
    for name, frame in (("hourly", hourly), ("daily", daily)):
        frame.rename_axis("time").to_csv(tmp_path / f"{name}.csv")
    np.savez(tmp_path / "pairs.npz", x=np.ones((3, 2)), y=np.ones((3, 2)))
    (tmp_path / "empty").mkdir()
    first = files_of(folder)[0]
    for sources in (
        [str(tmp_path / "empty")],
        [first, first],
        [first, str(tmp_path / "pairs.npz")],
        [str(tmp_path / "hourly.csv"), str(tmp_path / "daily.csv")],
        [first, str(tmp_path / "none.csv")],
        [first, str(tmp_path / "daily.csv")],
    ):
        refused(read_sources, sources, DataOptions())

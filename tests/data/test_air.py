from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tacit.data import Windows, load_beijing_air, read_aqi36, read_coordinates

SHARED = Path(__file__).parents[2] / ".." / "shared" / "data"


def test_the_table_that_ships():
    air = load_beijing_air()
    assert air.values.shape == (35064, 12, 1)
    assert air.channels == ("PM2.5",)
    assert len(set(air.nodes)) == 12
    assert str(air.times[-1]) == "2017-02-28T23"
    assert air.coordinates is None
    missing = np.isnan(air.values).mean(axis=(0, 2))
    assert missing.min() > 0.01
    assert missing.max() < 0.03
    assert np.nanmin(air.values) == 2.0
    assert np.nanmax(air.values) == 999.0


def test_it_is_small_and_says_whose_it_is():
    folder = files("tacit.data") / "files"
    assert sum(len(entry.read_bytes()) for entry in folder.iterdir()) < 1_000_000
    text = (folder / "beijing_air.txt").read_text()
    for word in ("UCI Machine Learning Repository", "CC BY 4.0", "Chen", "Changes", "creativecommons.org"):
        assert word in text


def test_windows_over_it():
    made = Windows(12, 1).prepare(load_beijing_air())
    assert made.feature_names == ("PM2.5", "PM2.5 observed")
    assert made.split.train.inputs.shape[1:] == (12, 24)
    sizes = [len(part) for part in (made.split.train, made.split.validation, made.split.test)]
    assert sum(sizes) <= 35064 - 12
    assert made.train_times[-1] < made.validation_times[0] < made.validation_times[-1] < made.test_times[0]
    observed = made.split.train.targets[made.split.train.observed == 1]
    assert abs(float(observed.mean())) < 0.01
    assert abs(float(observed.std()) - 1) < 0.01


def test_it_is_the_source_cell_by_cell():
    folder = SHARED / "uci_beijing"
    if not folder.is_dir():
        pytest.skip("the UCI files are not here")
    air = load_beijing_air()
    for place, station in enumerate(air.nodes):
        (path,) = folder.glob(f"PRSA_Data_{station}_*.csv.gz")
        table = pd.read_csv(path)
        assert np.array_equal(table["PM2.5"].to_numpy(), air.values[:, place, 0], equal_nan=True)
    hours = pd.to_datetime(table[["year", "month", "day", "hour"]]).to_numpy()
    assert np.array_equal(hours, air.times)


def test_coordinates_from_a_file_of_ones_own():
    path = SHARED / "uci_beijing" / "derived" / "station_coords.csv"
    if not path.is_file():
        pytest.skip("the coordinates of the stations are not here")
    places = read_coordinates(path, load_beijing_air().nodes)
    assert places[1].tolist() == [40.216999, 116.23]


def test_thirty_six_stations():
    folder = SHARED / "beijing_aqi36"
    if not folder.is_dir():
        pytest.skip("the AQI-36 files are not here")
    air = read_aqi36(folder)
    assert air.values.shape == (8759, 36, 1)
    assert (air.nodes[0], air.nodes[-1], air.channels) == ("001001", "001036", ("PM2.5",))
    assert np.allclose(air.coordinates[0], [40.090679, 116.173553])
    assert (str(air.times[0]), str(air.times[-1])) == ("2014-05-01T01:00:00", "2015-04-30T23:00:00")
    assert np.isnan(air.values).mean() == pytest.approx(0.1325, abs=5e-5)
    assert np.nanmean(air.values) == pytest.approx(83.0, abs=0.05)
    assert air.notes == ()

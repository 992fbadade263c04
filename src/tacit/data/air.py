"""Air quality in Beijing: the series included in the package, and a reader for the data set of the paper."""

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np

from tacit.data.series import Series
from tacit.data.tables import read_coordinates, read_series

MISSING = -1
TENTHS = 10.0


def load_beijing_air() -> Series:
    """Return hourly PM2.5 (micrograms per cubic metre) of twelve stations in Beijing, March 2013 to February 2017.

    Data of Chen (2017), UCI Machine Learning Repository, CC BY 4.0; source and changes are described in
    ``files/beijing_air.txt`` beside the data. The data set gives no coordinates, so there are none here.

    >>> air = load_beijing_air()
    >>> air.values.shape, air.nodes[:3], str(air.times[0])
    ((35064, 12, 1), ('Aotizhongxin', 'Changping', 'Dingling'), '2013-03-01T00')
    """
    with files("tacit.data").joinpath("files", "beijing_air.npz").open("rb") as stream, np.load(stream) as stored:
        tenths, stations = stored["tenths"].T, stored["stations"]  # (time, station)
        first_hour = np.datetime64(str(stored["first_hour"]), "h")
    values = np.where(tenths == MISSING, np.nan, tenths / TENTHS)
    return Series(
        values[:, :, None],
        nodes=tuple(str(station) for station in stations),
        channels=("PM2.5",),
        times=first_hour + np.arange(len(values)),
        notes=("PM2.5 of Chen (2017), Beijing Multi-Site Air Quality, UCI Machine Learning Repository, CC BY 4.0",),
    )


def read_aqi36(folder: str | Path) -> Series:
    """Read hourly PM2.5 of 36 stations in Beijing, with latitude and longitude (Yi et al. 2016, Zheng et al. 2013).

    ``folder`` contains pm25_ground.txt and pm25_latlng.txt.
    """
    folder = Path(folder)
    series = read_series(folder / "pm25_ground.txt", layout="wide", time="datetime")
    coordinates = read_coordinates(folder / "pm25_latlng.txt", series.nodes)
    return replace(series, channels=("PM2.5",), coordinates=coordinates)

"""The series that ships with the package: the air of Beijing."""

from importlib.resources import files

import numpy as np

from tacit.data.series import Series

MISSING = -1
TENTHS = 10.0


def load_beijing_air() -> Series:
    """Return hourly PM2.5 (micrograms per cubic metre) of twelve stations in Beijing, March 2013 to February 2017.

    Data of Chen (2017), UCI Machine Learning Repository, CC BY 4.0; source and changes are told in
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

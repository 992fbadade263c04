"""Make the compact table of hourly PM2.5 that ships with the package, from the twelve files of the UCI data set.

    python tools/make_beijing_air.py FOLDER

FOLDER holds PRSA_Data_<station>_20130301-20170228.csv (or .csv.gz), twelve of them. The file written is always the
same, byte for byte.
"""

import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

FILES = Path(__file__).parents[1] / "src" / "tacit" / "data" / "files"
MISSING = -1
MIDNIGHT_1980 = (1980, 1, 1, 0, 0, 0)  # the oldest time a zip file can hold: no trace of the day it was made


def read_station(path: Path) -> tuple[str, pd.Series]:
    """Return the name of a station and its PM2.5, hour by hour."""
    table = pd.read_csv(path)
    hours = pd.to_datetime(table[["year", "month", "day", "hour"]])
    (station,) = table["station"].unique()
    return station, pd.Series(table["PM2.5"].to_numpy(), index=hours)


def main(folder: Path) -> None:
    """Write the table."""
    stations = dict(read_station(path) for path in sorted(folder.glob("PRSA_Data_*.csv*")))
    table = pd.DataFrame(stations)
    hours = pd.date_range(table.index[0], table.index[-1], freq="h")
    if table.shape != (35064, 12) or not table.index.equals(hours):
        raise SystemExit(f"{folder} needs twelve stations with the same 35,064 hours, got {table.shape}")
    tenths = table.to_numpy() * 10
    if np.nanmax(np.abs(tenths - np.rint(tenths))) > 1e-9:
        raise SystemExit("a value has more than one decimal and would be rounded")
    stored = np.where(np.isnan(tenths), MISSING, np.rint(tenths)).astype(np.int16)
    arrays = {
        "tenths": np.ascontiguousarray(stored.T),  # hours of a station side by side: they are alike, so it packs well
        "stations": np.array(list(table.columns)),
        "first_hour": np.array(str(hours[0].to_datetime64().astype("datetime64[h]"))),
    }
    path = FILES / "beijing_air.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", MIDNIGHT_1980)
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w") as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)
    print(f"{path}: {path.stat().st_size:,} bytes, {np.isnan(tenths).mean():.2%} missing")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

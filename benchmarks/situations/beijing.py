"""Do edges between the stations of Beijing depend on the season, the wind or the hour?

    python -m benchmarks.situations.beijing --data FOLDER

FOLDER holds the twelve ``PRSA_Data_*.csv.gz`` of the UCI set (Zhang et al. 2017). Targets are the logarithm of hourly
PM2.5 at twelve stations one hour ahead, with Gaussian noise: on that scale it depends less on the season. ``wind`` is
the mean wind speed over the stations, ``season`` a word. For each variable: how many edges are tested and called
varying, and the CRPS of the test part with and without the dependence. Writes
``benchmarks/results/situations/beijing.json``.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from benchmarks.situations.records import RESULTS, Figures, write

from tacit import LatentGraphForecaster
from tacit.config import DataOptions, GraphOptions

RECORD = RESULTS / "beijing.json"
SEASONS = {12: "winter", 1: "winter", 2: "winter", 3: "spring", 4: "spring", 5: "spring"}
SEASONS |= {6: "summer", 7: "summer", 8: "summer", 9: "autumn", 10: "autumn", 11: "autumn"}
SETTINGS = (("season",), ("wind",), ("hour",))


def beijing(folder: Path) -> pd.DataFrame:
    """Return hourly PM2.5 of the stations, the wind and the season."""
    parts = [pd.read_csv(path) for path in sorted(folder.glob("PRSA_Data_*.csv.gz"))]
    table = pd.concat(parts)
    table["time"] = pd.to_datetime(table[["year", "month", "day", "hour"]])
    values = np.log(table.pivot(index="time", columns="station", values="PM2.5"))
    wind = table.groupby("time")["WSPM"].mean().interpolate()
    values.insert(0, "wind", wind)
    values.insert(0, "season", [SEASONS[month] for month in values.index.month])
    return values.reset_index()


def one(table: pd.DataFrame, depends_on: tuple[str, ...], rows: int | None) -> Figures:
    """Return the figures of one variable."""
    began = time.perf_counter()
    columns = [name for name in ("season", "wind") if name not in depends_on]
    kept = table.drop(columns=columns).iloc[:rows]
    model = LatentGraphForecaster(
        random_state=0,
        data=DataOptions(window=3),
        predictor="filter",
        observation="gaussian",
        graph=GraphOptions(depends_on=depends_on),
    ).fit(kept)
    record = model._fitted.record
    edges, by = model.edges_, model.edges_by_
    varying = edges[edges["varies"] == "yes"]
    spread = by.groupby(["source", "target"])["probability"].agg(lambda one: one.max() - one.min())
    return {
        "rows": len(kept),
        "tested": int(edges["varies"].isin(["yes", "no"]).sum()),
        "varying": len(varying),
        "largest_ranges": {f"{a} -> {b}": float(r) for (a, b), r in spread.sort_values(ascending=False)[:5].items()},
        "crps": record.metrics.get("crps"),
        "references": {
            name: numbers for name, numbers in record.references.items() if name in ("constant graph", "no graph")
        },
        "answer": record.answer,
        "seconds": time.perf_counter() - began,
    }


def main() -> None:
    """Run the variables, and keep a record of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    table = beijing(options.data)
    for depends_on in SETTINGS:
        found = one(table, depends_on, options.rows)
        print(", ".join(depends_on), found, flush=True)
        write(RECORD, ", ".join(depends_on), found)


if __name__ == "__main__":
    main()

"""Known graphs of others: DREAM4, the twenty networks of gnw20, Lorenz-96 and VAR, each as series and a true graph.

The folder with ``dream4``, ``gnw20`` and ``lorenz96_var`` is ``--data``, or the environment variable
``TACIT_BENCHMARK_DATA``, or ``../shared/data``. gnw20 networks 1 to 10 may choose a method; 11 to 20 and DREAM4 are
scored once.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from benchmarks.existence.systems import System
from benchmarks.studies.known_data import KnownGraph, read_dream4, read_gold_standard, read_lorenz96_var

from tacit.data.tables import read_series
from tacit.errors import InputError

VARIABLE = "TACIT_BENCHMARK_DATA"
GNW20 = {"choose": range(1, 11), "test": range(11, 21)}
LORENZ = (
    "F_10_T_250",
    "F_10_T_500",
    "F_10_T_1000",
    "F_40_T_250",
    "F_40_T_500",
    "F_40_T_1000",
    "S_30_T_500",
    "S_30_T_1000",
)
LINEAR = ("S_30_T_500", "S_30_T_1000")
NAMES = ("dream4-10", "dream4-100", "gnw20-choose", "gnw20-test", *LORENZ, *LINEAR)


def data_folder(path: str | Path | None = None) -> Path:
    """Return the folder of the data sets, or say how to name it."""
    folder = Path(path or os.environ.get(VARIABLE) or Path(__file__).parents[3] / "shared" / "data")
    missing = [name for name in ("dream4", "gnw20", "lorenz96_var") if not (folder / name).is_dir()]
    if missing:
        raise InputError(f"--data must be a folder with {', '.join(missing)}, got {folder}; pass it or set {VARIABLE}")
    return folder


def known_systems(name: str, folder: Path) -> Iterator[tuple[str, System]]:
    """Yield the systems of one name of ``NAMES``, each with a name of its own."""
    if name.startswith("dream4-"):
        size = int(name.removeprefix("dream4-"))
        for number in range(1, 6):
            yield f"{name} {number}", _system(name, read_dream4(folder / "dream4", size, number))
    elif name.startswith("gnw20-"):
        for number in GNW20[name.removeprefix("gnw20-")]:
            yield f"gnw20 {number}", _system("gnw20", read_gnw20(folder / "gnw20", number))
    else:
        for path in sorted((folder / "lorenz96_var").glob(f"{name}_dataset_*.npz")):
            kind = "VAR" if name in LINEAR else "Lorenz-96"
            yield path.stem, _system(kind, read_lorenz96_var(path))


def read_gnw20(folder: Path, number: int) -> KnownGraph:
    """Read one network of ten genes, 1 to 20: ten experiments of 101 times each."""
    if number not in range(1, 21):
        raise InputError(f"number must be 1 to 20, got {number}; gnw20 has twenty networks")
    series = read_series(folder / f"Ecoli-{number}_timeseries.tsv.gz", layout="wide", piece=True)
    return KnownGraph(series.parts, read_gold_standard(folder / f"Ecoli-{number}_goldstandard.tsv", series.nodes))


def _system(kind: str, known: KnownGraph) -> System:
    truth = known.adjacency & ~np.eye(len(known.adjacency), dtype=bool)
    series = tuple(experiment.values[:, :, 0] for experiment in known.experiments)
    return System(kind, series, truth, truth.astype(float), nodes=known.nodes)

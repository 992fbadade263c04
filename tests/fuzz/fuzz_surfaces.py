"""The surfaces by name, and how many cases of each are judged in a short and in a long run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import fuzz_arrays
import fuzz_configs
import fuzz_edges
import fuzz_inputs
import fuzz_python
import fuzz_runs
import fuzz_tables
from fuzz_judge import Tally, judge


@dataclass(frozen=True)
class Surface:
    """What is fuzzed, in words, and with what."""

    words: str
    cases: Callable[[], Any]
    short: int
    long: int
    judge: Callable[[Any, Tally], Any] = judge


SURFACES = {
    "configs": Surface("files of choices, --set, command lines", fuzz_configs.cases, 300, 4000),
    "tables": Surface("CSV tables, wide and long, plain and gzipped", fuzz_tables.cases, 100, 800),
    "arrays": Surface(".npz and .parquet files", fuzz_arrays.cases, 150, 1500),
    "edges": Surface("edge rules and coordinates", fuzz_edges.cases, 150, 1000),
    "inputs": Surface("new data for predict and evaluate", fuzz_inputs.cases, 80, 500),
    "finished runs": Surface("run directories that were changed", fuzz_runs.changed_runs, 40, 250),
    "stopped runs": Surface(
        "checkpoints and calls that were changed, for --resume", fuzz_runs.changed_checkpoints, 120, 1500
    ),
    "python": Surface("LatentGraphRegressor in Python", fuzz_python.cases, 60, 500, fuzz_python.judge),
}

"""New data beside a run directory: files as the command reads them, or tables and arrays as an estimator does."""

import os
from pathlib import Path
from typing import Any

from tacit.pipeline import Fitted, Source, evaluate, read_new
from tacit.plots.display import RunPath, stored_run
from tacit.sklearn import load


def fitted_and_source(run: RunPath, data: Any, y: Any = None) -> tuple[Fitted, Source]:
    """Return the model of a run and the data that was passed: paths, a table, or x and y of pairs."""
    stored_run(run)  # of a demo the run has to be chosen
    estimator = load(Path(run))
    if isinstance(data, str | os.PathLike):
        data = [data]
    if isinstance(data, list | tuple) and data and all(isinstance(one, str | os.PathLike) for one in data):
        fitted = estimator._with_predictor()
        return fitted, read_new(fitted, [os.fspath(path) for path in data])
    return estimator._with_predictor(), estimator._source(data, y, reset=False)


def evaluated(run: RunPath, data: Any) -> dict[str, Any]:
    """Return the scores of a run on new data."""
    fitted, source = fitted_and_source(run, data)
    return evaluate(fitted, source, seed=fitted.record.seed)

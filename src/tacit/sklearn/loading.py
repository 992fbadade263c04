"""Read a fit back: a saved estimator of either class, or a run directory of ``tacit fit``."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from tacit.devices import find_device
from tacit.errors import InputError
from tacit.pipeline import Fitted
from tacit.records import DEMO_RUNS, is_demo
from tacit.sklearn.forecaster import LatentGraphForecaster
from tacit.sklearn.regressor import LatentGraphRegressor
from tacit.sklearn.saved import SECTIONS, Stored

PAGE = "report.html"


def load(path: str | os.PathLike[str], **objects: Any) -> LatentGraphForecaster | LatentGraphRegressor:
    """Read an estimator that ``save`` wrote, or the run directory of a finished ``tacit fit``.

    A run gives a fitted estimator: ``edges_``, ``to_networkx()``, ``predict`` and the rest are those of the command.
    Its parameters are the choices of the run, so that ``fit`` repeats it on other data. ``objects`` are parameters to
    set: those that have no stored form, such as a predictor of one's own, or ``verbose``.
    """
    if Path(path).is_dir():
        estimator = _from_run(Path(path))
        estimator.set_params(**objects)
        return estimator
    forecaster = Stored.read(Path(path)).text.get("estimator") == LatentGraphForecaster.__name__
    kind: type[LatentGraphForecaster] | type[LatentGraphRegressor] = (
        LatentGraphForecaster if forecaster else LatentGraphRegressor
    )
    return kind.load(path, **objects)


def _from_run(directory: Path) -> LatentGraphForecaster | LatentGraphRegressor:
    if is_demo(directory) or (directory.name in DEMO_RUNS and is_demo(directory.parent)):
        raise InputError(
            f"path must be a run of tacit fit, got {directory} of a demo, whose model is that of the paper; read its "
            "edges with tacit.records.read_run, or draw them with tacit.plots"
        )
    fitted = Fitted.read_all(directory, find_device("auto"))
    kind = LatentGraphForecaster if fitted.preparation.is_series else LatentGraphRegressor
    estimator = kind(**{name: getattr(fitted.config, name) for name in SECTIONS}, random_state=fitted.record.seed)
    estimator._fitted = fitted
    named = any(node != str(place) for place, node in enumerate(fitted.nodes))
    flat = fitted.preparation.sizes.out_channels == 1
    names = (
        np.array(fitted.nodes, dtype=object).tolist() if named and isinstance(estimator, LatentGraphRegressor) else None
    )
    estimator._take_extra({"feature_names": names, "channels": None, "flat": flat})
    estimator._page = directory / PAGE if (directory / PAGE).is_file() else None
    return estimator

"""Read a saved estimator of either class."""

import os
from pathlib import Path
from typing import Any

from tacit.sklearn.forecaster import LatentGraphForecaster
from tacit.sklearn.regressor import LatentGraphRegressor
from tacit.sklearn.saved import Stored


def load(path: str | os.PathLike[str], **objects: Any) -> LatentGraphForecaster | LatentGraphRegressor:
    """Read an estimator of either class that ``save`` wrote; ``objects`` as in its method ``load``."""
    forecaster = Stored.read(Path(path)).text.get("estimator") == LatentGraphForecaster.__name__
    kind: type[LatentGraphForecaster] | type[LatentGraphRegressor] = (
        LatentGraphForecaster if forecaster else LatentGraphRegressor
    )
    return kind.load(path, **objects)

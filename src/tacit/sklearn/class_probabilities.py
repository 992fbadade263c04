"""``predict_proba``: for fits in which every target is yes or no, or an ordered category."""

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.metaestimators import available_if

from tacit.pipeline import ClassForecasts

if TYPE_CHECKING:
    from tacit.sklearn.estimator import LatentGraphEstimator


def _all_classes(estimator: "LatentGraphEstimator") -> bool:
    """Return true if all targets of the fit have classes; otherwise raise an AttributeError with the reason."""
    fitted = estimator._ready()
    found = ClassForecasts.of(fitted.config, fitted.preparation)
    if found is None or not found.has.any(0).all():
        raise AttributeError(
            f"predict_proba requires targets that are yes or no, or ordered categories, got observation = "
            f"{fitted.config.observation.kind!r}; use predict, or sample"
        )
    return True


has_classes = available_if(_all_classes)


def known_classes(estimator: "LatentGraphEstimator") -> np.ndarray:
    """Return the values of the targets in increasing order."""
    _all_classes(estimator)
    fitted = estimator._ready()
    found = ClassForecasts.of(fitted.config, fitted.preparation)
    assert found is not None
    return np.array(found.classes)


def with_zeros(probs: np.ndarray, *, flat: bool) -> np.ndarray:
    """Return probabilities, 0 for a value that a node cannot have; ``flat`` removes the axis of channels."""
    found: np.ndarray = np.nan_to_num(probs.astype(np.float64))
    return found[..., 0, :] if flat else found

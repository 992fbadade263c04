"""Forecasts of several steps of a fitted model, in the units of the data: a table, point predictions, samples."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from torch import Tensor, cat

from tacit.assessment.evaluation import PointName
from tacit.errors import require_int
from tacit.pipeline.class_forecasts import ClassForecasts
from tacit.pipeline.fitted import Fitted
from tacit.pipeline.forecast_frame import LEVELS, forecast_frame, in_units, require_memory_for_table, values_in_units
from tacit.pipeline.observation_kinds import require_new_values, supports_of
from tacit.pipeline.origins import Origins, find_origins
from tacit.pipeline.paths import NUM_PATHS, drawn_paths, path_points
from tacit.pipeline.regime_columns import weight_columns
from tacit.pipeline.series_numbers import needs_series, training_series
from tacit.pipeline.sources import Source

if TYPE_CHECKING:
    import pandas as pd


def path_table(
    fitted: Fitted,
    source: Source,
    steps: int,
    *,
    origin: Any = None,
    every: int | None = None,
    seed: int = 0,
    num_samples: int = 0,
) -> "pd.DataFrame":
    """Return the columns of :func:`~tacit.pipeline.forecast_table`, preceded by ``origin`` and ``step``.

    ``origin`` is the time of the last row that a path uses, by default the last row of each series with an observed
    value. With ``every`` a path starts every ``every`` rows. Samples with the same number form one path.
    """
    require_int("num_samples", num_samples, 0)
    origins = _origins(fitted, source, steps, origin, every)
    require_memory_for_table(origins.actual.size, num_samples)
    classes = ClassForecasts.of(fitted.config, fitted.preparation)
    numbers, probs = path_points(fitted, origins, ("mean", *LEVELS), seed=seed, classes=classes)
    if num_samples:
        numbers = cat([numbers, drawn_paths(fitted, origins, num_samples, seed=seed)], -1)
    mean, values = numbers[..., :1], numbers[..., 1:]
    numbers = cat([_in_units(fitted, mean, origins, values=False), _in_units(fitted, values, origins)], -1)
    supports = supports_of(fitted.config, fitted.nodes)
    numbers, further = numbers.flatten(0, 1), {}
    if classes is not None and probs is not None:
        further = classes.columns(probs.flatten(0, 1), numbers[..., 0], supports)
    further |= weight_columns(fitted, len(numbers), numbers.shape[2])
    keys = {} if origins.series_names is None else {"series": origins.series_names.repeat(steps)}
    keys["origin"] = origins.origin_times.repeat(steps)
    keys["step"] = np.tile(np.arange(1, steps + 1), len(origins))
    keys["time"] = origins.times.reshape(-1)
    actual = origins.actual.reshape(-1, *origins.actual.shape[2:])
    return forecast_frame(fitted, keys, numbers, actual, origins.notes, further)


def path_predictions(
    fitted: Fitted,
    source: Source,
    steps: int,
    point: PointName | float = "mean",
    *,
    origin: Any = None,
    num_graphs: int = NUM_PATHS,
    seed: int = 0,
) -> tuple[Float[np.ndarray, "origin step node channel"], Origins]:
    """Return the mean, the median or a quantile of every step of every series, and the origins of the paths."""
    origins = _origins(fitted, source, steps, origin)
    found = path_points(fitted, origins, (point,), num_paths=num_graphs, seed=seed).points
    return _in_units(fitted, found, origins, values=point != "mean")[..., 0].numpy(), origins


def path_quantiles(
    fitted: Fitted, source: Source, steps: int, levels: Sequence[float], *, origin: Any = None, seed: int = 0
) -> tuple[Float[np.ndarray, "origin step node channel level"], Origins]:
    """Return quantiles of every step of every series, and where the paths start."""
    origins = _origins(fitted, source, steps, origin)
    found = path_points(fitted, origins, tuple(levels), seed=seed).points
    return _in_units(fitted, found, origins).numpy(), origins


def path_class_probabilities(
    fitted: Fitted, source: Source, steps: int, *, origin: Any = None, num_graphs: int = NUM_PATHS, seed: int = 0
) -> Float[np.ndarray, "origin step node channel class"]:
    """Return the probability of each class at every step: the mean over paths."""
    origins = _origins(fitted, source, steps, origin)
    classes = ClassForecasts.of(fitted.config, fitted.preparation)
    found = path_points(fitted, origins, ("mean",), num_paths=num_graphs, seed=seed, classes=classes).probs
    assert found is not None
    return found.numpy()


def path_samples(
    fitted: Fitted,
    source: Source,
    steps: int,
    *,
    num_samples: int,
    origin: Any = None,
    every: int | None = None,
    seed: int = 0,
) -> Float[np.ndarray, "origin sample step node channel"]:
    """Return sample paths: each has its own graphs and noise; the origins share the graphs."""
    require_int("num_samples", num_samples)
    origins = _origins(fitted, source, steps, origin, every)
    require_memory_for_table(origins.actual.size, num_samples)
    found = _in_units(fitted, drawn_paths(fitted, origins, num_samples, seed=seed), origins)
    return found.movedim(-1, 1).numpy()


def _origins(fitted: Fitted, source: Source, steps: int, origin: Any, every: int | None = None) -> Origins:
    """Return the origins of the paths; values that are not possible for the fit are refused."""
    require_new_values(fitted.config, fitted.preparation, source)
    origins = find_origins(fitted.preparation, source, steps, origin, every)
    if origins.series_names is not None and needs_series(fitted):
        series, units = training_series(fitted, origins.series_names, origins.series, origins.units, source.name)
        origins = replace(origins, series=series, units=units)
    return origins


def _in_units(
    fitted: Fitted, numbers: Float[Tensor, "origin step node channel column"], origins: Origins, *, values: bool = True
) -> Tensor:
    """Return ``values`` that a target can have, or means, in the units of the data."""
    convert = values_in_units if values else in_units
    return convert(fitted, numbers.movedim(-1, 1), origins).movedim(1, -1)

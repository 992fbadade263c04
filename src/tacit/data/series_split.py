"""Assignment of the pairs of one or several series to training, validation and test."""

import numpy as np
import torch
from jaxtyping import Int
from torch import Generator

from tacit.data.resampling import FEWEST_SERIES  # with three or four series, a part would depend on a single one

PerPair = Int[np.ndarray, " pair"]


def assign_parts(
    series_of_pair: PerPair, fractions: tuple[float, float], generator: Generator | None = None, *, whole: bool = True
) -> tuple[PerPair, tuple[str, ...]]:
    """Return the part of every pair (0 training, 1 validation, 2 test), and a note if there are several series.

    Five or more series are split by whole series, so that the test uses series that were not trained on: the first ones
    are for training, or random ones with a ``generator``. Fewer series are each cut in time order, and so are all
    series unless ``whole``.

    >>> assign_parts(np.repeat(np.arange(10), 2), (0.7, 0.1))
    (array([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 2]), ('split by whole series: 7 for training, 1 for validation, 2 for the test',))
    >>> assign_parts(np.zeros(10, dtype=int), (0.7, 0.1))
    (array([0, 0, 0, 0, 0, 0, 0, 1, 2, 2]), ())
    """  # noqa: E501
    series, which, counts = np.unique(series_of_pair, return_inverse=True, return_counts=True)
    if len(series) < FEWEST_SERIES or not whole:
        several = (f"split in time order within each of {len(series)} series",) if len(series) > 1 else ()
        return _in_time_order(counts, fractions), several
    train, validation, test = _whole_numbers(len(series), fractions)
    part_of_series = np.repeat([0, 1, 2], [train, validation, test])
    if generator is not None:
        order = torch.randperm(len(series), generator=generator).numpy()
        part_of_series = part_of_series[np.argsort(order)]
    note = f"split by whole series: {train} for training, {validation} for validation, {test} for the test"
    return part_of_series[which], (note,)


def _whole_numbers(num_series: int, fractions: tuple[float, float]) -> tuple[int, int, int]:
    """Return the number of series in each part, at least one."""
    validation = min(max(1, round(num_series * fractions[1])), num_series - 2)
    test = min(max(1, num_series - round(num_series * fractions[0]) - validation), num_series - validation - 1)
    return num_series - validation - test, validation, test


def _in_time_order(counts: Int[np.ndarray, " series"], fractions: tuple[float, float]) -> PerPair:
    """Cut the pairs of each series; rounding errors carry over to the next series, so that the totals are right."""
    ends = np.concatenate([[0], np.cumsum(counts)])
    shares = [np.diff([round(float(end * fraction)) for end in ends]) for fraction in fractions]
    train = np.minimum(shares[0], counts)
    validation = np.minimum(shares[1], counts - train)
    cut = [np.repeat([0, 1, 2], (t, v, n - t - v)) for t, v, n in zip(train, validation, counts, strict=True)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *cut])

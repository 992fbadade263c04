"""Which pairs of one or several series are for training, for validation and for the test."""

import numpy as np
import torch
from jaxtyping import Int
from torch import Generator

from tacit.data.resampling import FEWEST_SERIES  # below, one part would rest on a single series of three or four

PerPair = Int[np.ndarray, " pair"]


def assign_parts(
    series_of_pair: PerPair, fractions: tuple[float, float], generator: Generator | None = None, *, whole: bool = True
) -> tuple[PerPair, tuple[str, ...]]:
    """Return the part of every pair (0 training, 1 validation, 2 test), and a note where there are several series.

    Five series or more are split by whole series, so that the test is on series never seen: the first ones train, or
    random ones with a ``generator``. Fewer are cut in time order, each at its own place, and all are unless ``whole``;
    one series is the plain case.

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
    """Return how many series each part gets, at least one."""
    validation = min(max(1, round(num_series * fractions[1])), num_series - 2)
    test = min(max(1, num_series - round(num_series * fractions[0]) - validation), num_series - validation - 1)
    return num_series - validation - test, validation, test


def _in_time_order(counts: Int[np.ndarray, " series"], fractions: tuple[float, float]) -> PerPair:
    """Cut the pairs of each series; what rounding takes from one series the next one gets, so that sums are right."""
    ends = np.concatenate([[0], np.cumsum(counts)])
    shares = [np.diff([round(float(end * fraction)) for end in ends]) for fraction in fractions]
    train = np.minimum(shares[0], counts)
    validation = np.minimum(shares[1], counts - train)
    cut = [np.repeat([0, 1, 2], (t, v, n - t - v)) for t, v, n in zip(train, validation, counts, strict=True)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *cut])

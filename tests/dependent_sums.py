"""Covariances of sums over rows that depend on each other, written out as a loop over pairs of rows."""

import numpy as np


def slow_covariance(one, other, block, series=None, whole=False):
    """The covariance of two sums: rows nearer than ``block``, or ``whole`` series as the units."""
    count, total = len(one), 0.0
    if whole:
        names = sorted(set(series.tolist()))
        first, second = (np.array([float(v[series == name].sum()) for name in names]) for v in (one, other))
        return float(((first - first.mean()) * (second - second.mean())).sum() * len(names) / (len(names) - 1))
    for s in range(count):
        for t in range(count):
            if abs(s - t) < block and (series is None or series[s] == series[t]):
                total += (1 - abs(s - t) / block) * float(one[s] * other[t])
    return total

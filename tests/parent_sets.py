"""Slow, obvious regressions on sets of parents, and small data sets for them."""

import itertools
import math

import numpy as np
import torch

from tacit.assessment.evidence.averaging import cross_products
from tacit.data import Pairs
from tacit.predictors.series import SeriesLayout


def left_over(columns, target, weights=None):
    """The weighted residual sum of squares of numpy's least squares."""
    root = np.ones(len(target)) if weights is None else np.sqrt(weights)
    columns, target = columns * root[:, None], target * root
    return float(((target - columns @ np.linalg.lstsq(columns, target, rcond=None)[0]) ** 2).sum())


def matrix_of(parents, always, target, weights):
    """The matrix of cross products of one target, from arrays (row, column)."""
    columns, weights = (
        torch.from_numpy(np.ascontiguousarray(part.T))[None] for part in (np.hstack([parents, target, always]), weights)
    )
    return cross_products(columns, weights, always.shape[1], target.shape[1])


def g_prior_score(rows, always, columns, share_left):
    """The textbook log Bayes factor against no parent, g = rows: (1+g)^((n-q-k)/2) / (1 + g(1-R^2))^((n-q)/2)."""
    free = rows - always
    return (free - columns) / 2 * math.log(1 + rows) - free / 2 * math.log(1 + rows * share_left)


def subsets(places, most=None):
    sizes = range((len(places) if most is None else most) + 1)
    return [chosen for size in sizes for chosen in itertools.combinations(places, size)]


def inclusion(scores, prior, count):
    """P(j in M) from {set: log marginal likelihood} and prior log odds."""
    logs = {chosen: score + sum(prior[j] for j in chosen) for chosen, score in scores.items()}
    top = max(logs.values())
    weights = {chosen: math.exp(log - top) for chosen, log in logs.items()}
    total = sum(weights.values())
    return [sum(weight for chosen, weight in weights.items() if j in chosen) / total for j in range(count)]


def one_step(values, window=1):
    """Pairs of a series (time, node): the last ``window`` values and the next one."""
    values = torch.as_tensor(values)
    count = len(values) - window
    inputs = torch.stack([values[lag : lag + count] for lag in range(window)], 2)  # (pair, node, lag), oldest first
    return Pairs(inputs, values[window:, :, None]), SeriesLayout(window, 1)


def var_series(seed, weights, rows):
    rng = np.random.default_rng(seed)
    series = rng.normal(size=(rows, len(weights)))
    for now in range(1, rows):
        series[now] += weights @ series[now - 1]
    return series

"""Row weights for residuals with changing variances, against sums written out and on seeded series."""

import numpy as np
import pytest
import torch

from tacit.assessment.evidence import Candidates, ColumnForm, parent_evidence, smoothed
from tacit.assessment.evidence.candidates import build_columns
from tacit.assessment.evidence.volatility import with_volatility
from tacit.data import Series, Windows
from tacit.observation import GaussianNoise, MixedObservation, PoissonCounts
from tacit.predictors import SeriesLayout

LAYOUT = SeriesLayout(window=2, num_features=1)


def candidates(nodes):
    target, source = (1 - torch.eye(nodes)).nonzero().unbind(1)
    return Candidates.from_edges(source, target, nodes)


def pairs_of(values):
    names = tuple(f"v{node}" for node in range(values.shape[1]))
    made = Windows(window=2, fractions=(0.9, 0.05)).prepare(Series(values[:, :, None], names))
    split = made.split
    parts = [split.train, split.validation, split.test]
    return type(split.train)(*(torch.cat([getattr(part, name) for part in parts]) for name in ("inputs", "targets")))


def volatile(seed, rows=1_000, nodes=6):
    """Independent AR(1) series whose noise is large at the same times; return them and the deviations."""
    rng = np.random.default_rng(seed)
    log_size = np.zeros(rows)
    for row in range(1, rows):
        log_size[row] = 0.98 * log_size[row - 1] + 0.25 * rng.normal()
    values = rng.normal(size=(rows, nodes)) * np.exp(log_size)[:, None]
    for row in range(1, rows):
        values[row] += 0.5 * values[row - 1]
    return values, np.exp(log_size)


@pytest.mark.parametrize("series", [None, torch.tensor([0, 0, 0, 1, 1, 1, 1])])
def testsmoothed_values_are_weighted_sums_over_the_other_rows_of_a_series(series):
    values = torch.rand(7, 3, generator=torch.Generator().manual_seed(0)).double()
    whose = torch.zeros(7) if series is None else series
    expected = torch.zeros_like(values)
    for row in range(7):
        for other in range(7):
            if other != row and whose[other] == whose[row]:
                expected[row] += 2 ** (-abs(row - other) / 4.0) * values[other]
    torch.testing.assert_close(smoothed(values, 4.0, series), expected, rtol=0, atol=1e-12)


def test_rows_of_one_variance_have_equal_weights():
    values = np.random.default_rng(1).normal(size=(800, 4))
    columns = build_columns(pairs_of(values), LAYOUT, ColumnForm())
    none = torch.zeros(4, 3, dtype=torch.bool)
    assert with_volatility(columns, candidates(4), none) is columns


def test_volatile_rows_count_less():
    values, sizes = volatile(2)
    columns = build_columns(pairs_of(values), LAYOUT, ColumnForm())
    found = with_volatility(columns, candidates(6), torch.zeros(6, 5, dtype=torch.bool))
    size = torch.from_numpy(sizes[2:])
    for node in range(6):
        weights = found.row_weights[:, node]
        assert float(torch.corrcoef(torch.stack([weights.log(), -2 * size.log()]))[0, 1]) > 0.8
        assert float((weights * columns.observed[:, node]).mean()) == pytest.approx(1.0)


def test_targets_without_additive_noise_have_equal_weights():
    values = np.abs(volatile(2)[0]).round()
    columns = build_columns(pairs_of(values), LAYOUT, ColumnForm())
    none = torch.zeros(6, 5, dtype=torch.bool)
    counts = MixedObservation([(PoissonCounts(5), [0, 1, 2, 3, 4]), (GaussianNoise(1), [5])])
    found = with_volatility(columns, candidates(6), none, counts)
    assert (found.row_weights[:, :5] == 1).all()
    assert (found.row_weights[:, 5] != 1).any()
    assert with_volatility(columns, candidates(6), none, PoissonCounts(6)) is columns


def test_a_common_volatility_is_no_edge():
    """Without the weights these series have edges that are believed."""
    believed = {True: 0, False: 0}
    for seed in range(4):
        pairs = pairs_of(volatile(seed)[0])
        found = parent_evidence(pairs, LAYOUT, candidates(6), resamples=0, density=0.1)
        believed[True] += int((found.probs >= 0.5).sum())
        columns = build_columns(pairs, LAYOUT, found.form)
        gains = candidates(6).single_gains(columns)
        believed[False] += int((-500 * torch.log1p(-gains) > 0.5 * np.log(1000) + np.log(9)).sum())
    assert believed[True] == 0
    assert believed[False] > 0

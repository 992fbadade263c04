"""The test for a change of an effect, against regressions written out and on seeded series."""

import numpy as np
import pytest
import torch

from tacit.assessment.evidence import Candidates, ColumnForm, find_changes
from tacit.assessment.evidence.changes import FEWEST, _change, _rejected, _tail
from tacit.data import Pairs
from tacit.predictors import SeriesLayout

LAYOUT = SeriesLayout(window=1, num_features=1)


def series(seed, rows=1_000, *, at=None, after=0.0, before=0.5, sizes=None):
    """a -> b with one weight before row ``at`` and another after it, and a constant edge c -> b."""
    rng = np.random.default_rng(seed)
    values = np.zeros((rows, 4))
    for row in range(1, rows):
        a, b, c, d = values[row - 1]
        weight = before if at is None or row < at else after
        size = 1.0 if sizes is None else sizes[row]
        values[row] = [0.3 * a, 0.3 * b + weight * a + 0.5 * c, 0.3 * c, 0.3 * d] + size * rng.normal(size=4)
    return values


def pairs_of(values):
    values = torch.from_numpy((values - values.mean(0)) / values.std(0))[..., None]
    return Pairs(values[:-1], values[1:], times=torch.arange(1, len(values), dtype=torch.float64))


def changes_of(pairs, edges=((0, 1), (2, 1)), **options):
    """Return the first pair and the sizes of the edges, all of which are listed."""
    source, target = (torch.tensor(ends) for ends in zip(*edges, strict=True))
    candidates = Candidates.from_edges(source, target, pairs.num_nodes)
    listed = candidates.used
    first, sizes = find_changes(pairs, LAYOUT, candidates, listed, listed, ColumnForm(), **options)
    return [(int(first[i, k]), sizes[i, k]) for i in range(4) for k in range(candidates.width) if listed[i, k]]


def test_the_statistic_is_that_of_a_regression_at_each_row():
    """The score test for another effect from each row on, with its variance written out as a double sum."""
    generator = torch.Generator().manual_seed(0)
    effect, left = torch.randn(2, 160, generator=generator, dtype=torch.float64)
    effect = effect * torch.linspace(0.5, 2, 160)
    left = left - effect * (effect @ left) / effect.square().sum()
    share = effect.square().cumsum(0) / effect.square().sum()
    found = []
    for last in range(FEWEST - 1, 160 - FEWEST):
        inside = (torch.arange(160) <= last).double() - share[last]  # what a row adds to S without its mean
        found.append(float((inside * effect * left).sum() ** 2 / (inside * effect * left).square().sum()))
    noise = (effect * left).square().cumsum(0)
    expected = _tail(max(found), (noise / noise[-1])[FEWEST - 1 : 160 - FEWEST])
    p_value, *_ = _change(effect, left, torch.arange(1.0, 161), 1)
    assert p_value == pytest.approx(expected, rel=1e-9)


def test_a_constant_effect_has_few_small_p_values():
    """Of 600 seeded series 5% may have a p-value below 5%: 30, and 12 more are two standard errors."""
    generator, low = torch.Generator().manual_seed(1), 0
    for _ in range(600):
        effect, left = torch.randn(2, 400, generator=generator, dtype=torch.float64)
        left = left * torch.linspace(-2, 2, 400).exp()  # the noise grows
        left = left - effect * (effect @ left) / effect.square().sum()
        low += _change(effect, left, torch.arange(1.0, 401), 1)[0] < 0.05
    assert low <= 42


@pytest.mark.parametrize(("before", "after"), [(0.5, 0.0), (0.0, 0.5)])
def test_an_edge_that_acts_in_one_part_is_found_with_its_row(before, after):
    near = 0
    for seed in range(10):
        (row, sizes), (other, _) = changes_of(pairs_of(series(seed, at=600, before=before, after=after)))
        near += abs(row + 1 - 600) <= 30
        assert other == -1
        assert (sizes[0].abs() > sizes[1].abs()) == (before > after)
        assert sizes.abs().min() < 0.4 * sizes.abs().max()
    assert near >= 8


def test_an_edge_that_changes_its_sign_is_found():
    (row, sizes), _ = changes_of(pairs_of(series(0, at=300, before=0.5, after=-0.5)))
    assert abs(row + 1 - 300) <= 30
    assert float(sizes.prod()) < 0


def test_an_edge_that_only_gets_weaker_is_not_marked():
    assert [row for row, _ in changes_of(pairs_of(series(0, at=500, before=0.6, after=0.4)))] == [-1, -1]


@pytest.mark.parametrize("kind", ["constant", "step", "waves"])
def test_constant_edges_are_not_marked_whatever_the_noise_does(kind):
    rows = np.arange(1_000)
    sizes = {"constant": None, "step": np.where(rows < 500, 1.0, 3.0), "waves": np.exp(np.sin(rows / 40))}[kind]
    found = [row for seed in range(10) for row, _ in changes_of(pairs_of(series(seed, sizes=sizes)))]
    assert found == [-1] * 20


def test_the_order_is_that_of_time():
    pairs = pairs_of(series(0, at=600))
    shuffled = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(0))
    (row, _), _ = changes_of(pairs)
    (other, _), _ = changes_of(pairs[shuffled])
    assert int(shuffled[other]) == row


def test_too_few_rows_have_no_change():
    assert [row for row, _ in changes_of(pairs_of(series(0, rows=95, at=48)))] == [-1, -1]


def test_false_discoveries_are_controlled_over_all_tests():
    assert _rejected([]) == []
    assert _rejected([0.04]) == [True]
    assert _rejected([0.04, 0.9, 0.9]) == [False] * 3
    assert _rejected([0.001, 0.9, 0.03]) == [True, False, True]

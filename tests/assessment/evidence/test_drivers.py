"""Shared drivers: the likelihood against a dense Gaussian, the filter against its recursion, and seeded series."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from tacit.assessment.evidence import Candidates, ColumnForm, parent_evidence
from tacit.assessment.evidence.background_search import EDGE_PRIOR, search_columns
from tacit.assessment.evidence.diagnostics import DRIVER
from tacit.assessment.evidence.drivers import (
    DELAYS,
    MOST_WEIGHT,
    Drivers,
    DriverSearch,
    FactorModel,
    _parts_of,
    _posterior,
    _without_outliers,
    find_drivers,
)
from tacit.data import Pairs, Series, Windows
from tacit.observation import StudentTNoise
from tacit.predictors import SeriesLayout

LAYOUT = SeriesLayout(window=6, num_features=1)
FORM, BURN_IN = ColumnForm(lags=2), 50


def candidates(nodes):
    target, source = (1 - torch.eye(nodes)).nonzero().unbind(1)
    return Candidates.from_edges(source, target, nodes)


def pairs_of(values):
    names = tuple(f"v{node}" for node in range(values.shape[1]))
    split = Windows(window=6, fractions=(0.9, 0.05)).prepare(Series(values[:, :, None], names)).split
    parts = [split.train, split.validation, split.test]
    joined = {name: torch.cat([getattr(part, name) for part in parts]) for name in ("inputs", "targets", "times")}
    return Pairs(joined["inputs"], joined["targets"], times=joined["times"])


def series_of(seed, rows=1_000, nodes=8, edges=(), reached=(), hub=False):
    """Linear series; an unseen persistent series reaches some nodes, each after a delay of its own."""
    rng = np.random.default_rng(seed)
    weights = np.zeros((nodes, nodes))
    for source, target in edges:
        weights[target, source] = 0.35
    if hub:
        weights[1:, 0] = 0.4
    driver = np.zeros(rows + BURN_IN)
    for row in range(1, len(driver)):
        driver[row] = 0.6 * driver[row - 1] + 0.8 * rng.normal()
    values = rng.normal(size=(rows + BURN_IN, nodes))
    for place, node in enumerate(reached):
        values[DELAYS:, node] += driver[DELAYS - place % 4 : len(driver) - place % 4]
    for row in range(1, len(values)):
        values[row] += 0.4 * values[row - 1] + weights @ values[row - 1]
    return values[BURN_IN:]


def loadings_of(targets, drivers, rng):
    return 0.7 * torch.randn(targets, drivers, DELAYS, generator=rng, dtype=torch.float64)


def log_density(values, covariance):
    """Of a Gaussian with mean 0, without its constant."""
    return float(-0.5 * (torch.linalg.slogdet(covariance)[1] + values @ torch.linalg.solve(covariance, values)))


@pytest.mark.parametrize(("drivers", "rows"), [(1, 12), (2, 13), (3, 12)])
def test_the_likelihood_is_that_of_a_gaussian_with_circular_covariances(drivers, rows, rng):
    targets = 4
    loadings, persistence = loadings_of(targets, drivers, rng), torch.tensor([0.6, -0.3, 0.1]).double()[:drivers]
    variances, share = torch.tensor([0.5, 1.0, 2.0, 0.7]).double(), torch.ones(targets).double()
    residuals = torch.randn(targets, rows, generator=rng, dtype=torch.float64)
    means, covariances, found = _posterior(residuals, loadings, variances, persistence, share)
    parts = _parts_of(residuals, loadings, variances, share, means, covariances)

    noise = torch.diag(variances.repeat_interleave(rows))
    back = torch.roll(torch.eye(rows).double(), 1, 0)  # y_t = x_{t-1}, circular
    of_driver, shift = torch.zeros(targets * rows, 0), torch.eye(rows).double()
    for k in range(drivers):
        step = torch.linalg.inv(shift - persistence[k] * back)
        reads = [sum(loadings[i, k, d] * torch.matrix_power(back, d) for d in range(DELAYS)) for i in range(targets)]
        of_driver = torch.cat([of_driver, torch.cat(reads) @ step], 1)  # (target row, innovation)
    values, covariance = residuals.flatten(), noise + of_driver @ of_driver.mT
    assert found == pytest.approx(log_density(values, covariance), rel=1e-9)
    for target in range(targets):
        others = torch.arange(targets * rows) // rows != target
        rest = log_density(values[others], covariance[others][:, others])
        assert float(parts[target]) == pytest.approx(found - rest, rel=1e-9)
    gain = of_driver.mT @ torch.linalg.solve(covariance, values)  # mean of the innovations
    steps = [torch.linalg.inv(shift - persistence[k] * back) for k in range(drivers)]
    signals = torch.stack([step @ part for step, part in zip(steps, gain.split(rows), strict=True)])
    torch.testing.assert_close(torch.fft.irfft(means, n=rows), signals, rtol=0, atol=1e-10)


def test_regressions_with_other_parents_are_those_of_a_new_search(rng):
    values, known = torch.randn(300, 5, generator=rng).double(), torch.rand(300, 5, generator=rng) > 0.1
    pairs = replace(pairs_of(values.numpy()), observed=known[6:, :, None].float())
    columns = search_columns(pairs, LAYOUT, candidates(5))
    kept = DriverSearch(columns, candidates(5))
    for _ in range(6):
        parents = torch.rand(5, 4, generator=rng) > 0.7
        basis, left, variances = kept._regressions(parents)
        other, of_new, expected = DriverSearch(columns, candidates(5))._regressions(parents)
        torch.testing.assert_close(variances, expected, rtol=1e-12, atol=0)
        torch.testing.assert_close(basis @ basis.mT, other @ other.mT, rtol=0, atol=1e-12)
        assert torch.equal(left, of_new)
        kept._regressions(parents)  # again, with the same parents


def test_no_fit_is_repeated(monkeypatch):
    fitted, done = DriverSearch.fitted, []

    def noted(self, parents, count, signals=None, rival=None):
        start = b"" if signals is None else signals.numpy().tobytes()
        done.append((parents.numpy().tobytes(), count, start, None if rival is None else rival.score))
        return fitted(self, parents, count, signals, rival)

    monkeypatch.setattr(DriverSearch, "fitted", noted)
    pairs = pairs_of(series_of(0, rows=600, edges=((0, 1), (2, 3), (5, 6)), reached=(0, 1, 2, 3, 4)))
    DriverSearch(search_columns(pairs, LAYOUT, candidates(8)), candidates(8)).run()
    assert len(done) > 10
    assert len(set(done)) == len(done)


def test_predictions_are_those_of_the_kalman_filter(rng):
    rows, targets = 200, 4
    loadings, variances = loadings_of(targets, 1, rng), torch.tensor([0.5, 1.0, 2.0, 1.0]).double()
    persistence = torch.tensor([0.7]).double()
    residuals = torch.randn(targets, rows, generator=rng, dtype=torch.float64)
    model = FactorModel(loadings, variances, persistence, torch.zeros(1, rows), residuals, torch.zeros(targets), 0.0)
    move = torch.diag(torch.ones(DELAYS - 1).double(), -1)
    move[0, 0] = persistence[0]
    noise, read = torch.zeros(DELAYS, DELAYS).double(), loadings[:, 0]
    noise[0, 0] = 1.0
    state, doubt = torch.zeros(DELAYS).double(), 10 * torch.eye(DELAYS).double()
    expected = torch.zeros(DELAYS, rows).double()
    for row in range(rows):
        state, doubt = move @ state, move @ doubt @ move.mT + noise
        expected[:, row] = state
        gain = doubt @ read.mT @ torch.linalg.inv(read @ doubt @ read.mT + torch.diag(variances))
        state, doubt = state + gain @ (residuals[:, row] - read @ state), doubt - gain @ read @ doubt
    torch.testing.assert_close(model.predicted()[0][:, 100:], expected[:, 100:], rtol=0, atol=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_shared_driver_is_found_and_is_no_edge(seed):
    """Without a driver in the model, the nodes that it reaches have edges between them."""
    reached, edges = (1, 3, 4, 6), ((0, 2), (5, 7))
    pairs = pairs_of(series_of(seed, edges=edges, reached=reached))
    found = find_drivers(pairs, LAYOUT, candidates(8), FORM)
    assert found is not None
    assert found.prob > 0.999
    assert 0.7 < found.weight <= MOST_WEIGHT
    assert found.reached.nonzero()[:, 0].tolist() == list(reached)
    of_target = found.columns[:, reached[0]]
    assert of_target.shape[1] == DELAYS - 1
    assert float(torch.linalg.svdvals(of_target / of_target.norm(dim=0))[-1]) > 1e-3  # no column is redundant
    probs = {}
    for driven in (True, False):
        one = parent_evidence(pairs, LAYOUT, candidates(8), resamples=0, density=0.1, driven=driven)
        matrix = torch.zeros(8, 8, dtype=torch.float64).scatter(1, one.candidates.sources, one.probs)
        probs[driven] = {(int(j), int(i)) for i, j in (matrix >= 0.5).nonzero()}
        assert (DRIVER in one.notes) == driven
    assert probs[True] == set(edges)
    assert len(probs[False]) >= 6


def test_drivers_of_long_tables_are_sought_in_the_last_rows_and_fitted_to_all(monkeypatch):
    reached = (1, 3, 4, 6)
    pairs = pairs_of(series_of(0, rows=900, reached=reached))
    every = find_drivers(pairs, LAYOUT, candidates(8), FORM)
    monkeypatch.setattr("tacit.assessment.evidence.drivers.SEARCHED", 500)
    few = find_drivers(pairs, LAYOUT, candidates(8), FORM)
    assert every is not None
    assert few is not None
    assert few.columns.shape == every.columns.shape
    assert few.reached.nonzero()[:, 0].tolist() == list(reached)
    for target in reached:
        first, second = (one.columns[:, target, :1] for one in (few, every))
        assert float(torch.corrcoef(torch.cat([first, second], 1).mT)[0, 1].abs()) > 0.95


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_edges_and_hubs_are_no_drivers(seed):
    for options in ({"edges": ((0, 1), (1, 2), (3, 4), (0, 5))}, {"hub": True}, {}):
        assert find_drivers(pairs_of(series_of(seed, **options)), LAYOUT, candidates(8), FORM) is None


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_effects_within_a_step_are_hardly_taken_for_a_driver(seed):
    """Means over three steps are correlated within a step along the edges; a driver forecasts little of them."""
    values = series_of(seed, rows=3_000, edges=((0, 1), (1, 2), (3, 4), (0, 5), (6, 7)))
    found = find_drivers(pairs_of(values.reshape(-1, 3, 8).mean(1)), LAYOUT, candidates(8), FORM)
    assert found is None or found.weight < 0.6


def test_forecasts_are_compared_by_the_likelihood_of_their_errors():
    pairs = pairs_of(series_of(0, edges=((0, 2), (5, 7)), reached=(1, 3, 4, 6)))
    columns = search_columns(pairs, LAYOUT, candidates(8), squares=False)
    search, parents = DriverSearch(columns, candidates(8)), torch.zeros(8, 7, dtype=torch.bool)
    parents[2, 0] = parents[7, 5] = True
    model = search.fitted(parents, 1)
    rows, errors, price, read = len(pairs), [], columns.group_size * math.log(len(pairs)) + 2 * EDGE_PRIOR, []
    for target in range(8):
        always = torch.cat([columns.own[:, target], columns.shared], 1)
        source = {2: columns.sources[:, 0], 7: columns.sources[:, 5]}.get(target, columns.sources[:, 0, :0])
        driver = search.columns_of(model)[:, target]
        before, after = torch.cat([always, source], 1), torch.cat([always, source, driver], 1)
        value = columns.targets[:, target]
        left = [value - part @ torch.linalg.lstsq(part, value, driver="gelsd").solution for part in (before, after)]
        squares = [float(one.square().sum()) for one in left]
        paid = (DELAYS - 1) / 2 * math.log(rows) + math.log(DELAYS)
        gain = rows / 2 * math.log(squares[0] / squares[1])
        price += rows / 2 * math.log(squares[0] / rows) - max(0.0, gain - paid)
        read.append(gain > paid)
        errors.append(left[gain > paid][:, 0])
    covariances = torch.linalg.slogdet(torch.corrcoef(torch.stack(errors)))[1]
    assert search._forecasts(model, parents) == pytest.approx(-price - rows / 2 * float(covariances), rel=1e-6)
    assert 0 < sum(read) < 8


def test_large_values_and_weighted_rows_do_not_hide_a_driver():
    rng, values = np.random.default_rng(3), series_of(3, reached=(0, 2, 5, 7))
    values[rng.random(values.shape) < 0.005] += 15.0
    pairs, weights = pairs_of(values), torch.ones(len(values) - 6, 8, dtype=torch.float64)
    found = find_drivers(pairs, LAYOUT, candidates(8), FORM, weights)
    assert found is not None
    assert found.reached.nonzero()[:, 0].tolist() == [0, 2, 5, 7]


def test_few_nodes_short_series_and_pairs_without_time_are_not_searched():
    values = series_of(0, reached=(0, 1, 2, 3))
    assert find_drivers(pairs_of(values[:, :3]), LAYOUT, candidates(3), FORM) is None
    assert find_drivers(pairs_of(values[:150]), LAYOUT, candidates(8), FORM) is None
    pairs = pairs_of(values)
    flat = SeriesLayout(window=1, num_features=6)
    assert find_drivers(pairs, flat, candidates(8), FORM) is None


def test_drivers_beside_others_are_those_of_a_gaussian(rng):
    """The mean given all nodes of the rows before, and the others of the same row, from the joint covariance."""
    rows, targets, persistence = 60, 4, torch.tensor([0.5, -0.4]).double()
    loadings, variances = loadings_of(targets, 2, rng), torch.tensor([0.5, 1.0, 2.0, 0.7]).double()
    residuals = torch.randn(targets, rows, generator=rng, dtype=torch.float64)
    none = torch.zeros(targets).double()
    model = FactorModel(loadings, variances, persistence, residuals[:2], residuals, none, 0.0)
    gaps = (torch.arange(-DELAYS, rows)[:, None] - torch.arange(-DELAYS, rows)).abs()
    drivers = [phi**gaps / (1 - phi**2) for phi in persistence]  # covariances of stationary series, from row -4 on
    reads = torch.zeros(2, targets, rows, rows + DELAYS).double()
    for delay in range(DELAYS):
        reads[:, :, torch.arange(rows), torch.arange(rows) + DELAYS - delay] = loadings[:, :, delay].mT[..., None]
    seen = sum(read.flatten(0, 1) @ one @ read.flatten(0, 1).mT for read, one in zip(reads, drivers, strict=True))
    seen = seen + torch.diag(variances.repeat_interleave(rows))
    now, values = rows - 1, residuals.flatten()
    row, target = torch.arange(targets * rows) % rows, torch.arange(targets * rows) // rows
    for left_out in range(targets):
        known = (row < now) | (target != left_out)
        expected = [
            one[now + DELAYS - delay]
            @ read.flatten(0, 1)[known].mT
            @ torch.linalg.solve(seen[known][:, known], values[known])
            for read, one in zip(reads, drivers, strict=True)
            for delay in range(DELAYS)
        ]
        found = model.beside_others()[left_out, :, now]
        torch.testing.assert_close(found, torch.stack(expected), rtol=0, atol=1e-6)


def test_some_pairs_have_the_columns_of_their_rows():
    pairs = pairs_of(series_of(1, rows=300))
    columns = torch.randn(len(pairs), 8, 4, generator=torch.Generator().manual_seed(0)).double()
    drivers = Drivers(columns[..., :3], columns, 0.9, 0.9, torch.ones(8, dtype=torch.bool), pairs.times, None)
    all_of_them, layout = drivers.added_to(pairs, LAYOUT)
    assert layout.known == LAYOUT.known + 3
    within, layout = drivers.added_to(pairs, LAYOUT, within=True)
    assert layout.known == LAYOUT.known + 4
    torch.testing.assert_close(within.inputs[..., -4:-1], all_of_them.inputs[..., -3:])
    some = torch.tensor([250, 3, 17])
    few, _ = drivers.added_to(pairs[some], LAYOUT)
    assert torch.equal(few.inputs, all_of_them.inputs[some])


def test_outliers_are_cut_off_and_constant_columns_are_kept():
    values = torch.randn(500, 3, generator=torch.Generator().manual_seed(1)).double()
    values[7, 0], values[:, 2] = 50.0, 0.0
    values[::10, 2] = 1.0
    found = _without_outliers(values)
    assert found[7, 0] == pytest.approx(float(values[:, 0].median() + 4 * 1.4826 * 0.67), rel=0.15)
    assert torch.equal(found[:, 2], values[:, 2])
    inside = values[:, 1].abs() < 3.5
    assert torch.equal(found[inside, 1], values[inside, 1])


def test_another_observation_model_uses_the_search_of_earlier_evidence(monkeypatch):
    pairs = pairs_of(series_of(1, rows=400, reached=(0, 2, 5, 7)))
    options = {"resamples": 0, "density": 0.1}
    first = parent_evidence(pairs, LAYOUT, candidates(8), **options)
    heavy = StudentTNoise(8)
    again = parent_evidence(pairs, LAYOUT, candidates(8), observation=heavy, **options)
    for name in ("find_drivers", "choose_forms"):
        monkeypatch.setitem(parent_evidence.__globals__, name, None)
    both = parent_evidence(pairs, LAYOUT, candidates(8), observation=heavy, earlier=first, **options)
    assert first.drivers is not None
    assert torch.equal(both.probs, again.probs)
    assert not torch.equal(both.probs, first.probs)

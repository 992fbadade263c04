from importlib import import_module

import numpy as np
import pytest
import torch

from tacit.data import Pairs, ridge_regression
from tacit.data.regression import regress, ridge_path

ridge_module = import_module("tacit.data.regression")


def made_pairs(rng, rows=80, missing=0.0):
    """Three nodes, two lags, one target channel, with an intercept and scales far from 1; double precision."""
    inputs = 5 + torch.tensor([1.0, 10.0, 0.1])[:, None] * torch.randn(rows, 3, 2, generator=rng, dtype=torch.float64)
    weights = torch.randn(3, 3, 2, generator=rng, dtype=torch.float64)
    targets = 2 + torch.einsum("bjc,ijc->bi", inputs, weights) + torch.randn(rows, 3, generator=rng).double()
    observed = (torch.rand(rows, 3, 1, generator=rng) >= missing).double()
    return Pairs(inputs, targets[..., None], observed if missing else None)


def plain_ridge(inputs, targets, penalty):
    """One target: centre and scale columns by hand, solve the normal equations, return weights and intercept."""
    scale, centre = inputs.std(0), inputs.mean(0)
    design = (inputs - centre) / scale
    normal = design.T @ design / len(design) + penalty * np.eye(design.shape[1])
    weights = np.linalg.solve(normal, design.T @ (targets - targets.mean()) / len(design)) / scale
    return weights, targets.mean() - centre @ weights


@pytest.mark.parametrize("penalty", [1e-3, 0.3])
def test_ridge_equals_the_normal_equations_of_each_target(rng, penalty):
    pairs = made_pairs(rng)
    fit = ridge_regression(pairs[:60], pairs[60:], penalties=[penalty])
    assert fit.penalty == penalty
    assert fit.coefficients.shape == (3, 3, 2, 1)
    for node in range(3):
        weights, intercept = plain_ridge(
            pairs.inputs[:60].flatten(1).numpy(), pairs.targets[:60, node, 0].numpy(), penalty
        )
        assert np.allclose(fit.coefficients[node].flatten().numpy(), weights)
        assert fit.intercepts[node, 0].item() == pytest.approx(intercept)


def test_ridge_without_a_penalty_is_least_squares(rng):
    pairs = made_pairs(rng)
    fit = ridge_regression(pairs[:60], pairs[60:], penalties=[1e-12])
    design = np.hstack([pairs.inputs[:60].flatten(1).numpy(), np.ones((60, 1))])
    expected = np.linalg.lstsq(design, pairs.targets[:60, :, 0].numpy(), rcond=None)[0]  # (feature + 1, target)
    assert np.allclose(fit.coefficients[..., 0].flatten(1).numpy(), expected[:-1].T, atol=1e-6)
    assert np.allclose(fit.predict(pairs.inputs[:60])[..., 0].numpy(), design @ expected, atol=1e-6)


def test_missing_targets_are_left_out_target_by_target(rng):
    pairs = made_pairs(rng, missing=0.3)
    holes = Pairs(pairs.inputs, torch.where(pairs.observed > 0, pairs.targets, 1e6), pairs.observed)
    fit = ridge_regression(holes[:60], holes[60:], penalties=[1e-12])
    for node in range(3):
        there = pairs.observed[:60, node, 0] > 0
        design = np.hstack([pairs.inputs[:60][there].flatten(1).numpy(), np.ones((int(there.sum()), 1))])
        expected = np.linalg.lstsq(design, pairs.targets[:60, node, 0][there].numpy(), rcond=None)[0]
        assert np.allclose(fit.coefficients[node].flatten().numpy(), expected[:-1], atol=1e-5)
        assert fit.intercepts[node, 0].item() == pytest.approx(expected[-1], rel=1e-5)
        later = pairs.observed[60:, node, 0] > 0
        error = (fit.predict(pairs.inputs[60:]) - pairs.targets[60:])[:, node, 0][later]
        assert fit.sigmas[node, 0].item() == pytest.approx(error.square().mean().sqrt().item())


def test_the_penalty_is_the_one_with_the_least_error_on_later_pairs(rng):
    pairs, penalties = made_pairs(rng, rows=30), [1e-4, 1e-2, 1.0, 100.0]
    train, later = pairs[:15], pairs[15:]
    chosen = ridge_regression(train, later, penalties=penalties)
    spread = train.targets.std(0, correction=0)
    errors = []
    for penalty in penalties:
        fit = ridge_regression(train, later, penalties=[penalty])
        errors.append((((fit.predict(later.inputs) - later.targets) / spread) ** 2).mean().item())
    assert chosen.penalty == penalties[int(np.argmin(errors))]
    assert chosen.penalty not in (penalties[0], penalties[-1])  # else the grid would have been too small to tell


def test_edge_scores_do_not_depend_on_units_and_leave_the_node_itself_out(rng):
    pairs = made_pairs(rng)
    units = torch.tensor([100.0, 0.01, 7.0]).double()[:, None]
    other = Pairs(pairs.inputs * units, pairs.targets * units)
    fit, again = (ridge_regression(p[:60], p[60:], penalties=[0.01]) for p in (pairs, other))
    assert torch.allclose(fit.edge_scores, again.edge_scores)
    assert torch.allclose(fit.coefficients * units[:, None, :, None] / units[None, :, :, None], again.coefficients)
    assert (fit.edge_scores.diagonal() == 0).all()
    ratio = pairs.inputs[:60].std(0, correction=0)[None] / pairs.targets[:60].std(0, correction=0)[:, :, None]
    expected = (fit.coefficients[..., 0] * ratio).abs().sum(-1)  # (target, source)
    assert torch.allclose(fit.edge_scores, expected.fill_diagonal_(0))


@pytest.mark.parametrize("value", [0.0, 3.0, 0.1])  # the deviation of many 0.1 is not 0 but rounding
def test_a_constant_input_gets_no_weight(rng, value):
    pairs = made_pairs(rng)
    constant = pairs.inputs.clone()
    constant[:, 1, 0] = value
    fit = ridge_regression(Pairs(constant[:60], pairs.targets[:60]), Pairs(constant[60:], pairs.targets[60:]))
    assert (fit.coefficients[:, 1, 0] == 0).all()
    assert torch.isfinite(fit.coefficients).all()


def test_several_target_channels(rng):
    inputs = torch.randn(50, 2, 3, generator=rng)
    weights = torch.randn(2, 2, 3, 2, generator=rng)
    pairs = Pairs(inputs, torch.einsum("bjc,ijco->bio", inputs, weights))
    fit = ridge_regression(pairs[:40], pairs[40:])
    assert torch.allclose(fit.coefficients, weights, atol=1e-3)
    assert fit.coefficients.dtype == torch.float32


def test_a_target_without_later_values_takes_the_deviation_of_its_own_fit(rng):
    pairs = made_pairs(rng).with_mask()
    blind = pairs.observed[60:].clone()
    blind[:, 1] = 0
    fit = ridge_regression(pairs[:60], Pairs(pairs.inputs[60:], pairs.targets[60:], blind), penalties=[0.01])
    own = (fit.predict(pairs.inputs[:60]) - pairs.targets[:60])[:, 1]
    assert fit.sigmas[1, 0].item() == pytest.approx(own.square().mean().sqrt().item())


def test_errors(rng, unchecked, refused):
    pairs = made_pairs(rng)
    refused(regress, pairs, pairs, ridge_path, [])
    refused(ridge_regression, pairs, pairs, penalties=[0.0])
    refused(ridge_regression, pairs, Pairs(pairs.inputs[:, :2], pairs.targets[:, :2]))
    observed = torch.ones_like(pairs.targets)
    observed[1:, 2] = 0
    refused(ridge_regression, Pairs(pairs.inputs, pairs.targets, observed), pairs)


@pytest.mark.parametrize("rows", [12, 60], ids=["by rows", "by columns"])
def test_all_ways_to_solve_agree(rng, rows, monkeypatch, unchecked):
    design, targets = torch.randn(rows, 30, generator=rng).double(), torch.randn(rows, 3, generator=rng).double()
    penalties = [1e-4, 0.1]
    normal = design.T @ design / rows
    wanted = [torch.linalg.solve(normal + p * torch.eye(30).double(), design.T @ targets / rows) for p in penalties]
    monkeypatch.setattr(ridge_module, "MOST_PRODUCTS", 2000)  # some rows at a time
    for most in (256, 1):
        monkeypatch.setattr(ridge_module, "MOST_DECOMPOSED", most)
        torch.testing.assert_close(ridge_path(design, targets, penalties), torch.stack(wanted), rtol=1e-8, atol=1e-10)


def test_a_matrix_that_rounding_leaves_indefinite_is_decomposed(rng, monkeypatch):
    monkeypatch.setattr(ridge_module, "MOST_DECOMPOSED", 1)
    column = torch.randn(50, 1, generator=rng).double()
    found = ridge_path(column.expand(50, 4), column, [1e-30])
    assert torch.isfinite(found).all()

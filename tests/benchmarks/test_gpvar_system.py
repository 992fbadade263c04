import math

import pytest
import torch
from benchmarks.studies.gpvar_system import GPVARSystem, gpvar_graph


def test_the_setting_of_the_literature():
    """Cini et al. (2023): 5 communities of 6 nodes in a line, undirected, coefficients and noise as published."""
    graph = gpvar_graph()
    assert graph.shape == (30, 30)
    assert torch.equal(graph, graph.T)
    assert graph.unique().tolist() == [0.0, 1.0]
    assert graph.diagonal().sum() == 0
    assert graph.sum() == 2 * (5 * 9 + 4)
    assert graph[5, 6] == graph[11, 12] == graph[23, 24] == 1
    system = GPVARSystem()
    assert system.coefficients.tolist() == [[5, 2], [-4, 6], [-1, 0]]
    assert system.noise_sigma == 0.4
    assert system.optimal_mae == pytest.approx(0.3192, abs=5e-5)
    assert not any(value.requires_grad for value in system.true_predictor().parameters())


def test_each_step_is_the_filter_of_the_two_before_it_plus_noise():
    """The noise is what the generator drew, so the recursion can be checked to rounding; written out node by node."""
    system = GPVARSystem(coefficients=torch.tensor([[5, 2], [-4, 6], [-1, 0]], dtype=torch.float64))
    quiet = GPVARSystem(system.true_edge_probs, system.coefficients, 1e-9)  # the same draws, too small to matter
    series = quiet.generate(40, seed=3)
    shift = system.true_edge_probs.double() + torch.eye(30)
    for t in range(2, 40):
        before, older = series[t - 1], series[t - 2]
        total = 5 * older - 4 * (shift @ older) - shift @ shift @ older + 2 * before + 6 * (shift @ before)
        assert torch.allclose(series[t], torch.tanh(total), atol=1e-7)


def test_what_the_truth_leaves_is_white_gaussian_noise():
    """False alarms: each bound is at 4.5 standard errors, below one in 100,000."""
    system = GPVARSystem()
    pairs = system.pairs(3002, seed=1, window=2)
    predicted = system.true_predictor()(pairs.inputs, system.true_edge_probs[None, None])[:, 0]
    noise = (pairs.targets - predicted)[..., 0].double() / system.noise_sigma
    count = noise.numel()
    assert noise.mean().abs() < 4.5 / math.sqrt(count)
    assert (noise.square().mean() - 1).abs() < 4.5 * math.sqrt(2 / count)
    assert (noise.pow(4).mean() - 3).abs() < 4.5 * math.sqrt(96 / count)
    assert (noise[1:] * noise[:-1]).mean().abs() < 4.5 / math.sqrt(count)
    mae = system.noise_sigma * noise.abs().mean()
    assert (mae - system.optimal_mae).abs() < 4.5 * system.noise_sigma * math.sqrt((1 - 2 / math.pi) / count)


def test_windows_are_lag_major_with_the_newest_lag_last():
    system = GPVARSystem()
    series = torch.arange(6.0)[:, None] + 10 * torch.arange(30.0)
    pairs = system.cut(series, window=3)
    assert pairs.inputs.shape == (3, 30, 3)
    assert pairs.inputs[1, 2].tolist() == [21.0, 22.0, 23.0]
    assert pairs.targets[1, 2].tolist() == [24.0]
    assert pairs.targets[-1, 0].tolist() == [5.0]


def test_a_series_depends_on_the_seed_alone_and_starts_in_its_stride():
    system = GPVARSystem()
    first, again, other = system.generate(20, 1), system.generate(20, 1), system.generate(20, 2)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first[:2].abs().mean() > 2 * system.noise_sigma * math.sqrt(2 / math.pi)  # noise alone would be half that


def test_errors(unchecked, refused):
    refused(GPVARSystem, noise_sigma=0.0)
    refused(GPVARSystem, torch.eye(3))
    refused(GPVARSystem, torch.full((3, 3), 0.5).fill_diagonal_(0))
    refused(GPVARSystem().generate, 0)
    refused(GPVARSystem().pairs, 100, window=1)
    refused(GPVARSystem().pairs, 12)

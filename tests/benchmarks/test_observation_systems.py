"""The generated series are of their kind, and no target on errors of theta is below its bound."""

import numpy as np
import pytest
import torch
from benchmarks.observation.paper_system import CommunityCounts, error_bound, masses
from benchmarks.observation.systems import KINDS, NULL, heavy_tails


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_seed_gives_one_series_of_its_kind(kind):
    first, second = KINDS[kind](5), KINDS[kind](5)
    assert np.array_equal(first.series, second.series)
    assert np.isfinite(first.series).all()
    assert first.truth.any() != kind.startswith(NULL)
    assert not first.truth.diagonal().any()
    assert ((first.theta > 0) == first.truth).all()
    for node, own in enumerate(first.kinds):
        values = first.series[:, node]
        if own in ("poisson", "negative_binomial"):
            assert (values >= 0).all()
            assert (values == values.round()).all()
        if own == "bernoulli":
            assert set(values.tolist()) == {0.0, 1.0}
        if own == "ordered":
            assert set(values.tolist()) <= {1.0, 2.0, 3.0, 4.0, 5.0}
        if own == "log_normal":
            assert (values > 0).all()


def test_half_of_the_edges_with_heavy_tails_are_gated():
    system = heavy_tails(0, 50)
    theta = system.theta[system.truth]
    assert (int((theta < 1).sum()), int((theta == 1).sum())) == (5, 5)


@pytest.mark.parametrize("kind", ["poisson", "bernoulli"])
def test_masses_sum_to_1(kind):
    total = masses(kind, torch.linspace(-5, 20, 9, dtype=torch.float64)).sum(-1)
    assert torch.allclose(total, torch.ones_like(total), atol=1e-6)


@pytest.mark.parametrize(("kind", "target"), [("poisson", 0.02), ("bernoulli", 0.03)])
def test_the_targets_are_above_the_bound(kind, target):
    assert 0.1 * target < error_bound(CommunityCounts(kind), 28_000)["mean_absolute_error"] < 0.5 * target


def test_the_bound_falls_with_the_root_of_the_number_of_pairs():
    system = CommunityCounts("bernoulli")
    few, many = (error_bound(system, number)["mean_absolute_error"] for number in (1_000, 4_000))
    assert few == pytest.approx(2 * many)


def test_pairs_have_the_means_of_the_model():
    pairs = CommunityCounts("poisson").generate(4_000, seed=3)
    assert pairs.targets.min() >= 0
    assert (pairs.targets == pairs.targets.round()).all()
    assert abs(float(pairs.targets.mean()) - 10) < 0.5  # f is symmetric around b = 10

"""Losses on single predictions against loops and independent formulas."""

import itertools
import math

import pytest
import torch

from tacit.graph import EdgePrior
from tacit.losses import ELBO, ExpectedError, NodewiseExpectedError, PointMSE

LOSSES = {
    "point_mse": PointMSE,
    "literature_1_mae": lambda **k: ExpectedError("mae", **k),
    "literature_1_mse": lambda **k: ExpectedError("mse", **k),
    "elbo": lambda **k: ELBO(0.3, **k),
}


@pytest.fixture
def batch(rng):
    samples = torch.randn(4, 5, 3, 2, generator=rng, dtype=torch.float64)
    return samples, torch.randn(4, 3, 2, generator=rng, dtype=torch.float64)


def by_loop(name, samples, target):
    """One pair: samples (graph, node, channel); the mean over nodes and channels, or for the ELBO their sum."""
    errors = [s - target for s in samples]
    if name == "point_mse":
        products = [float((a * b).mean()) for a, b in itertools.permutations(errors, 2)]
        return sum(products) / len(products)
    plain = {
        "literature_1_mae": lambda e: float(e.abs().mean()),
        "literature_1_mse": lambda e: float((e**2).mean()),
        "elbo": lambda e: -float(torch.distributions.Normal(e.new_zeros(()), e.new_tensor(0.3)).log_prob(e).sum()),
    }[name]
    return sum(map(plain, errors)) / len(errors)


@pytest.mark.parametrize("scope", ["node", "joint"])
@pytest.mark.parametrize("name", LOSSES)
def test_value_equals_the_loop_at_either_scope(batch, name, scope):
    samples, targets = batch
    value = LOSSES[name](scope=scope)(samples, targets).value
    assert value.shape == (4, 3 if scope == "node" else 1)
    for pair in range(4):
        assert float(value[pair].mean()) == pytest.approx(by_loop(name, samples[pair], targets[pair]), abs=1e-11)


def test_point_mse_is_the_squared_error_of_the_mean_less_its_spread(batch):
    """Textbook form: (mean - y)^2 - variance / S, with the unbiased variance."""
    samples, targets = batch
    plain = (samples.mean(1) - targets).square() - samples.var(1) / samples.shape[1]
    assert torch.allclose(PointMSE()(samples, targets).value, plain.mean(-1), atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_leave_one_out_baseline_is_blind_to_its_graph_and_is_the_mean_cost_of_the_others(batch, name):
    samples, targets = batch
    loss = LOSSES[name]()
    changed = samples.clone()
    changed[:, 2] += 1.7
    before, after = (loss(some, targets).baseline for some in (samples, changed))
    assert torch.allclose(before[:, 2], after[:, 2], atol=1e-12)
    assert (before[:, 1] - after[:, 1]).abs().max() > 1e-6
    others = LOSSES[name](baseline="none")(samples[:, [0, 1, 3, 4]], targets).cost.mean(1)
    assert torch.allclose(before[:, 2], others, atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_moving_average_is_kept_per_unit(batch, name):
    samples, targets = batch
    loss = LOSSES[name](baseline="moving_average")
    average = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    terms = loss(samples, targets, average=average)
    assert torch.equal(terms.baseline, average[None, None])
    assert torch.allclose(terms.average, 0.95 * average + 0.05 * terms.cost.mean((0, 1)), atol=1e-12)
    first = loss(samples, targets)
    assert (first.baseline == 0).all()
    assert torch.allclose(first.average, 0.05 * first.cost.mean((0, 1)), atol=1e-12)
    assert LOSSES[name](baseline="leave_one_out")(samples, targets).average is None


def test_moving_average_leaves_out_what_is_missing(batch):
    samples, targets = batch
    observed = torch.ones_like(targets)
    observed[1:, 0] = 0  # node 0 is observed in the first pair alone
    observed[:, 2] = 0  # node 2 never
    average = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    terms = ExpectedError("mse", baseline="moving_average")(samples, targets, observed, average=average)
    expected = 0.95 * 1.0 + 0.05 * (samples[0, :, 0] - targets[0, 0]).square().mean()
    assert float(terms.average[0]) == pytest.approx(float(expected), abs=1e-12)
    assert float(terms.average[2]) == 3.0  # nothing new is known of it


def test_literature_2_is_literature_1_with_its_own_credit_and_baseline(batch):
    samples, targets = batch
    one, two = ExpectedError("mae"), NodewiseExpectedError("mae")
    assert torch.equal(one(samples, targets).value, two(samples, targets).value)
    assert (two.credit, two.baseline, two.scope) == ("own_row", "moving_average", "node")
    assert one.credit is None


@pytest.mark.parametrize("name", LOSSES)
def test_nan_is_never_a_score(name):
    samples = torch.zeros(1, 4, 2, 1)
    samples[0, 1, 0, 0] = torch.nan
    assert LOSSES[name]()(samples, torch.zeros(1, 2, 1)).value.isnan().any()


def test_elbo_density_of_one_number():
    value = ELBO(0.5)(torch.full((1, 2, 1, 1), 1.0), torch.zeros(1, 1, 1)).value
    assert value.item() == pytest.approx(0.5 * 4 + math.log(0.5 * math.sqrt(2 * math.pi)), abs=1e-6)


def test_errors_name_argument_need_value_and_remedy(unchecked, refused):
    refused(ExpectedError, "rmse")
    refused(NodewiseExpectedError, scope="joint")
    refused(ELBO, 0)
    refused(ELBO, 0.1, 0.5)
    refused(ELBO, "a")
    refused(PointMSE(), torch.zeros(1, 3, 3, 1), torch.zeros(1, 3, 1), torch.ones(1, 3, 1).bool())
    refused(EdgePrior, 2.0)
    refused(PointMSE, scope="nodes")
    refused(PointMSE(), torch.zeros(1, 2, 3, 1), torch.zeros(1, 3, 1))
    refused(PointMSE(), torch.zeros(1, 3, 3, 1), torch.zeros(1, 3, 1), torch.zeros(1, 3))
    refused(ExpectedError(), torch.zeros(1, 3, 2, 1), torch.zeros(1, 3, 1))

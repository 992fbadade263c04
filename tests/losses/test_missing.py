"""Missing targets: they change nothing, and what is left is the loss of what was observed."""

import pytest
import torch

from tacit.losses import ELBO, MMD, EnergyScore, ExpectedError, NodewiseExpectedError, PointMSE

LOSSES = {
    "mmd node": lambda **k: MMD(**k),
    "mmd joint": lambda **k: MMD(scope="joint", **k),
    "energy node": lambda **k: EnergyScore(**k),
    "energy joint": lambda **k: EnergyScore(scope="joint", **k),
    "point_mse node": lambda **k: PointMSE(**k),
    "point_mse joint": lambda **k: PointMSE(scope="joint", **k),
    "literature_1": lambda **k: ExpectedError("mae", **k),
    "literature_1 joint": lambda **k: ExpectedError("mse", scope="joint", **k),
    "literature_2": lambda **k: NodewiseExpectedError("mse", **k),
    "elbo node": lambda **k: ELBO(0.4, **k),
    "elbo joint": lambda **k: ELBO(0.4, scope="joint", **k),
}
BASELINES = ["none", "paper", "leave_one_out", "moving_average"]


@pytest.fixture
def batch(rng):
    samples = torch.randn(6, 4, 3, 2, generator=rng, dtype=torch.float64)
    targets = torch.randn(6, 3, 2, generator=rng, dtype=torch.float64)
    observed = (torch.rand(6, 3, 2, generator=rng) < 0.6).double()
    observed[0], observed[1] = 0, 1
    return samples, targets, observed


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("name", LOSSES)
def test_all_observed_is_as_if_nothing_were_said(batch, name, baseline):
    samples, targets, _ = batch
    loss = LOSSES[name](baseline=baseline)
    plain, masked = loss(samples, targets), loss(samples, targets, torch.ones_like(targets))
    for one, other in zip(plain[:3], masked[:3], strict=True):
        assert torch.allclose(*torch.broadcast_tensors(one, other), atol=1e-12)
    assert plain.weight is None
    assert masked.weight is None or (masked.weight == 1).all()
    assert (plain.average is None) == (baseline != "moving_average")
    if plain.average is not None:
        assert torch.allclose(plain.average, masked.average, atol=1e-12)


def total(terms):
    """The loss of a batch: the sum of the values over that of the weights."""
    return float(terms.value.mean() if terms.weight is None else terms.value.sum() / terms.weight.sum())


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("name", LOSSES)
def test_missing_targets_are_not_looked_at_and_cost_nothing(batch, name, baseline):
    samples, targets, observed = batch
    loss = LOSSES[name](baseline=baseline)
    terms = loss(samples, targets, observed)
    for filler in (99.0, torch.nan):
        other = loss(samples, torch.where(observed > 0, targets, filler), observed)
        for one, two in zip(terms, other, strict=True):
            assert one is two is None or torch.allclose(one, two, atol=1e-12)
    counts = observed.sum(-1)
    unseen = counts == 0 if terms.value.shape[1] == 3 else (counts.sum(-1, keepdim=True) == 0)
    assert unseen.any()
    advantage = (terms.cost - terms.baseline).movedim(1, -1)  # (batch, unit, graph)
    assert (terms.value[unseen] == 0).all()
    assert (advantage[unseen] == 0).all()


@pytest.mark.parametrize("name", [name for name in LOSSES if "joint" not in name])
def test_samples_of_missing_nodes_get_no_gradient(batch, name):
    samples, targets, observed = batch
    samples.requires_grad_()
    terms = LOSSES[name]()(samples, targets, observed)
    (gradient,) = torch.autograd.grad(terms.value.sum(), samples)
    assert (gradient.movedim(1, -1)[observed == 0] == 0).all()
    assert (gradient.movedim(1, -1)[observed == 1] != 0).float().mean() > 0.8  # signs may cancel


@pytest.mark.parametrize("name", ["mmd node", "energy node", "point_mse node", "literature_1", "literature_2"])
def test_a_node_that_is_missing_everywhere_leaves_the_loss_of_the_others(batch, name):
    samples, targets, _ = batch
    observed = torch.ones_like(targets)
    observed[:, 1] = 0
    loss = LOSSES[name]()
    rest = loss(samples[:, :, [0, 2]], targets[:, [0, 2]]).value.mean()
    assert total(loss(samples, targets, observed)) == pytest.approx(float(rest), abs=1e-12)


@pytest.mark.parametrize("scope", ["node", "joint"])
def test_errors_weigh_every_observed_number_the_same(batch, scope):
    samples, targets, observed = batch
    value = total(ExpectedError("mse", scope=scope)(samples, targets, observed))
    plain = (samples - targets[:, None]).square().mean(1)[observed > 0].mean()
    assert value == pytest.approx(float(plain), abs=1e-12)


@pytest.mark.parametrize("scope", ["node", "joint"])
def test_elbo_sums_over_what_was_observed(batch, scope):
    samples, targets, observed = batch
    value = ELBO(0.4, scope=scope)(samples, targets, observed).value.mean(1)
    density = torch.distributions.Normal(samples, 0.4).log_prob(targets[:, None]).mean(1)
    assert torch.allclose(value, -(density * observed).sum((1, 2)), atol=1e-11)


def test_joint_distances_are_over_what_was_observed(batch):
    samples, targets, observed = batch
    terms = EnergyScore(scope="joint")(samples, targets, observed)
    value = terms.value[:, 0]
    assert terms.weight.flatten().tolist() == [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    for pair in range(1, 6):
        there = observed[pair] > 0
        alone = EnergyScore(scope="joint")(
            samples[pair][:, there][None, :, :, None], targets[pair][there][None, :, None]
        )
        assert float(value[pair]) == pytest.approx(float(alone.value), abs=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_a_batch_that_observes_nothing_costs_nothing(batch, name):
    samples, targets, observed = batch
    terms = LOSSES[name]()(samples, targets, torch.zeros_like(observed))
    assert (terms.value == 0).all()
    assert ((terms.cost - terms.baseline) == 0).all()

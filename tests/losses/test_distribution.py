import itertools
import math
import statistics

import pytest
import scoringrules
import torch

import oracles
from tacit.losses import MMD, EnergyScore, Gaussian, KernelMean, Laplacian, RationalQuadratic, median_distance

PLAIN = {  # each kernel written out for two outputs
    "rational_quadratic": lambda a, b: (1 + oracles.rms_distance(a, b) ** 2 / (2 * 1.3 * 0.3**2)) ** -1.3,
    "paper": lambda a, b: 1 / math.sqrt(1 + oracles.rms_distance(a, b) ** 2 / 0.04**2),
    "gaussian": lambda a, b: math.exp(-(oracles.rms_distance(a, b) ** 2) / (2 * 0.4**2)),
    "laplacian": lambda a, b: math.exp(-oracles.rms_distance(a, b) / 0.6),
    "energy": lambda a, b: -oracles.rms_distance(a, b),
}
LOSSES = {
    "rational_quadratic": lambda **k: MMD(RationalQuadratic(0.3, alpha=1.3), **k),
    "paper": lambda **k: MMD(**k),
    "gaussian": lambda **k: MMD(Gaussian(0.4), **k),
    "laplacian": lambda **k: MMD(Laplacian(0.6), **k),
    "energy": lambda **k: EnergyScore(**k),
}


@pytest.fixture
def batch(rng):
    samples = torch.randn(4, 5, 3, 2, generator=rng, dtype=torch.float64)
    return samples, torch.randn(4, 3, 2, generator=rng, dtype=torch.float64)


@pytest.mark.parametrize("name", LOSSES)
def test_value_equals_the_loop(batch, name):
    samples, targets = batch
    weight = 0.5 if name == "energy" else 1.0
    joint = LOSSES[name](scope="joint")(samples, targets).value
    node = LOSSES[name](scope="node")(samples, targets).value
    for pair in range(4):
        expected = oracles.kernel_score(samples[pair], targets[pair], PLAIN[name], weight)
        assert float(joint[pair, 0]) == pytest.approx(expected, abs=1e-12)
        for i in range(3):
            expected = oracles.kernel_score(samples[pair, :, i], targets[pair, i], PLAIN[name], weight)
            assert float(node[pair, i]) == pytest.approx(expected, abs=1e-12)


def test_energy_score_equals_scoringrules(batch):
    samples, targets = batch
    expected = scoringrules.es_ensemble(targets.flatten(1).numpy(), samples.flatten(2).numpy(), estimator="fair")
    ours = EnergyScore(scope="joint")(samples, targets).value[:, 0]
    assert ours.numpy() == pytest.approx(expected / math.sqrt(6), abs=1e-12)


def test_node_energy_score_of_one_channel_is_the_crps(batch):
    samples, targets = batch[0][..., :1], batch[1][..., :1]
    expected = scoringrules.crps_ensemble(targets[..., 0].numpy(), samples[..., 0].mT.numpy(), estimator="fair")
    assert EnergyScore(scope="node")(samples, targets).value.numpy() == pytest.approx(expected, abs=1e-12)


def test_gaussian_mmd_equals_the_kernel_score_of_scoringrules(batch):
    """Theirs has the Euclidean distance, scale 1, half of the first term and a constant 1/2 more."""
    samples, targets = batch
    theirs = scoringrules.gksmv_ensemble(targets.flatten(1).numpy(), samples.flatten(2).numpy(), estimator="fair")
    ours = MMD(Gaussian(1 / math.sqrt(6)), scope="joint")(samples, targets).value[:, 0]
    assert ours.numpy() == pytest.approx(2 * theirs - 1, abs=1e-12)


def test_mean_of_kernels(batch):
    samples, targets = batch
    narrow, wide = Gaussian(0.1), Gaussian(1.0)
    apart = [MMD(kernel)(samples, targets).value for kernel in (narrow, wide)]
    assert torch.allclose(MMD(KernelMean((narrow, wide)))(samples, targets).value, sum(apart) / 2, atol=1e-12)


@pytest.mark.parametrize("scope", ["node", "joint"])
def test_median_distance_equals_the_loop(batch, scope):
    _, targets = batch
    parts = [slice(i, i + 1) for i in range(3)] if scope == "node" else [slice(0, 3)]
    pairs = itertools.combinations(range(4), 2)
    distances = [oracles.rms_distance(targets[a, part], targets[b, part]) for a, b in pairs for part in parts]
    assert median_distance(targets, scope) == pytest.approx(statistics.median(distances), abs=1e-12)


def test_median_distance_leaves_out_what_is_missing(batch):
    _, targets = batch
    observed = torch.ones_like(targets)
    observed[0] = observed[1, 2] = 0
    fillers = [torch.where(observed > 0, targets, filler) for filler in (0.0, 99.0, torch.nan)]
    medians = [median_distance(filled, "joint", observed) for filled in fillers]
    distances = [
        oracles.rms_distance(targets[1, :2], targets[2, :2]),
        oracles.rms_distance(targets[1, :2], targets[3, :2]),
        oracles.rms_distance(targets[2], targets[3]),
    ]
    assert medians == [pytest.approx(statistics.median(distances), abs=1e-12)] * 3


@pytest.mark.parametrize(
    "kernel",
    [
        RationalQuadratic(0.3),
        RationalQuadratic(0.3, 2.0),
        Gaussian(0.5),
        Laplacian(0.5),
        KernelMean((Gaussian(0.1), Gaussian(1.0))),
    ],
)
def test_kernels_are_positive_definite(rng, kernel):
    points = torch.randn(40, 3, generator=rng, dtype=torch.float64)
    matrix = kernel(torch.cdist(points, points).square() / 3)
    assert torch.linalg.eigvalsh(matrix).min() > 0


@pytest.mark.parametrize("name", LOSSES)
def test_leave_one_out_baseline_is_blind_to_its_graph(batch, name):
    samples, targets = batch
    changed = samples.clone()
    changed[:, 2] += 1.7
    before, after = (LOSSES[name]()(s, targets).baseline for s in (samples, changed))
    assert torch.allclose(before[:, 2], after[:, 2], atol=1e-13)
    assert (before[:, 1] - after[:, 1]).abs().min() > 1e-6


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("scope", ["node", "joint"])
def test_equal_samples_have_finite_gradients(name, scope):
    samples = torch.zeros(2, 4, 3, 1, requires_grad=True)
    LOSSES[name](scope=scope)(samples, torch.zeros(2, 3, 1)).value.sum().backward()
    assert torch.isfinite(samples.grad).all()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("scope", ["node", "joint"])
def test_nan_is_never_a_score(name, scope):
    samples = torch.zeros(1, 4, 2, 1)
    samples[0, 1, 0, 0] = torch.nan
    assert LOSSES[name](scope=scope)(samples, torch.zeros(1, 2, 1)).value.isnan().any()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("scope", ["node", "joint"])
def test_leave_one_out_baseline_equals_the_loop(batch, name, scope):
    """2c (mean of k over ordered pairs without s, minus mean of k(y, y_t) over t != s)."""
    samples, targets = batch
    weight = 0.5 if name == "energy" else 1.0
    baseline = LOSSES[name](scope=scope)(samples, targets).baseline
    parts = [slice(i, i + 1) for i in range(3)] if scope == "node" else [slice(0, 3)]
    for (unit, part), s in itertools.product(enumerate(parts), range(5)):
        others = [samples[0, t, part] for t in range(5) if t != s]
        spread = [PLAIN[name](a, b) for a, b in itertools.permutations(others, 2)]
        data = [PLAIN[name](targets[0, part], a) for a in others]
        expected = 2 * weight * (sum(spread) / len(spread) - sum(data) / len(data))
        assert float(baseline[0, s, unit]) == pytest.approx(expected, abs=1e-12)


def test_errors_name_argument_need_value_and_remedy(batch, unchecked, refused):
    samples, targets = batch
    refused(MMD(), samples[:, :2], targets)
    refused(EnergyScore(baseline="none"), samples[:, :1], targets)
    refused(MMD, scope="nod")
    refused(EnergyScore, baseline="loo")
    for kernel in (RationalQuadratic, Gaussian, Laplacian):
        refused(kernel, scale=-1.0)
    refused(MMD, "rbf")
    refused(KernelMean, ())
    refused(median_distance, targets[:1])
    refused(median_distance, torch.zeros(5, 2, 1))
    refused(median_distance, torch.full((5, 2, 1), torch.nan))
    refused(median_distance, targets, "foo")
    refused(Gaussian, "a")
    refused(MMD, EnergyScore())
    refused(MMD, weight=-1)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("scope", ["node", "joint"])
@pytest.mark.parametrize("name", LOSSES)
def test_pair_costs_are_what_the_loss_averages(batch, name, scope, missing):
    """The mean of a row without its own place is the part of the cost that compares; and each cost by the loop."""
    samples, targets = batch
    observed = torch.ones_like(targets)
    if missing:
        observed[0, 1], observed[1, :, 0], observed[2, 2, 1] = 0, 0, 0
    observed = observed if missing else None
    loss, weight = LOSSES[name](scope=scope), 0.5 if name == "energy" else 1.0
    costs = loss.pair_costs(samples, observed)
    assert costs.shape == (4, 5, 5, 3 if scope == "node" else 1)
    compared = loss.parts(samples, targets, observed, 1)[0]
    assert compared.ends == 2
    assert torch.allclose((costs.sum(2) - costs.diagonal(dim1=1, dim2=2).mT) / 4, compared.values, atol=1e-12)
    seen = torch.ones_like(targets) > 0 if observed is None else observed > 0
    for b, s, t in itertools.product(range(4), range(5), range(5)):
        for u, unit in enumerate([[0], [1], [2]] if scope == "node" else [[0, 1, 2]]):
            there = seen[b, unit]
            if there.any():
                expected = weight * PLAIN[name](samples[b, s, unit][there], samples[b, t, unit][there])
                assert float(costs[b, s, t, u]) == pytest.approx(expected, abs=1e-7 if s == t else 1e-12)

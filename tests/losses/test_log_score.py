"""The log score: value, baseline, missing targets, the bias of few graphs, and what is refused."""

import itertools
import math

import pytest
import torch

from tacit.estimators import DisARM
from tacit.losses import LogScore
from tacit.observation import BernoulliTargets, GaussianNoise, HeadGaussianNoise, NoNoise, ObservationModel
from tacit.predictors import HopPredictor
from tacit.training import LatentGraphModel
from toys import even_graph

NOISE = HeadGaussianNoise()


@pytest.fixture
def batch(rng):
    means = torch.randn(4, 5, 3, 1, generator=rng, dtype=torch.float64)
    sigmas = 0.3 + torch.rand(4, 5, 3, 1, generator=rng, dtype=torch.float64)
    return torch.cat([means, sigmas], -1), torch.randn(4, 3, 1, generator=rng, dtype=torch.float64)


def density(described, target):
    mean, sigma = described.tolist()
    return math.exp(-(((float(target) - mean) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))


@pytest.mark.parametrize("scope", ["node", "joint"])
def test_value_and_baseline_equal_the_loop(batch, scope):
    described, targets = batch
    terms = LogScore(NOISE, scope=scope)(described, targets)
    units = [[i] for i in range(3)] if scope == "node" else [[0, 1, 2]]
    for b, (u, nodes) in itertools.product(range(4), enumerate(units)):
        found = [math.prod(density(described[b, s, i], targets[b, i, 0]) for i in nodes) for s in range(5)]
        value = -math.log(sum(found) / 5) / len(nodes)
        assert float(terms.value[b, u]) == pytest.approx(value, abs=1e-12)
        assert terms.cost[b, :, u].tolist() == pytest.approx([5 * value] * 5, abs=1e-11)
        for s in range(5):
            others = [p for t, p in enumerate(found) if t != s]
            replaced = [*others, math.prod(others) ** 0.25]
            assert float(terms.baseline[b, s, u]) == pytest.approx(
                -5 * math.log(sum(replaced) / 5) / len(nodes), abs=1e-11
            )


@pytest.mark.parametrize("scope", ["node", "joint"])
def test_missing_targets_change_nothing(batch, scope):
    described, targets = batch
    observed = torch.ones_like(targets)
    observed[0], observed[1, 2] = 0, 0
    fillers = [torch.where(observed > 0, targets, filler) for filler in (0.0, torch.nan)]
    first, second = (LogScore(NOISE, scope=scope)(described, filled, observed) for filled in fillers)
    assert torch.equal(first.value, second.value)
    assert torch.equal(first.cost, second.cost)
    assert torch.equal(first.baseline, second.baseline)
    alone = LogScore(NOISE, scope="joint")(described[1:2, :, :2], targets[1:2, :2])
    if scope == "joint":
        assert first.weight[:, 0].tolist() == pytest.approx([0, 2 / 3, 1, 1])
        assert float(first.value[1, 0]) == pytest.approx(2 / 3 * float(alone.value[0, 0]), abs=1e-12)


def least_at(num_graphs, truth=0.1):
    """Where the expected loss of yes or no is least over theta: p is 0.9 with an edge, 0.1 without."""
    grid = torch.linspace(0.001, 0.999, 999, dtype=torch.float64)
    edges = torch.arange(num_graphs + 1, dtype=torch.float64)  # graphs with the edge
    logits = torch.where(torch.arange(num_graphs) < edges[:, None], 0.9, 0.1).double().logit()[..., None, None]
    loss = LogScore(BernoulliTargets(1).double(), baseline="none")
    yes, no = (loss(logits, torch.full((num_graphs + 1, 1, 1), v).double()).value[:, 0] for v in (1.0, 0.0))
    high = truth * 0.9 + (1 - truth) * 0.1
    count = torch.distributions.Binomial(num_graphs, grid[:, None])
    return float(grid[(count.log_prob(edges).exp() @ (high * yes + (1 - high) * no)).argmin()])


def test_few_graphs_bend_theta_and_many_do_not():
    """The figures of the module's text."""
    found = {graphs: least_at(graphs) for graphs in (4, 8, 16, 64, 512)}
    assert found == pytest.approx({4: 0.001, 8: 0.067, 16: 0.09, 64: 0.098, 512: 0.1}, abs=6e-4)


def test_errors(rng, unchecked, refused):
    class Silent(BernoulliTargets):
        log_prob = ObservationModel.log_prob

    graph, predictor = even_graph(3), HopPredictor.random(1, 2, generator=rng)
    noise = GaussianNoise(3)
    refused(LogScore, baseline="paper")
    refused(LogScore, Silent(3))
    refused(LatentGraphModel, graph, predictor, LogScore(), observation=NoNoise())
    refused(LatentGraphModel, graph, predictor, LogScore(), observation=noise, estimator=DisARM())
    refused(LogScore(), torch.zeros(1, 3, 1, 1), torch.zeros(1, 1, 1))

"""Correlated edges keep their marginals; which theta independent edges go to, from all graphs of two edges."""

import itertools

import numpy as np
import pytest
import torch
from benchmarks.studies.correlated_system import (
    CorrelatedGraph,
    CorrelatedSystem,
    columns_together,
    each_alone,
    exclusive_pairs,
    rows_together,
)
from scipy.optimize import minimize

from tacit.data import Pairs
from tacit.graph import BernoulliGraph
from tacit.losses import MMD, EnergyScore, RationalQuadratic
from tacit.systems import CommunitySystem, community_edge_probs
from tacit.training import FitSettings, LatentGraphModel, fit

GRAPHS = np.array(list(itertools.product((0, 1), repeat=2)))  # of two edges: (graph, edge)
TOGETHER, EXCLUSIVE = np.array([0.25, 0, 0, 0.75]), np.array([0, 0.5, 0.5, 0])  # probabilities of 00, 01, 10, 11
INPUTS = np.random.default_rng(0).normal(size=(50, 2))


def kernel_on_graphs(kappa):
    """The mean over inputs of kappa(y, y') for y = sum of the inputs of the edges that are there: (graph, graph)."""
    outputs = INPUTS @ GRAPHS.T
    return kappa(np.abs(outputs[:, :, None] - outputs[:, None, :])).mean(0)


KERNELS = {
    "equal or not": np.eye(4),
    "means alone": GRAPHS @ GRAPHS.T,
    "energy": kernel_on_graphs(lambda distance: -distance),
    "mmd": kernel_on_graphs(lambda distance: 1 / (1 + distance**2 / 0.1)),
}


def nearest_independent(truth, kernel):
    """The edge probabilities of least expected loss, from several starts."""

    def loss(logits):
        probs = 1 / (1 + np.exp(-logits))
        gap = truth - np.where(GRAPHS, probs, 1 - probs).prod(1)
        return gap @ kernel @ gap

    starts = ([0.0, 0.1], [1.5, 1.5], [2.0, -2.0], [-2.0, 2.0])
    best = min((minimize(loss, start, tol=1e-15) for start in starts), key=lambda found: found.fun)
    return 1 / (1 + np.exp(-best.x))


def test_edges_that_come_together_look_surer_than_they_are():
    found = {name: nearest_independent(TOGETHER, kernel) for name, kernel in KERNELS.items()}
    assert found["means alone"] == pytest.approx([0.75, 0.75], abs=1e-5)
    assert found["equal or not"] == pytest.approx([(1 + 0.5 ** (1 / 3)) / 2] * 2, abs=1e-5)  # the docstring's formula
    for name in ("energy", "mmd"):
        assert (found[name] > 0.78).all()
        assert (found[name] < found["equal or not"]).all()


def test_of_two_edges_that_exclude_each_other_the_marginals_are_kept_but_flat():
    for name in ("energy", "mmd"):
        assert nearest_independent(EXCLUSIVE, KERNELS[name]) == pytest.approx([0.5, 0.5], abs=1e-3)
    for d in (0.1, 0.2, 0.3):
        gap = EXCLUSIVE - np.where(GRAPHS, [0.5 + d, 0.5 - d], [0.5 - d, 0.5 + d]).prod(1)
        assert gap @ gap == pytest.approx(0.25 + 4 * d**4, abs=1e-12)


class Sum(torch.nn.Module):
    """y_i = the sum of the inputs that node i reads."""

    def forward(self, inputs, graphs):
        return graphs @ inputs[:, None]


@pytest.mark.parametrize(
    ("loss", "name"), [(EnergyScore(scope="node"), "energy"), (MMD(RationalQuadratic(scale=0.05)), "mmd")]
)
def test_training_goes_where_the_enumeration_says(loss, name, rng, unchecked):
    """Node 2 reads nodes 0 and 1, both or none; nobody else reads. Of 2,000 pairs a frequency is .01 off."""
    place = torch.zeros(3, 3, dtype=torch.bool)
    place[2, :2] = True
    x = torch.from_numpy(INPUTS).float().repeat(40, 1)
    inputs = torch.cat([x, torch.zeros(len(x), 1)], 1)[..., None]
    truth = CorrelatedGraph(0.75 * place.float(), *rows_together(place))
    targets = Sum()(inputs, truth.sample(1, num_pairs=len(x), generator=rng))[:, 0]
    graph = BernoulliGraph(0.5 * place.float(), fixed=~place)
    pairs = Pairs(inputs, targets)
    model = LatentGraphModel(graph, Sum(), loss, num_graphs=16)
    fit(model, pairs, pairs, FitSettings(epochs=12, batch_size=200), compile=False)
    expected = nearest_independent(TOGETHER, KERNELS[name])
    assert model.graph.edge_probs[2, :2].tolist() == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("ties", [each_alone, rows_together, columns_together, exclusive_pairs])
def test_marginals_are_kept(ties, rng):
    """Within five standard errors for each of 50 entries, all four ties: a false alarm in 9,000 random starts."""
    truth = community_edge_probs(edge_prob=0.5)
    graphs = CorrelatedGraph(truth, *ties(truth > 0)).sample(4000, generator=rng)[0]
    assert (graphs.mean(0) - truth).abs().max() < 5 * 0.5 / 4000**0.5
    assert (graphs[:, truth == 0] == 0).all()


def test_edges_are_tied_as_they_are_called(rng):
    truth = community_edge_probs()
    edges = truth > 0
    rows = CorrelatedGraph(truth, *rows_together(edges)).sample(50, generator=rng)[0].sum(-1)
    assert ((rows == 0) | (rows == edges.sum(-1))).all()
    columns = CorrelatedGraph(truth, *columns_together(edges)).sample(50, generator=rng)[0].sum(-2)
    assert ((columns == 0) | (columns == edges.sum(-2))).all()
    even = community_edge_probs(edge_prob=0.5)
    pairs = CorrelatedGraph(even, *exclusive_pairs(edges)).sample(50, generator=rng)[0].sum(-1)
    assert ((pairs == edges.sum(-1) // 2) | (pairs == -(-edges.sum(-1) // 2))).all()


def test_untied_edges_give_the_pairs_of_the_plain_system():
    truth = community_edge_probs()
    plain, untied = CommunitySystem().generate(20), CorrelatedSystem(ties=each_alone(truth > 0)).generate(20)
    assert torch.equal(plain.targets, untied.targets)
    assert not torch.equal(plain.targets, CorrelatedSystem().generate(20).targets)


def test_sources_of_another_shape_are_refused(unchecked, refused):
    refused(CorrelatedGraph, community_edge_probs(), *rows_together(torch.ones(3, 3).bool()))

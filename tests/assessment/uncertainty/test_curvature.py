"""The curvature of edges: in expectation the second derivative of the exact loss, when the data is the model's own."""

import itertools
import math
from importlib import import_module

import pytest
import torch
from torch.autograd.functional import hessian

import oracles
from tacit.assessment.uncertainty.sandwich import centred, edge_curvature
from tacit.data import Pairs
from tacit.estimators import ReceptiveFieldCredit
from tacit.losses import EnergyScore, PointMSE
from tacit.observation import GaussianNoise
from tacit.observation.gaussian import expected_distance
from tacit.training import LatentGraphModel
from toys import LOSSES, ONE_EDGE, THREE_EDGES, TOLERANCE, TWO_EDGES, toy

curvature = import_module("tacit.assessment.uncertainty.sandwich")  # the name in the package is the function

OWN_AND_OTHER = torch.tensor([[True, True], [False, False]])  # a self-loop and a pair of a symmetric graph
CHAIN = torch.tensor([[False, True, False], [False, False, True], [True, False, False]])
# Each entry of a matrix of at most 3 edges, 29 degrees of freedom: a false alarm in 2,000 runs of a test.
MOST_ERRORS = 5.0


def problem(free, loss, *, missing=False, **choices):
    """A toy model and a few pairs, with ``missing`` some of a node unobserved, and one that observes nothing."""
    num_pairs = 3 if missing else 2
    model, inputs, targets = toy(free, loss, num_pairs, 4, **choices)
    seen = torch.tensor([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]], dtype=torch.float64)[..., None]
    return model, Pairs(inputs, targets, seen if missing else None)


def every_graph(model, free):
    """All graphs, and the probability of each as a function of the free edges' probabilities."""
    coins = oracles.all_graphs(free)

    def probs(theta):
        return oracles.graph_probs(coins, torch.zeros_like(coins[0]).masked_scatter(free, theta))

    return (torch.maximum(coins, coins.mT) if model.graph.symmetric else coins), probs


def exact_curvature(name, model, pairs, free):
    """The second derivative, at the model's own theta, of the expected loss of targets that the model makes."""
    graphs, probs = every_graph(model, free)
    here = model.graph.edge_probs.detach()[free]
    samples = model.predictor(pairs.inputs, graphs[None]).detach()

    def loss(theta):
        by_target = [
            oracles.expected_loss(name, model.loss.scope, probs(theta), samples, samples[:, g], pairs.observed)
            for g in range(len(graphs))
        ]
        return (probs(here) * torch.stack(by_target)).sum()

    return hessian(loss, here)


def expected_curvature(model, pairs, free, num_graphs=4):
    """The mean of the estimate over every tuple of graphs, weighted by its probability; and its mean square."""
    graphs, probs = every_graph(model, free)
    weights = probs(model.graph.edge_probs.detach()[free])
    mean, square = 0.0, 0.0
    for chosen in itertools.product(range(len(graphs)), repeat=num_graphs):
        found = with_graphs(model, pairs, free, graphs[list(chosen)])
        mean, square = (mean + weights[list(chosen)].prod() * part for part in (found, found**2))
    return mean, square


def with_graphs(model, pairs, free, graphs):
    """The estimate from graphs that all pairs share, instead of drawn ones."""
    model.graph.sample = lambda _, *, num_pairs, **__: graphs.expand(num_pairs, *graphs.shape)
    try:
        return edge_curvature(model, pairs, free, generator=torch.Generator(), num_graphs=len(graphs))
    finally:
        del model.graph.sample


def mean_over_draws(model, pairs, free, repeats=30):
    """Mean and standard error of the estimate over draws of graphs."""
    found = torch.stack(
        [edge_curvature(model, pairs, free, generator=torch.Generator().manual_seed(r)) for r in range(repeats)]
    )
    return found.mean(0), found.std(0) / math.sqrt(repeats)


CASES = {
    "global credit": (TWO_EDGES, {"credit": "global"}),
    "receptive field": (TWO_EDGES, {"credit": "receptive_field"}),
    "symmetric": (OWN_AND_OTHER, {"symmetric": True, "credit": "global"}),
    "symmetric receptive field": (OWN_AND_OTHER, {"symmetric": True, "credit": "receptive_field"}),
    "missing": (TWO_EDGES, {"missing": True}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["energy", "gaussian"])
def test_expectation_is_the_second_derivative_at_node_scope(name, case):
    free, choices = CASES[case]
    model, pairs = problem(free, LOSSES[name](scope="node"), **choices)
    exact = exact_curvature(name, model, pairs, free)
    assert exact.abs().min() > 1e-3, "the check would be empty"
    assert (expected_curvature(model, pairs, free)[0] - exact).abs().max() < TOLERANCE


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_expectation_is_the_second_derivative_at_joint_scope(symmetric, missing):
    free = OWN_AND_OTHER if symmetric else TWO_EDGES
    model, pairs = problem(free, EnergyScore(scope="joint"), symmetric=symmetric, missing=missing)
    exact = exact_curvature("energy", model, pairs, free)
    assert exact.abs().min() > 1e-3, "the check would be empty"
    assert (expected_curvature(model, pairs, free)[0] - exact).abs().max() < TOLERANCE


def test_the_exact_second_derivative_equals_second_differences():
    """The reference checked by another way: the loss is of second degree in each edge, so that any step will do."""
    model, pairs = problem(TWO_EDGES, EnergyScore())
    graphs, probs = every_graph(model, TWO_EDGES)
    here, step = model.graph.edge_probs.detach()[TWO_EDGES], 0.01
    samples = model.predictor(pairs.inputs, graphs[None]).detach()
    own = torch.eye(2, dtype=torch.float64) * step

    def loss(theta):
        by_target = [oracles.expected_loss("energy", "node", probs(theta), samples, samples[:, g]) for g in range(4)]
        return float(sum(p * value for p, value in zip(probs(here), by_target, strict=True)))

    exact = exact_curvature("energy", model, pairs, TWO_EDGES)
    for a, b in itertools.product(range(2), repeat=2):
        corners = [s * t * loss(here + s * own[a] + t * own[b]) for s in (1, -1) for t in (1, -1)]
        assert sum(corners) / (4 * step**2) == pytest.approx(float(exact[a, b]), abs=1e-8)


@pytest.mark.parametrize("scope", ["node", "joint"])
def test_drawn_graphs_give_it_within_counted_errors(scope):
    model, pairs = problem(THREE_EDGES, EnergyScore(scope=scope))
    many = pairs[torch.arange(100) % 2]
    mean, error = mean_over_draws(model, many, THREE_EDGES)
    exact = exact_curvature("energy", model, pairs, THREE_EDGES)
    assert ((mean - exact).abs() < MOST_ERRORS * error).all()
    assert (error < 0.05 * exact.diagonal().mean()).all(), "the check would be weak"
    assert torch.equal(mean, mean.mT)


def noisy(loss):
    model, inputs, targets = toy(ONE_EDGE, EnergyScore(), 2, 4, hops=1)
    noise = GaussianNoise(num_nodes=2, initial_sigma=0.4)
    noisy = LatentGraphModel(model.graph, model.predictor, loss, observation=noise, num_graphs=4)
    return noisy.double(), Pairs(inputs, targets)


class SampledEnergyScore(EnergyScore):
    """The energy score without its closed form."""

    def integrating(self, observation):
        del observation


def exact_of_noisy(model, pairs):
    r"""$2 \sum P(A) P(A') h s s'$ of the one edge, $h$ the expected distance of two draws."""
    graphs, probs = every_graph(model, ONE_EDGE)
    theta = model.graph.edge_probs.detach()[ONE_EDGE]
    weights, score = probs(theta), (graphs[:, 0, 1] - theta) / (theta * (1 - theta))
    means, sigmas = model.describe(pairs.inputs, graphs[None]).detach().chunk(2, -1)
    total = 0.0
    for s, t in itertools.product(range(2), repeat=2):
        both = torch.hypot(sigmas[:, s], sigmas[:, t])
        cost = -0.5 * expected_distance(means[:, s] - means[:, t], both).mean()
        total += 2 * weights[s] * weights[t] * cost * score[s] * score[t]
    return float(total)


def test_noise_that_is_integrated():
    model, pairs = noisy(EnergyScore())
    exact = exact_of_noisy(model, pairs)
    assert exact > 1e-3
    assert float(expected_curvature(model, pairs, ONE_EDGE)[0]) == pytest.approx(exact, abs=TOLERANCE)


def test_noise_that_is_sampled():
    """Without it the curvature would be another: noise blurs what an edge does."""
    model, pairs = noisy(SampledEnergyScore())
    assert model.noise_channels == 1
    exact = exact_of_noisy(model, pairs)
    mean, error = mean_over_draws(model, pairs[torch.arange(200) % 2], ONE_EDGE)
    assert abs(float(mean) - exact) < MOST_ERRORS * float(error)
    sharp, sharp_pairs = problem(ONE_EDGE, EnergyScore(), hops=1)
    without = float(exact_curvature("energy", sharp, sharp_pairs, ONE_EDGE))
    assert abs(without - exact) > 10 * float(error)


def test_centred_equals_the_loop(rng):
    costs = torch.rand(2, 5, 5, 3, generator=rng, dtype=torch.float64)
    costs = costs + costs.transpose(1, 2)
    found = centred(costs)
    for b, u, s, t in itertools.product(range(2), range(3), range(5), range(5)):
        h, others = costs[b, :, :, u], [r for r in range(5) if r not in (s, t)]
        row, column = (sum(h[end, r] for r in others) / 3 for end in (s, t))
        rest = sum(h[r, q] for r, q in itertools.permutations(others, 2)) / 6
        expected = h[s, t] - row - column + rest if s != t else torch.zeros(())
        assert float(found[b, s, t, u]) == pytest.approx(float(expected), abs=1e-12)


def test_centring_leaves_the_expectation_and_lowers_the_variance(monkeypatch):
    """One edge, every tuple of four graphs: the mean is the same with and without, to rounding.

    A kernel that is 1 at distance 0 has a mean to take away.
    """
    model, pairs = problem(ONE_EDGE, LOSSES["gaussian"](), hops=1)
    moments = {"centred": expected_curvature(model, pairs, ONE_EDGE)}
    off = 1 - torch.eye(4, dtype=torch.float64)[..., None]
    monkeypatch.setattr(curvature, "centred", lambda costs: costs * off)
    moments["plain"] = expected_curvature(model, pairs, ONE_EDGE)
    assert float(moments["centred"][0]) == pytest.approx(float(moments["plain"][0]), abs=TOLERANCE)
    variance = {name: float(square - mean**2) for name, (mean, square) in moments.items()}
    assert variance["centred"] < 0.5 * variance["plain"]


@pytest.mark.parametrize("symmetric", [False, True])
def test_a_node_counts_the_scores_of_edges_that_it_can_feel(symmetric, rng):
    """The edges of a row count for the nodes that reach it over one edge less than there are hops; against a loop."""
    free = torch.triu(torch.ones(3, 3, dtype=torch.bool)) if symmetric else torch.ones(3, 3, dtype=torch.bool)
    model, _, _ = toy(free, EnergyScore(), 1, 4, symmetric=symmetric)
    assert model.estimator.credit == ReceptiveFieldCredit(2)
    graphs = model.graph.sample(6, num_pairs=2, generator=rng)
    found = curvature._unit_scores(model, graphs, free, 3).detach()
    theta, unfelt = model.graph.edge_probs.detach(), 0
    for b, s, i, (e, (j, k)) in itertools.product(range(2), range(6), range(3), enumerate(free.nonzero().tolist())):
        graph = graphs[b, s]
        felt = any(i == end or graph[i, end] > 0 for end in ((j, k) if symmetric else (j,)))
        score = graph[j, k] - theta[j, k]
        assert float(found[b, s, i, e]) == pytest.approx(float(score) if felt else 0.0, abs=1e-12)
        unfelt += not felt
    assert unfelt > 20, "the check would be empty"


def test_chunks_of_pairs_add_up(monkeypatch):
    model, pairs = problem(TWO_EDGES, EnergyScore(), missing=True)
    graphs, _ = every_graph(model, TWO_EDGES)
    whole = with_graphs(model, pairs, TWO_EDGES, graphs)
    monkeypatch.setattr(curvature, "MOST_NUMBERS", 1)
    assert torch.allclose(with_graphs(model, pairs, TWO_EDGES, graphs), whole, atol=1e-14)


def test_order_of_the_edges_is_that_of_their_places():
    """Of three edges in a ring the curvature of two is a part of that of all, under the same graphs."""
    model, inputs, targets = toy(CHAIN, EnergyScore(), 2, 4)
    pairs, some = Pairs(inputs, targets), CHAIN.clone()
    some[1] = False
    every, part = (
        edge_curvature(model, pairs, edges, generator=torch.Generator().manual_seed(0)) for edges in (CHAIN, some)
    )
    assert torch.allclose(part, every[[0, 2]][:, [0, 2]], atol=1e-14)


def test_a_loss_that_compares_no_graphs_is_refused(refused):
    model, pairs = problem(TWO_EDGES, PointMSE())
    refused(edge_curvature, model, pairs, TWO_EDGES, generator=torch.Generator())

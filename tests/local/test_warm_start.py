import pytest
import torch
from benchmarks.studies.gpvar_system import GPVARSystem

from tacit.data import Pairs, ridge_regression
from tacit.graph import BernoulliGraph
from tacit.local import edge_start, filter_start, start_at_regression, start_ridge
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise
from tacit.predictors import GraphFilter
from tacit.training import LatentGraphModel


def linear_pairs(rng, rows=200, nodes=4, window=2, features=1, channels=1, noise=0.1):
    """Pairs whose targets are a noisy linear function of all inputs."""
    inputs = torch.randn(rows, nodes, window * features, generator=rng, dtype=torch.float64)
    weights = torch.randn(nodes, nodes, window * features, channels, generator=rng, dtype=torch.float64)
    error = noise * torch.randn(rows, nodes, channels, generator=rng, dtype=torch.float64)
    return Pairs(inputs, 1.5 + torch.einsum("bjc,ijco->bio", inputs, weights) + error)


EVERY_EDGE = torch.ones(4, 4, dtype=torch.bool)


def started(pairs, predictor, possible=EVERY_EDGE, **choices):
    return filter_start(start_ridge(pairs, predictor), predictor, possible, **choices)


def prediction(predictor, inputs, edges=EVERY_EDGE):
    return predictor.double()(inputs, edges.double()[None, None])[:, 0]


def test_the_strongest_share_of_edges_starts_high():
    system = GPVARSystem()
    start = edge_start(start_ridge(system.pairs(2002, window=2), GraphFilter(30, 2, 1)))
    away = ~torch.eye(30, dtype=torch.bool)
    assert sorted(start[away].unique().tolist()) == pytest.approx([0.03, 0.5])
    assert (start.diagonal() == 0).all()
    chosen = start == 0.5
    assert int(chosen.sum()) == round(0.15 * 870)
    found = (chosen & (system.true_edge_probs > 0)).sum() / system.true_edge_probs.sum()
    assert found > 0.9  # of the true edges; by chance 0.15


def test_the_penalty_is_chosen_on_the_last_fifth_and_all_pairs_are_used(rng):
    pairs = linear_pairs(rng, rows=40, noise=8.0)
    chosen = ridge_regression(pairs[:32], pairs[32:]).penalty
    assert chosen != ridge_regression(pairs[:20], pairs[20:]).penalty  # else the share would not matter here
    fit = ridge_regression(pairs, pairs, penalties=[chosen])
    warm = started(pairs, GraphFilter(4, 2, 1))
    assert torch.allclose(prediction(warm, pairs.inputs), fit.predict(pairs.inputs), atol=1e-5)
    cut = fit.edge_scores.flatten().sort(descending=True).values[1]  # 15% of the twelve
    assert torch.equal(edge_start(start_ridge(pairs, GraphFilter(4, 2, 1))) == 0.5, fit.edge_scores >= cut)


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize(("features", "channels"), [(1, 1), (2, 2)])
def test_with_every_edge_the_filter_predicts_what_the_regression_does(rng, residual, features, channels):
    pairs = linear_pairs(rng, features=features, channels=channels)
    plain = GraphFilter(4, 2, features, channels, residual=residual)
    warm = started(pairs, plain)  # self-loops too: they start at 0
    chosen = ridge_regression(pairs[:160], pairs[160:]).penalty
    expected = ridge_regression(pairs, pairs, penalties=[chosen]).predict(pairs.inputs)
    assert torch.allclose(prediction(warm, pairs.inputs), expected, atol=1e-5)


@pytest.mark.parametrize("residual", [True, False])
def test_what_is_not_sent_is_used_by_its_node_alone(rng, residual):
    """Three features, one of them sent, and two columns after the window: the exact linear function of these."""
    inputs = torch.randn(200, 4, 8, generator=rng, dtype=torch.float64)
    others = [[place for place in range(4) if place != node] for node in range(4)]
    designs = [torch.cat([inputs[:, i], inputs[:, others[i]][..., [0, 3]].flatten(1)], 1) for i in range(4)]
    weights = torch.randn(14, generator=rng, dtype=torch.float64)
    targets = torch.stack([design @ weights for design in designs], 1)[..., None]
    warm = started(Pairs(inputs, targets), GraphFilter(4, 2, 3, residual=residual, known=2))
    assert torch.allclose(prediction(warm, inputs), targets, atol=1e-4)


def test_an_edge_that_cannot_be_starts_at_0_and_replicas_differ_by_the_jitter(rng):
    pairs = linear_pairs(rng)
    possible = EVERY_EDGE.clone()
    possible[1, 2] = False
    warm = started(pairs, GraphFilter(4, 2, 1), possible)
    assert torch.isfinite(warm.edge_weights).all()
    assert (warm.edge_weights[1, 2] == 0).all()
    assert (warm.edge_weights[0, 1] != 0).all()
    same = warm.initial_parameters(torch.Generator().manual_seed(1))
    assert torch.equal(same["edge_weights"], warm.edge_weights)
    moved = started(pairs, GraphFilter(4, 2, 1), possible, jitter=0.1)
    one, other = (moved.initial_parameters(torch.Generator().manual_seed(s))["edge_weights"] for s in (1, 2))
    assert not torch.equal(one, other)


def test_errors(rng, unchecked, refused):
    pairs = linear_pairs(rng)
    refused(start_ridge, pairs[:2], GraphFilter(4, 2, 1))
    refused(filter_start, start_ridge(pairs, GraphFilter(4, 2, 1)), GraphFilter(4, 2, 1, activation="tanh"))


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_with_levels_the_start_is_least_squares_on_deviations(rng, missing):
    """Both nodes are random walks, and node 1 reads node 0; the columns are two lags, a known one and the level."""
    inputs = torch.randn(600, 2, 4, generator=rng).double()
    inputs[..., [0, 1, 3]] += torch.randn(600, 2, 1, generator=rng).double().cumsum(0)
    away = inputs[..., :2] - inputs[..., 3:]  # deviations from the level
    targets = inputs[..., 1:2] - 0.3 * away[..., 1:] + 0.5 * inputs[..., 2:3]
    targets[:, 1] += 0.8 * away[:, 0, 1:] - 0.4 * away[:, 0, :1]
    targets = targets + 0.1 * torch.randn(600, 2, 1, generator=rng).double()
    observed = (torch.rand(600, 2, 1, generator=rng) >= missing).double()
    pairs = Pairs(inputs, targets * observed, observed if missing else None)
    probs = torch.tensor([[0.0, 0.0], [0.5, 0.0]])
    predictor = GraphFilter(2, 2, 1, known=2, levels=1)
    model = LatentGraphModel(
        BernoulliGraph(probs, probs == 0), predictor, EnergyScore(), observation=GaussianNoise(2, 1)
    ).double()
    assert start_at_regression(model, pairs)
    own, bias = predictor.own.detach()[..., 0], predictor.bias.detach()[:, 0]
    for node, read in ((0, []), (1, [away[:, 0]])):
        known = observed[:, node, 0] > 0
        design = torch.cat([away[:, node], inputs[:, node, 2:3], *read, torch.ones(600, 1).double()], 1)[known]
        change = (targets - inputs[..., 1:2])[known, node, 0]
        wanted = torch.linalg.lstsq(design, change[:, None]).solution[:, 0]
        edge = predictor.edge_weights.detach()[node, 0, :, 0] * 0.5 if read else torch.zeros(0)
        found = torch.cat([own[node, :3], edge, bias[node : node + 1]])
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=0)
    assert (own[:, 3] == 0).all()  # the level itself is a random walk

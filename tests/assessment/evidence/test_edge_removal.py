"""Evidence from the model: exact on graphs that can be listed, and right on systems whose edges are known."""

import itertools
import math
from functools import partial
from importlib import import_module

import pytest
import torch
from scipy import integrate

import oracles
from tacit.assessment.evidence import keep_edges, model_evidence
from tacit.assessment.evidence.flips import (
    differing_nodes,
    existence,
    log_bayes_factor,
    loss_parabolas,
    signed_effects,
    standardised,
)
from tacit.assessment.evidence.model_evidence import Course, EdgeTests, retrain_without, unit_losses
from tacit.data import Pairs
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.predictors import GraphFilter, HopPredictor
from tacit.training import CosineDecay, FitSettings, LatentGraphModel
from toys import LOSSES, THREE_EDGES, TOLERANCE, toy

removal = import_module("tacit.assessment.evidence.model_evidence")  # the name in the package is the function
SETTINGS = FitSettings(epochs=4, batch_size=64, schedule=CosineDecay(0.1))
WEIGHTS = torch.tensor([[0.8, -0.5], [-0.6, 0.4]])[..., None]  # (hop, in_channel, channel)


def chain(num_pairs=600, seed=0):
    """Four nodes, 0 -> 1 -> 2 -> 3 and back from 3 to 0, each edge there in three of four pairs; two hops."""
    truth = torch.zeros(4, 4)
    truth[[1, 2, 3, 0], [0, 1, 2, 3]] = 0.75
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(num_pairs, 4, 2, generator=generator)
    graphs = BernoulliGraph(truth).sample(1, num_pairs=num_pairs, generator=generator)
    return truth, Pairs(inputs, HopPredictor(WEIGHTS)(inputs, graphs)[:, 0].detach())


@pytest.mark.parametrize("block", [1, 7, 8192, 9000, 30000])
def test_some_of_many_pairs_are_whole_blocks_spread_over_them(block):
    rows = torch.arange(20000.0)[:, None, None]
    some = removal._some(Pairs(rows, rows), block).inputs.flatten()
    size = min(block, removal.MOST_PAIRS)
    assert len(some) == removal.MOST_PAIRS // size * size
    assert (some.view(-1, size).diff() == 1).all()
    assert len(some.unique()) == len(some)


def fitted(probs, fixed=None, weights=WEIGHTS):
    """A model as a fit would leave it."""
    return LatentGraphModel(BernoulliGraph(probs, fixed), HopPredictor(weights), EnergyScore(), num_graphs=4)


def evidence(model, pairs, **choices):
    return model_evidence(model, pairs, pairs[:64], SETTINGS, compile=False, **choices)


@pytest.fixture
def together(monkeypatch):
    """Train all replicas in one program, as on a GPU: faster, with the same result."""
    monkeypatch.setattr(removal, "fit", partial(removal.fit, lift="vmap"))
    monkeypatch.setattr(removal, "SETTLE", Course(96, 0.5))


@pytest.fixture
def quick(monkeypatch, together):
    """Short trainings."""
    monkeypatch.setattr(removal, "SEARCH", Course(32, 0.5))


@pytest.mark.parametrize("scope", ["node", "joint"])
@pytest.mark.parametrize("name", ["energy", "gaussian", "literature_mse"])
def test_a_parabola_is_the_exact_expected_loss(name, scope, monkeypatch):
    """The mean over every set of graphs that could be drawn is the difference of expected losses, at any q."""
    model, inputs, targets = toy(THREE_EDGES, LOSSES[name](scope=scope), 1, 3)
    graphs, edge = oracles.all_graphs(THREE_EDGES), torch.tensor([[0, 1]])
    chances = oracles.graph_probs(graphs, torch.where(THREE_EDGES, model.graph.edge_probs.detach(), 0.0))
    sets = torch.tensor(list(itertools.product(range(len(graphs)), repeat=2)))
    monkeypatch.setattr(model.graph, "sample_from", lambda _: graphs[sets])
    repeated = Pairs(inputs.expand(len(sets), -1, -1), targets.expand(len(sets), -1, -1))
    found = loss_parabolas(model, repeated, edge, num_graphs=2, generator=torch.Generator().manual_seed(0))
    weights = chances[sets].prod(1)
    slope, curvature = (part[0] @ weights for part in found)

    def expected(q):
        probs = torch.where(THREE_EDGES, model.graph.edge_probs.detach(), 0.0)
        probs[0, 1] = q
        samples = model.predictor(inputs, graphs[None]).detach()
        return oracles.expected_loss(name, scope, oracles.graph_probs(graphs, probs), samples, targets, None)

    for q in (0.2, 0.7, 1.0):
        rise = (slope * q + curvature * q**2).item()
        assert rise == pytest.approx((expected(q) - expected(0.0)).item(), abs=TOLERANCE)


def test_an_edge_of_a_symmetric_graph_is_flipped_in_both_places():
    model, inputs, targets = toy(torch.tensor([[False, True], [False, False]]), EnergyScore(), 4, 3, symmetric=True)
    pairs, rng = Pairs(inputs, targets), torch.Generator().manual_seed(0)
    there, back = (
        loss_parabolas(model, pairs, torch.tensor([edge]), num_graphs=2, generator=rng.manual_seed(0)).slope
        for edge in ([0, 1], [1, 0])
    )
    assert torch.equal(there, back)


@pytest.mark.parametrize(("z", "error"), [(-1.5, 0.05), (0.0, 0.3), (2.5, 0.01), (6.0, 0.1), (1.0, 4.0)])
def test_the_bayes_factor_is_the_integral(z, error):
    exact, _ = integrate.quad(
        lambda t: 2 * t * math.exp(z * t / error - t**2 / (2 * error**2)), 0, 1, points=[min(1, max(0, z * error))]
    )
    found = log_bayes_factor(torch.tensor(z).double(), torch.tensor(error).double())
    assert found.item() == pytest.approx(math.log(exact), abs=1e-3)


def test_an_edge_with_weights_of_its_own_costs_more():
    z, error = torch.tensor([4.0]), torch.tensor([0.1])
    shared = torch.logit(existence(z, error, 0.1, num_units=100))
    own = torch.logit(existence(z, error, 0.1, num_units=100, num_weights=3))
    assert (shared - own).item() == pytest.approx(1.5 * math.log(100))


def test_the_statistic_of_log_likelihoods_is_that_of_the_mean():
    """For y ~ N(m, 1) the fall of the log-likelihood at m = 0 gives the z of the mean, in any unit of the score."""
    y = 0.3 + torch.randn(500, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mean = y.mean()
    rise = 0.5 * y.square() - 0.5 * (y - mean).square()
    z = mean / (y.std() / len(y) ** 0.5)
    assert 2 * standardised(rise).item() == pytest.approx(z.item())
    assert 2 * standardised(0.01 * rise).item() == pytest.approx(z.item())


def test_trainings_differ_by_the_removed_edges_alone():
    truth, pairs = chain(128)
    model, before = fitted(truth), fitted(truth).state_dict()
    none, edge = torch.zeros(4, 4, dtype=torch.bool), torch.zeros(4, 4, dtype=torch.bool)
    edge[1, 0] = True
    removed = torch.stack([none, none, edge])
    one, same, other = retrain_without(
        model, pairs, pairs[:64], SETTINGS, removed, course=Course(4, 0.5), compile=False
    )
    assert torch.equal(one.graph.edge_probs, same.graph.edge_probs)
    assert other.graph.edge_probs[1, 0] == 0
    assert other.graph.fixed.sum() == 1
    assert not torch.equal(one.graph.edge_probs, model.graph.edge_probs)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_edges_that_are_not_kept_are_held_at_0(monkeypatch):
    monkeypatch.setattr(removal, "SETTLE", Course(4, 0.2))
    truth, pairs = chain(128)
    model = fitted(torch.full((4, 4), 0.3), torch.eye(4, dtype=torch.bool))
    found = keep_edges(model, pairs, pairs[:64], SETTINGS, truth > 0, compile=False).graph
    assert torch.equal(found.learned, truth > 0)
    assert found.edge_probs.diagonal().tolist() == pytest.approx([0.3] * 4)
    assert (found.edge_probs[(truth == 0) & ~torch.eye(4, dtype=torch.bool)] == 0).all()


def test_unit_losses_share_their_random_numbers():
    truth, pairs = chain(64)
    losses = [unit_losses(fitted(truth), pairs, num_graphs=4, seed=1) for _ in range(2)]
    assert losses[0].shape == (64, 4)
    assert torch.equal(*losses)


def test_true_edges_exist_and_others_do_not(quick):
    truth, pairs = chain()
    probs = torch.where(truth > 0, 0.7, 0.02)
    probs[0, 0] = probs[2, 0] = 0.15  # training has left something of these
    held = torch.zeros(4, 4, dtype=torch.bool)
    held[1, 0] = held[3, 1] = True
    probs[1, 0], probs[3, 1] = 0.75, 0.0
    found = evidence(fitted(probs, held), pairs)
    assert found.exists[truth > 0].min() > 0.95
    assert found.exists[truth == 0].max() < 0.1
    assert found.exists[held].tolist() == [1.0, 0.0]
    assert found.method == "model"
    assert found.effect[truth > 0].min() > 0.2  # the first channel has weight 0.8
    assert (found.effect[found.exists < 0.1] == 0).all()


def test_an_edge_that_training_lost_is_found(quick):
    truth, pairs = chain()
    probs = torch.where(truth > 0, 0.75, 0.001)
    probs[1, 0] = 0.001
    found = evidence(fitted(probs), pairs)
    assert found.exists[truth > 0].min() > 0.95
    assert found.exists[truth == 0].max() < 0.1


def test_edges_that_replace_each_other_share_the_doubt(together):
    """Nodes 0 and 1 send the same: either edge would do, and one of them is needed."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(400, 3, 1, generator=generator)
    inputs[:, 1] = inputs[:, 0]
    pairs = Pairs(inputs, torch.tanh(inputs[:, [0, 0, 0]] * torch.tensor([[0.0], [0.0], [1.0]])))
    probs = torch.zeros(3, 3)
    probs[2, :2] = 0.5
    fixed = torch.ones(3, 3, dtype=torch.bool)
    fixed[2, :2] = False
    found = evidence(fitted(probs, fixed, torch.ones(1, 1, 1)), pairs).exists
    assert (found[2, :2] - 0.5).abs().max() < 0.1


def test_held_edges_are_known():
    truth, pairs = chain(50)
    model = fitted(truth.ceil(), torch.ones(4, 4, dtype=torch.bool))
    assert torch.equal(evidence(model, pairs).exists, truth.ceil())


def test_a_prior_per_edge_enters_as_odds():
    z, error, prior = torch.zeros(2), torch.full((2,), 0.05), torch.tensor([0.1, 0.9], dtype=torch.float64)
    low, high = torch.logit(existence(z, error, prior))
    assert (high - low).item() == pytest.approx(2 * math.log(9))


def test_one_training_tests_an_edge_of_every_node_where_nodes_are_independent():
    truth, pairs = chain(32)
    sparse = torch.tensor([[False, True], [True, True]])
    filters = LatentGraphModel(BernoulliGraph(torch.full((2, 2), 0.5)), GraphFilter(2, 2, 1), EnergyScore())
    hops = fitted(truth)

    def groups(model, missed):
        prior = torch.full(model.graph.edge_shape, 0.1, dtype=torch.float64)
        tests = EdgeTests(model, pairs, pairs, pairs, SETTINGS, prior, 0, 1, 0, False, None)
        return [group.tolist() for group in tests._groups(missed)]

    assert groups(filters, sparse) == [[[0, 1], [1, 0]], [[1, 1]]]
    assert groups(hops, truth > 0) == [[[0, 3]], [[1, 0]], [[2, 1]], [[3, 2]]]


def test_blocks_of_neighbours_are_kept_together():
    pairs = chain(100)[1]
    assert len(removal._some(pairs, 5)) == 100
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(removal, "MOST_PAIRS", 20)
        some = removal._some(pairs, 5).inputs
    places = [(pairs.inputs == row).all(-1).all(-1).nonzero().item() for row in some]
    assert places == [*range(5), *range(25, 30), *range(50, 55), *range(75, 80)]


def test_effects_have_a_sign_and_the_units_of_deviations():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.tensor([10.0, 0.1, 1.0])[:, None] * torch.randn(300, 3, 1, generator=generator)
    weights = torch.tensor([0.001, -0.001])
    for weight in weights:
        targets = (weight * inputs[:, [1, 0, 2]]).tanh()
        model = fitted(torch.zeros(3, 3), weights=weight.view(1, 1, 1))
        found = signed_effects(model, Pairs(inputs, targets), torch.tensor([[0, 1], [1, 0]]), generator=generator)
        assert found[0, 1].item() == pytest.approx(weight.sign().item(), abs=0.01)
        assert found[1, 0].item() == pytest.approx(weight.sign().item(), abs=0.01)
        assert found.count_nonzero() == 2


def test_nodes_of_one_kind_do_not_differ():
    truth, pairs = chain(2000)
    assert not differing_nodes(fitted(truth), pairs, generator=torch.Generator().manual_seed(0)).any()


def test_a_node_of_another_kind_is_named(quick):
    truth, pairs = chain(300)
    other = pairs.targets.clone()
    other[:, 2] += pairs.inputs[:, 2, :1]
    model = fitted(truth, truth == 0)
    found = evidence(model, Pairs(pairs.inputs, other), node_names=["a", "b", "c", "d"])
    assert found.notes == (removal.DIFFERENT.format(nodes="c"),)

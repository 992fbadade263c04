"""The sandwich where the answer is known: a graph that can be read off the targets is estimated by counting."""

import math
from functools import partial
from importlib import import_module

import pytest
import torch
from torch.autograd.functional import hessian

from tacit.assessment.uncertainty import sandwich
from tacit.data import Pairs
from tacit.estimators import DisARM, StraightThrough
from tacit.graph import BernoulliGraph, EdgePrior
from tacit.losses import MMD, EnergyScore, Gaussian, PointMSE
from tacit.observation import GaussianNoise
from tacit.observation.gaussian import expected_distance
from tacit.training import LatentGraphModel, trainable_names
from toys import LinearHop, visible

module = import_module("tacit.assessment.uncertainty.sandwich")  # the function has the name of its file
LOOPS = torch.diag(torch.tensor([0.3, 0.5, 0.6]))
# At most 3 edges a test and 7 degrees of freedom: a false alarm in 600 runs of a test.
REPEATS, MOST_ERRORS = 8, 6.0
PAIRS, MANY_GRAPHS = 240, 48  # graphs that are many leave little randomness


@pytest.fixture
def sharp(monkeypatch):
    """Estimate the curvature from more graphs than usual, too."""
    monkeypatch.setattr(module, "edge_curvature", partial(module.edge_curvature, num_graphs=2 * MANY_GRAPHS))


def check(model, pairs, expected, closest=0.015, **choices):
    """The variance of interior edges over draws of graphs, within counted errors, and those small."""
    found = [sandwich(model, pairs, generator=torch.Generator().manual_seed(r), **choices) for r in range(REPEATS)]
    variances = torch.stack([one.std_errors[one.interior].double() ** 2 for one in found])
    error = variances.std(0) / math.sqrt(REPEATS)
    assert (error < closest * expected).all(), "the check would be weak"
    assert ((variances.mean(0) - expected).abs() < MOST_ERRORS * error + 1e-3 * expected).all()


def of_counting(model, num_pairs):
    theta = model.graph.edge_probs.detach().double()
    theta = theta[(theta > 0) & (theta < 1)]
    return theta * (1 - theta) / num_pairs


@pytest.mark.parametrize("loss", [EnergyScore(), MMD(Gaussian(0.7)), EnergyScore(scope="joint")], ids=repr)
def test_an_edge_that_is_seen_has_the_error_of_counting(loss, sharp):
    probs = LOOPS[:1, :1] if loss.scope == "joint" else LOOPS  # several nodes in one distance: another estimate
    model, pairs = visible(probs, PAIRS, loss, num_graphs=MANY_GRAPHS)
    check(model, pairs, of_counting(model, PAIRS))


def test_pairs_of_different_size(sharp):
    r"""The energy score weighs a pair by $|x|$: the estimate is a weighted count, and no better than one without."""
    model, pairs = visible(LOOPS, PAIRS, EnergyScore(), sizes=(0.4, 1.0, 2.0), num_graphs=MANY_GRAPHS)
    size = pairs.inputs[:, 0, 0].double()
    check(model, pairs, of_counting(model, PAIRS) * size.square().mean() / size.mean() ** 2)


def test_few_graphs_add_no_spread_of_their_own(sharp):
    """Under three graphs gradients spread half as much again as they should; two sets of graphs tell that apart."""
    model, pairs = visible(LOOPS[1:2, 1:2], 720, EnergyScore(), num_graphs=3)
    check(model, pairs, of_counting(model, 720), closest=0.06)
    view = module._View(model, ~model.graph.fixed, [], torch.Generator().manual_seed(0))
    assert view.gradients(pairs).var() > 1.5 * 4 * 0.25


def test_a_predictor_that_is_learned_too(sharp):
    """The gap that an edge makes is seen without error, so that theta keeps the error of counting."""
    model, pairs = visible(LOOPS[1:2, 1:2], PAIRS, MMD(Gaussian(0.7)), num_graphs=MANY_GRAPHS)
    model.predictor.requires_grad_(True)
    check(model, pairs, of_counting(model, PAIRS))


def test_blocks_of_the_curvature_are_second_derivatives_of_the_exact_loss(sharp):
    r"""$y = A w + \sigma e$, at targets that are quantiles of the model: a large $\theta$ looks like a large $w$."""
    theta, weight, sigma = 0.4, 1.0, 0.5
    ranks = [(torch.arange(n, dtype=torch.float64) + 0.5) / n for n in (96, 144)]
    y = torch.cat([weight + sigma * torch.special.ndtri(ranks[0]), sigma * torch.special.ndtri(ranks[1])])
    predictor = LinearHop(torch.full((1, 1, 1), weight))
    noise = GaussianNoise(num_nodes=1, initial_sigma=sigma).requires_grad_(False)
    graph = BernoulliGraph(torch.tensor([[theta]]))
    model = LatentGraphModel(graph, predictor, EnergyScore(), observation=noise, num_graphs=MANY_GRAPHS).double()
    pairs = Pairs(torch.ones(PAIRS, 1, 1, dtype=torch.float64), y[:, None, None])

    def loss(both):
        probs, means = torch.stack([both[0], 1 - both[0]]), torch.stack([both[1], 0 * both[1]])
        data = probs @ expected_distance(y - means[:, None], torch.full((), sigma))
        wide = torch.full((), sigma * math.sqrt(2))
        return data.mean() - probs @ expected_distance(means[:, None] - means, wide) @ probs / 2

    exact = hessian(loss, torch.tensor([theta, weight], dtype=torch.float64))
    names = [name for name in trainable_names(model) if not name.startswith("graph.")]
    edges = torch.ones(1, 1, dtype=torch.bool)
    views = [module._View(model, edges, names, torch.Generator().manual_seed(r)) for r in range(REPEATS)]
    found = torch.stack([view.curvature(pairs) for view in views])
    error = found.std(0) / math.sqrt(REPEATS)
    assert torch.equal(found, found.mT)
    assert (error < 0.02 * exact.diagonal().prod().sqrt()).all(), "the check would be weak"
    assert exact[0, 1].abs() > 10 * error[0, 1]
    assert ((found.mean(0) - exact).abs() < MOST_ERRORS * error).all()


def test_a_symmetric_graph_has_one_coin_for_two_entries(sharp):
    model, pairs = visible(
        torch.tensor([[0.0, 0.3], [0.3, 0.0]]), PAIRS, EnergyScore(), symmetric=True, num_graphs=MANY_GRAPHS
    )
    check(model, pairs, of_counting(model, PAIRS))
    found = sandwich(model, pairs, generator=torch.Generator().manual_seed(0))
    assert torch.equal(found.std_errors, found.std_errors.mT)
    assert found.std_errors[0, 1] > 0


def test_missing_targets_do_not_count(sharp):
    """A third of the second node is missing: its edge is known from the rest."""
    model, pairs = visible(LOOPS, PAIRS, EnergyScore(), num_graphs=MANY_GRAPHS)
    observed = torch.ones_like(pairs.targets)
    observed[::3, 1] = 0
    seen = pairs.targets[:, 1][observed[:, 1] > 0].double()
    theta = model.graph.edge_probs.detach().clone()
    theta[1, 1] = seen.mean()
    model.graph.start_around(theta)
    expected = of_counting(model, PAIRS)
    expected[1] *= 1.5
    check(model, Pairs(pairs.inputs, pairs.targets, observed), expected)


def test_a_series_counts_what_hangs_together(sharp):
    """Each target stands four times in a row; the covariances of neighbours are those of the targets themselves."""
    model, few = visible(LOOPS[:1, :1], 60, EnergyScore(), num_graphs=MANY_GRAPHS)
    pairs = few[torch.arange(60).repeat_interleave(4)]
    centred = (pairs.targets[:, 0, 0] - pairs.targets.mean()).double()
    expected = centred.square().mean()
    for lag in range(1, 6):
        expected = expected + 2 * (1 - lag / 6) * (centred[:-lag] @ centred[lag:]) / PAIRS
    assert expected > 2 * of_counting(model, 1)  # 1 + 2 (3/4 5/6 + 2/4 4/6 + 1/4 3/6) = 3.2, if nothing else did
    check(model, pairs, expected[None] / PAIRS, block=6)


@pytest.mark.parametrize(("block", "expected"), [(1, [0, 3, 6, 9]), (2, [6, 7, 8, 9])])
def test_some_of_the_pairs(block, expected):
    pairs = Pairs(torch.arange(10.0).view(10, 1, 1), torch.zeros(10, 1, 1))
    assert module.some_pairs(pairs, 4, block).inputs.flatten().tolist() == expected
    assert module.some_pairs(pairs, 10, block) is pairs


def test_errors_are_those_of_all_pairs_though_estimated_from_some(sharp):
    model, pairs = visible(LOOPS[:1, :1], 400, EnergyScore(), num_graphs=MANY_GRAPHS)
    some = pairs.targets[torch.linspace(0, 399, 200).round().long()].double()
    expected = some.var(correction=0) / 400  # the spread among those looked at
    check(model, pairs, expected[None], num_pairs=200)


def test_edges_at_the_boundary_and_held_ones_are_taken_as_known():
    probs = torch.diag(torch.tensor([0.5, 0.02, 0.98, 0.6]))
    held = torch.zeros(4, 4, dtype=torch.bool)
    held[3, 3] = True
    model, pairs = visible(probs, 200, EnergyScore(), held=held)
    found = sandwich(model, pairs, generator=torch.Generator().manual_seed(0))
    assert found.interior.nonzero().tolist() == [[0, 0]]
    assert found.std_errors.nonzero().tolist() == [[0, 0]]


def test_no_edge_inside():
    model, pairs = visible(torch.diag(torch.tensor([0.02, 1.0])), 200, EnergyScore())
    generator = torch.Generator()
    before = generator.get_state()
    found = sandwich(model, pairs, generator=generator)
    assert not found.std_errors.any()
    assert not found.interior.any()
    assert torch.equal(generator.get_state(), before)


def test_of_a_flat_direction_nothing_is_known(monkeypatch):
    model, pairs = visible(LOOPS, 300, EnergyScore())
    known = {}

    def curvature(view, _):
        return torch.diag(torch.tensor(known["bends"], dtype=torch.float64))

    monkeypatch.setattr(module._View, "curvature", curvature)
    errors = {}
    for bends in ((1.0, 2.0, 4.0), (1.0, 2.0, 5e-4), (1.0, 2.0, -3.0), (100.0, 200.0, 4.0), (3000.0, 5000.0, 2.0)):
        known["bends"] = bends
        found = sandwich(model, pairs, generator=torch.Generator().manual_seed(0))
        errors[bends] = found.std_errors.diagonal().tolist()
    first, second, third = errors[1.0, 2.0, 4.0]
    assert max(first, second, third) < 0.1
    for flat in (5e-4, -3.0):  # the median size is 1 or 2, a thousandth of it far too flat: nothing is known
        assert errors[1.0, 2.0, flat] == pytest.approx([first, second, 0.5])
    assert errors[100.0, 200.0, 4.0] == pytest.approx([first / 100, second / 100, third])
    # a thousandth of the median, 3000, is 3, and 2 is less
    assert errors[3000.0, 5000.0, 2.0] == pytest.approx([first / 3000, second / 2500, 0.5])


def test_the_model_stays_and_the_generator_decides():
    model, pairs = visible(LOOPS, 200, EnergyScore())
    model.predictor.requires_grad_(True)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    first, again, other = (
        sandwich(model, pairs, generator=torch.Generator().manual_seed(r)).std_errors for r in (0, 0, 1)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("choices", [{"loss": PointMSE()}, {"estimator": DisARM()}, {"estimator": StraightThrough()}])
def test_refusals(choices, refused):
    model, pairs = visible(LOOPS, 60, EnergyScore())
    loss = choices.pop("loss", model.loss)
    other = LatentGraphModel(model.graph, model.predictor, loss, num_graphs=4, **choices)
    refused(sandwich, other, pairs, generator=torch.Generator())


def test_too_many_parameters_are_refused(monkeypatch, refused):
    model, pairs = visible(LOOPS, 60, EnergyScore())
    model.predictor.requires_grad_(True)
    monkeypatch.setattr(module, "MOST_PARAMETERS", 3)
    refused(sandwich, model, pairs, generator=torch.Generator())
    model.predictor.requires_grad_(False)
    assert sandwich(model, pairs, generator=torch.Generator()).std_errors.any()


def test_a_model_with_a_prior_is_refused(refused):
    model, pairs = visible(LOOPS, 60, EnergyScore())
    believing = LatentGraphModel(
        model.graph, model.predictor, model.loss, num_graphs=4, prior=EdgePrior(0.5, weight=0.1)
    )
    refused(sandwich, believing, pairs, generator=torch.Generator())


def test_the_papers_baseline_does_not_shrink_the_errors():
    """A single pair's gradient is shrunk by it; the sandwich takes another baseline for the same loss."""
    errors = {}
    for baseline in ("leave_one_out", "paper"):
        model, pairs = visible(LOOPS, 300, EnergyScore(baseline=baseline))
        errors[baseline] = sandwich(model, pairs, generator=torch.Generator().manual_seed(0)).std_errors
    assert torch.equal(errors["paper"], errors["leave_one_out"])

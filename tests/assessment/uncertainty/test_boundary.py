"""Edges nearly at 0 or 1: held there where the validation pairs do not miss them, and with the error of the others."""

import math

import pytest
import torch

from tacit.assessment.uncertainty import boundary, loss_difference, rounded_at_boundary
from tacit.assessment.uncertainty import boundary as comparison
from tacit.assessment.uncertainty.boundary import interior_edges, with_usual_errors
from tacit.data import Pairs
from tacit.graph import EdgePrior
from tacit.local import Difference
from tacit.losses import EnergyScore
from tacit.training import LatentGraphModel
from toys import THREE_EDGES, toy, visible

NEAR = torch.diag(torch.tensor([0.004, 0.996, 0.5, 0.02, 0.98, 0.007]))  # loops; the last is held below


def model_and_pairs(targets_of):
    """Six loops, the last held where it is, and the pairs that ``targets_of`` makes of the model's probabilities."""
    held = torch.zeros(6, 6, dtype=torch.bool)
    held[5, 5] = True
    model, pairs = visible(NEAR, 1000, EnergyScore(), held=held)
    return model, targets_of(pairs)


def never_and_always(pairs):
    """Targets as if the first edge were never there and the second always."""
    targets = pairs.targets.clone()
    targets[:, 0], targets[:, 1] = 0.0, 1.0
    return Pairs(pairs.inputs, targets)


def test_edges_that_are_not_missed_are_held_at_0_and_1():
    model, pairs = model_and_pairs(never_and_always)
    rounded = rounded_at_boundary(model, pairs)
    held = rounded.graph.fixed & ~model.graph.fixed
    assert held.nonzero().tolist() == [[0, 0], [1, 1]]
    probs = rounded.graph.edge_probs
    assert probs.diagonal()[:2].tolist() == [0.0, 1.0]
    assert torch.equal(probs[~held], model.graph.edge_probs[~held])
    assert float(probs[5, 5].detach()) == pytest.approx(0.007)  # nearly 0, but held already: it stays
    assert rounded.graph.fixed[5, 5]


def many_small():
    """One node reads 30 others, each with probability 0.009: in a quarter of the pairs there is one at least."""
    probs = torch.zeros(30, 30)
    probs[0] = 0.009
    return visible(probs, 1000, EnergyScore())


def test_edges_that_are_missed_are_not_held():
    model, pairs = many_small()
    rounded = rounded_at_boundary(model, pairs)
    assert torch.equal(rounded.graph.fixed, model.graph.fixed)
    assert torch.equal(rounded.graph.edge_probs, model.graph.edge_probs)
    rounded = rounded_at_boundary(model, Pairs(pairs.inputs, torch.zeros_like(pairs.targets)))
    assert rounded.graph.fixed.all()
    assert not rounded.graph.edge_probs.any()


def test_two_errors_are_the_limit(monkeypatch):
    model, pairs = model_and_pairs(never_and_always)
    for rise, held in ((1.99, True), (2.01, False)):
        monkeypatch.setattr(boundary, "loss_difference", lambda *_, rise=rise: Difference(0.3 * rise, 0.3))
        assert bool((rounded_at_boundary(model, pairs).graph.fixed != model.graph.fixed).any()) == held


def test_without_an_edge_near_the_boundary_nothing_is_held_nor_looked_at(monkeypatch):
    model, pairs = visible(torch.diag(torch.tensor([0.02, 0.98])), 100, EnergyScore())
    monkeypatch.setattr(boundary, "loss_difference", lambda *_: pytest.fail("there is nothing to compare"))
    rounded = rounded_at_boundary(model, pairs)
    assert rounded is not model
    assert torch.equal(rounded.graph.fixed, model.graph.fixed)


@pytest.mark.parametrize("targets_of", [never_and_always, lambda pairs: pairs], ids=["held", "not held"])
def test_the_model_stays_as_it_is_and_shares_nothing(targets_of):
    model, pairs = model_and_pairs(targets_of)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    rounded = rounded_at_boundary(model, pairs)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    own = {value.data_ptr() for value in model.state_dict().values()}
    assert not own & {value.data_ptr() for value in rounded.state_dict().values()}


def test_a_symmetric_graph_stays_symmetric():
    probs = torch.tensor([[0.0, 0.0, 0.004], [0.0, 0.5, 0.0], [0.004, 0.0, 0.0]])
    model, pairs = visible(probs, 250, EnergyScore(), symmetric=True)
    rounded = rounded_at_boundary(model, Pairs(pairs.inputs, pairs.targets * torch.tensor([[0.0], [1.0], [0.0]])))
    assert (rounded.graph.fixed & ~model.graph.fixed).nonzero().tolist() == [[0, 2], [2, 0]]
    assert rounded.graph.edge_probs.diagonal().tolist() == [0.0, 0.5, 0.0]


def test_targets_that_are_missing_are_not_missed():
    """Small edges that matter are held where nobody looked, and not where somebody did."""
    model, pairs = many_small()
    observed = torch.ones_like(pairs.targets)
    assert not rounded_at_boundary(model, Pairs(pairs.inputs, pairs.targets, observed)).graph.fixed.all()
    observed[:, 0] = 0
    assert rounded_at_boundary(model, Pairs(pairs.inputs, pairs.targets, observed)).graph.fixed.all()


def test_difference_of_losses_by_hand(monkeypatch):
    """Pairs weigh by what was observed of them."""
    model, inputs, targets = toy(THREE_EDGES, EnergyScore(), 3, 4)
    given = [(torch.tensor([1.0, 2.0, 6.0]), torch.ones(3)), (torch.tensor([0.5, 0.5, 0.5]), torch.ones(3))]
    monkeypatch.setattr(comparison, "pair_losses", lambda *_, **__: given.pop(0))
    mean, error = loss_difference(model, Pairs(inputs, targets), {}, {})
    assert mean == pytest.approx(2.5)
    assert error == pytest.approx(math.sqrt((2.0**2 + 1.0**2 + 3.0**2) / 2 / 3))


def test_a_prior_and_shared_graphs_do_not_decide():
    """The penalty of a prior leaves out held edges: only what the data says counts."""
    model, inputs, targets = toy(THREE_EDGES, EnergyScore(), 40, 4)
    pairs = Pairs(inputs, targets)
    other = {"graph.edge_logits": model.graph.edge_logits.detach() + 1}
    plain = loss_difference(model, pairs, other, {})
    graph, predictor = model.graph, model.predictor
    prior = EdgePrior(0.9, weight=5.0)
    believing = LatentGraphModel(graph, predictor, EnergyScore(), num_graphs=4, prior=prior, share_graphs=True)
    assert loss_difference(believing, pairs, other, {}) == plain
    assert loss_difference(believing, pairs, believing.state_dict() | other, believing.state_dict()) == plain
    assert believing.prior is not None


def test_difference_of_losses_is_under_the_same_graphs_and_has_its_sign():
    model, inputs, _ = toy(THREE_EDGES, EnergyScore(), 200, 4)
    same = {name: value.clone() for name, value in model.state_dict().items()}
    graphs = model.graph.sample(1, num_pairs=200, generator=torch.Generator().manual_seed(0))
    pairs = Pairs(inputs, model.predictor(inputs, graphs)[:, 0].detach())  # the model's own: any other is worse
    other = same | {"graph.edge_logits": same["graph.edge_logits"] + 2}
    assert loss_difference(model, pairs, same, {}) == (0.0, 0.0)
    mean, error = loss_difference(model, pairs, other, same)
    assert mean > 3 * error > 0
    assert loss_difference(model, pairs, same, other) == pytest.approx((-mean, error))
    assert loss_difference(model, pairs[:1], other, same).std_error == torch.inf  # one pair says nothing of spread


def test_interior():
    probs = torch.tensor([[0.0, 0.0299, 0.0301], [0.5, 0.9699, 0.9701], [1.0, 0.2, 0.8]])
    assert interior_edges(probs).int().tolist() == [[0, 0, 1], [1, 1, 0], [0, 1, 1]]


def test_usual_errors_by_hand():
    probs = torch.tensor([[0.5, 0.4, 0.3], [0.01, 0.99, 0.02], [0.0, 0.6, 0.01]])
    errors = torch.tensor([[0.1, 0.2, 0.4], [0.05, 0.3, 0.0], [0.0, 0.9, 0.0]])
    learned = torch.tensor([[True, True, True], [True, True, True], [False, False, True]])
    expected = [[0.1, 0.2, 0.4], [0.2, 0.3, 0.2], [0.0, 0.9, 0.2]]  # the median of .1, .2 and .4; .9 is not learned
    assert torch.equal(with_usual_errors(probs, errors, learned, 100), torch.tensor(expected))


def test_without_an_edge_inside_errors_are_those_of_counting_at_the_boundary():
    probs, errors = torch.tensor([[0.01, 0.5], [1.0, 0.0]]), torch.tensor([[0.001, 0.2], [0.3, 0.0]])
    learned = torch.tensor([[True, False], [True, True]])
    usual = math.sqrt(0.03 * 0.97 / 70)
    assert with_usual_errors(probs, errors, learned, 70).flatten().tolist() == pytest.approx([usual, 0.2, 0.3, usual])

"""Edges that depend on the situation by training, on small systems with the truth known."""

import pytest
import torch

from tacit.assessment.situations import vary_by_training
from tacit.data import Pairs
from tacit.estimators import DisARM
from tacit.graph import BernoulliGraph, CandidateEdges, Category, EdgePrior, SeriesNumber
from tacit.losses import EnergyScore, PointMSE
from tacit.training import FitSettings, LatentGraphModel
from toys import LinearHop

SETTINGS = FitSettings(epochs=3, batch_size=50)


def system(levels, num_pairs=900, *, table=False, symmetric=False, seed=0):
    r"""Three nodes, $y_i = \sum_j A_{ij} x_j$; ``levels`` are the probabilities in each of two series.

    The model is at their mean, as a constant fit is. Returns it, pairs and the edges that are neither 0 nor 1.
    """
    rng = torch.Generator().manual_seed(seed)
    series, nodes = torch.arange(num_pairs) % 2, levels.shape[1]
    inputs = torch.rand(num_pairs, nodes, 1, generator=rng) + 0.5
    uniforms = torch.rand(num_pairs, nodes, nodes, generator=rng)
    if symmetric:
        uniforms = uniforms.triu() + uniforms.triu(1).mT
    graphs = (uniforms < levels[series]).float()
    pairs = Pairs(inputs, graphs @ inputs, series=series)
    probs, candidates = levels.mean(0), None
    if table:
        candidates = CandidateEdges.from_mask(levels.sum(0) > 0)
        probs = probs[candidates.row_node[:, None], candidates.sources]
    tested = (probs > 0) & (probs < 1)
    if table:
        tested &= candidates.used
    graph = BernoulliGraph(probs, probs == 0, candidates=candidates, symmetric=symmetric)
    predictor = LinearHop(torch.ones(1, 1, 1)).requires_grad_(False)
    return LatentGraphModel(graph, predictor, EnergyScore(), num_graphs=6), pairs, tested


def series():
    return Category("series", SeriesNumber(), labels=("a", "b"))


VARYING = torch.tensor(
    [[[0.2, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 1.0]], [[0.8, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 1.0]]]
)


def find(levels, variable=None, **choices):
    model, pairs, tested = system(levels, **choices)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    variable = series() if variable is None else variable
    found = vary_by_training(model, [variable], pairs, pairs, SETTINGS, tested, compile=False)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items()), "the model stays"
    assert variable.root.numel() == 0, "the variable stays"
    return found, model, tested


def test_the_probabilities_of_the_levels_are_learned_without_errors():
    found, model, varying = find(VARYING)
    assert not found.tested.any()
    assert torch.equal(found.varies, varying)
    assert found.p_values.isnan().all()
    by = found.by_situation(found.graph.variables[0])
    assert by.probability[0].tolist() == pytest.approx([0.2, 0.8], abs=0.08)
    assert by.probability[1].tolist() == pytest.approx([0.5, 0.5], abs=0.08)
    assert torch.stack(by[1:]).isnan().all()
    graph = found.graph
    assert torch.equal(graph.fixed, model.graph.fixed)
    assert torch.allclose(graph.edge_probs[2, 2], torch.ones(()), atol=1e-5), "an edge that always acts stays"
    assert float(graph.edge_probs[1, 1].detach()) == pytest.approx(0.5, abs=0.08)


def test_a_table_of_candidates():
    found, _, _ = find(VARYING, table=True)
    table = found.graph.candidates
    row, slot = found.varies.nonzero()[0].tolist()
    assert (int(table.row_node[row]), int(table.sources[row, slot])) == (0, 0)
    by = found.by_situation(found.graph.variables[0])
    assert by.probability[0].tolist() == pytest.approx([0.2, 0.8], abs=0.08)


def test_an_edge_without_direction_has_one_curve():
    levels = torch.tensor([[[0.0, 0.2], [0.2, 0.5]], [[0.0, 0.8], [0.8, 0.5]]])
    found, _, _ = find(levels, symmetric=True)
    by = found.by_situation(found.graph.variables[0])
    assert found.varies.nonzero().tolist() == [[0, 1], [1, 0], [1, 1]]
    assert torch.equal(by.probability[0], by.probability[1])
    assert by.probability[0].tolist() == pytest.approx([0.2, 0.8], abs=0.08)


def test_a_predictor_that_is_learned_moves_with_the_edges():
    model, pairs, tested = system(VARYING)
    model.predictor.requires_grad_(True)
    with torch.no_grad():
        model.predictor.hop_weights.mul_(0.9)
    found = vary_by_training(model, [series()], pairs, pairs, SETTINGS, tested, compile=False)
    assert float(found.model.predictor.hop_weights.detach()) == pytest.approx(1.0, abs=0.03)
    assert float(model.predictor.hop_weights.detach()) == pytest.approx(0.9)


def test_a_prior_has_no_part_in_it_and_shrinkage_does():
    model, pairs, tested = system(VARYING)
    believing = LatentGraphModel(model.graph, model.predictor, model.loss, num_graphs=6, prior=EdgePrior(0.1, 0.01))
    made = vary_by_training(believing, [series()], pairs, pairs, SETTINGS, tested, compile=False).model
    assert made.prior is None
    assert made.graph.shrinkage > 0


@pytest.mark.parametrize("choices", [{"loss": PointMSE()}, {"estimator": DisARM()}])
def test_refusals(choices, refused):
    model, pairs, tested = system(VARYING)
    loss = choices.pop("loss", model.loss)
    other = LatentGraphModel(model.graph, model.predictor, loss, num_graphs=6, **choices)
    refused(vary_by_training, other, [series()], pairs, pairs, SETTINGS, tested, compile=False)

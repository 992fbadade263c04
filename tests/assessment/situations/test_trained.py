"""Edges that depend on the situation, found by training on small systems with the truth known."""

import pytest
import torch

from tacit.assessment.situations import conditional_model, vary_by_training
from tacit.data import Pairs
from tacit.errors import InputError
from tacit.estimators import DisARM
from tacit.graph import BernoulliGraph, CandidateEdges, Category, Context, EdgePrior, SeriesNumber
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
    [
        [[0.2, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 1.0]],
        [[0.8, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 1.0]],
    ]
)
CONSTANT = VARYING.mean(0).expand(2, 3, 3)


def find(levels, variable=None, **choices):
    model, pairs, tested = system(levels, **choices)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    variable = series() if variable is None else variable
    found = vary_by_training(model, [variable], pairs, pairs, SETTINGS, tested, compile=False)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items()), "the model stays"
    assert variable.root.numel() == 0, "the variable stays"
    return found, model, tested


def test_the_edge_that_depends_is_found_and_its_levels_are():
    found, model, tested = find(VARYING)
    assert torch.equal(found.tested, tested)
    assert found.varies.nonzero().tolist() == [[0, 0]]
    assert found.p_values[0, 0] < 1e-6
    assert found.p_values[1, 1] > 0.01
    assert found.p_values[~tested].isnan().all()
    assert found.covariances.shape == (1, 2, 2)
    by = found.by_situation(found.graph.variables[0])
    assert by.probability[0].tolist() == pytest.approx([0.2, 0.8], abs=0.08)
    counting = (0.16 / 450) ** 0.5
    assert by.std_error[0].tolist() == pytest.approx([counting, counting], rel=0.3)
    assert (by.low[0] < by.probability[0]).all()
    assert not found.notes
    graph = found.graph
    assert torch.equal(graph.fixed, model.graph.fixed)
    assert torch.allclose(graph.edge_probs[2, 2], torch.ones(()), atol=1e-5), "an edge that is not tested stays"
    assert not graph.weights()[~found.varies].any()
    assert float(graph.edge_probs[1, 1].detach()) == pytest.approx(0.5, abs=0.08)


def test_where_no_edge_depends_there_is_no_model():
    found, _, tested = find(CONSTANT)
    assert found.model is None
    assert not found.varies.any()
    assert (found.p_values[tested] > 0.01).all()


def test_nothing_to_test():
    model, pairs, tested = system(CONSTANT)
    found = vary_by_training(model, [series()], pairs, pairs, SETTINGS, torch.zeros_like(tested), compile=False)
    assert found.model is None
    assert found.p_values.isnan().all()


def test_a_table_of_candidates():
    found, _, _ = find(VARYING, table=True)
    table = found.graph.candidates
    row, slot = found.varies.nonzero()[0].tolist()
    assert (int(table.row_node[row]), int(table.sources[row, slot])) == (0, 0)
    assert int(found.varies.sum()) == 1


def test_an_edge_without_direction_is_tested_once():
    levels = torch.tensor([[[0.0, 0.2], [0.2, 0.5]], [[0.0, 0.8], [0.8, 0.5]]])
    found, _, _ = find(levels, symmetric=True)
    assert found.varies.tolist() == [[False, True], [True, False]]
    assert found.p_values[0, 1] == found.p_values[1, 0]
    assert found.covariances.shape == (2, 2, 2)
    assert torch.equal(found.covariances[0], found.covariances[1])


def test_a_predictor_that_is_learned_moves_with_the_edges():
    model, pairs, tested = system(VARYING)
    model.predictor.requires_grad_(True)
    with torch.no_grad():
        model.predictor.hop_weights.mul_(0.9)
    found = vary_by_training(model, [series()], pairs, pairs, SETTINGS, tested, compile=False)
    assert found.varies.nonzero().tolist() == [[0, 0]]
    assert float(found.model.predictor.hop_weights.detach()) == pytest.approx(1.0, abs=0.03)
    assert float(model.predictor.hop_weights.detach()) == pytest.approx(0.9)


def test_a_prior_has_no_part_in_it_and_shrinkage_does():
    model, pairs, tested = system(VARYING)
    believing = LatentGraphModel(model.graph, model.predictor, model.loss, num_graphs=6, prior=EdgePrior(0.1, 0.01))
    made = conditional_model(believing, [series()], pairs, tested)
    assert made.prior is None
    assert made.graph.shrinkage > 0
    logits = made.graph.condition(Context.of(pairs[:2])).logits
    assert torch.allclose(torch.sigmoid(logits), model.graph.edge_probs.expand(2, 3, 3), atol=1e-6)


@pytest.mark.parametrize(
    ("choices", "match"),
    [
        ({"loss": PointMSE()}, "depends_on requires a loss that compares graphs, .* got PointMSE; set another loss"),
        ({"estimator": DisARM()}, "depends_on requires the estimator ScoreFunction, got DisARM; set it"),
    ],
)
def test_refusals(choices, match):
    model, pairs, tested = system(VARYING)
    loss = choices.pop("loss", model.loss)
    refused = LatentGraphModel(model.graph, model.predictor, loss, num_graphs=6, **choices)
    with pytest.raises(InputError, match=match):
        vary_by_training(refused, [series()], pairs, pairs, SETTINGS, tested, compile=False)

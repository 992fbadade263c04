"""Edges of a filter that depend on the situation: found, with intervals that hold the truth, and no others."""

import copy
from dataclasses import replace

import pytest
import torch
from scipy import stats

from gates import filter_model
from tacit.assessment.situations import vary_by_likelihood
from tacit.assessment.uncertainty import acting
from tacit.data import Pairs
from tacit.graph import BernoulliGraph, Category, Context, CovariateColumn, OwnInput, SeriesNumber, Smooth
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise, PoissonCounts
from tacit.predictors import GraphFilter, HopPredictor
from tacit.training import LatentGraphModel

NODES = 4
# Node 0 reads 1 by its level, 2 at times and 3 always; node 1 reads 3 at times.
PRESENT = torch.tensor([[0, 1, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]], dtype=torch.bool)
GATED = torch.tensor([[0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]], dtype=torch.bool)
BY_LEVEL = torch.tensor([0.2, 0.5, 0.9])
WEIGHTS = torch.tensor([[0, 1.0, -1.2, 0.8], [0, 0, 0, 1.0], [0, 0, 0, 0], [0, 0, 0, 0]])


def pairs_of(count, rng, *, varies=True, counts=False):
    level = torch.randint(3, (count,), generator=rng)
    inputs = torch.randn(count, NODES, generator=rng)
    probs = torch.where(GATED, 0.6, PRESENT.float()).repeat(count, 1, 1)
    if varies:
        probs[:, 0, 1] = BY_LEVEL[level]
    acts = (torch.rand(count, NODES, NODES, generator=rng) < probs).float()
    outputs = 0.4 * inputs + torch.einsum("bij,bj->bi", acts * WEIGHTS, inputs)
    if counts:
        targets = torch.poisson(torch.nn.functional.softplus(8 + 4 * outputs), generator=rng)
    else:
        targets = outputs + 0.4 * torch.randn(count, NODES, generator=rng)
    return Pairs(inputs[..., None], targets[..., None], series=level, covariates=torch.randn(count, 1, generator=rng))


def constant_fit(pairs, counts=False):
    graph = BernoulliGraph(torch.where(PRESENT, 0.5, 0.0), fixed=~PRESENT)
    noise = PoissonCounts(NODES) if counts else GaussianNoise(NODES)
    filters = GraphFilter(NODES, 1, 1, residual=False)
    model = LatentGraphModel(graph, filters, EnergyScore(scope="node"), observation=noise)
    if counts:  # near the truth
        filters.edge_weights.data[..., 0, 0] = 4 * WEIGHTS
        filters.own.data[:], filters.bias.data[:] = 1.6, 8.0
        graph.edge_logits.data = torch.logit(torch.where(GATED, 0.6, PRESENT.float()))
    else:
        model.load_state_dict(
            acting(model, pairs, replicas=0, intervals=False, switching=True).parameters, strict=False
        )
    return model


def level():
    return Category("level", SeriesNumber(), labels=("a", "b", "c"))


@pytest.fixture(scope="module")
def found():
    """One data set and its answer."""
    pairs = pairs_of(1500, torch.Generator().manual_seed(3))
    model = constant_fit(pairs)
    before = copy.deepcopy(model.state_dict())
    variable = level()
    answer = vary_by_likelihood(model, [variable], pairs, GATED)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    return pairs, model, variable, answer


def test_the_edge_that_varies_is_found_and_no_other(found):
    *_, answer = found
    assert answer.varies.nonzero().tolist() == [[0, 1]]
    assert torch.equal(answer.tested, GATED)
    assert torch.equal(~answer.p_values.isnan(), GATED)
    assert answer.p_values[0, 1] < 1e-6
    assert answer.notes == ()


def test_intervals_hold_the_truth(found):
    _, _, variable, answer = found
    by = answer.by_situation(variable)
    assert torch.allclose(by.probability[0], BY_LEVEL.double(), atol=0.1)
    assert ((by.low[0] < BY_LEVEL) & (by.high[0] > BY_LEVEL)).all()
    assert (by.std_error < 0.06).all()


def test_other_nodes_and_the_loss_stay_as_they_are(found):
    _, model, _, answer = found
    new = answer.model
    assert torch.equal(new.predictor.edge_weights[1:], model.predictor.edge_weights[1:])
    assert torch.equal(new.graph.raw[1:], model.graph.raw[1:])
    assert new.loss.observation is new.observation
    assert not torch.equal(new.predictor.edge_weights[0], model.predictor.edge_weights[0])


def test_the_graph_has_the_probabilities_of_the_fit(found):
    """The constant edges have one probability, the always acting edge 1, and the varying one that of each level."""
    pairs, _, variable, answer = found
    probs = torch.sigmoid(answer.model.graph.condition(Context.of(pairs)).logits)
    by = answer.by_situation(variable)
    assert torch.allclose(probs[:, 0, 1], by.probability[0][pairs.series].float(), atol=1e-6)
    assert (probs[:, 0, 3] == 1).all()
    assert probs[:, 0, 2].std() == 0
    assert (probs[:, 2] == 0).all()


def test_data_without_dependence_keep_the_constant_fit():
    pairs = pairs_of(600, torch.Generator().manual_seed(5), varies=False)
    answer = vary_by_likelihood(constant_fit(pairs), [level()], pairs, GATED)
    assert answer.model is None
    assert not answer.varies.any()
    assert answer.covariances.shape == (0, 3, 3)


def test_counts():
    pairs = pairs_of(1500, torch.Generator().manual_seed(7), counts=True)
    variable = level()
    answer = vary_by_likelihood(constant_fit(pairs, counts=True), [variable], pairs, GATED)
    assert answer.varies.nonzero().tolist() == [[0, 1]]
    by = answer.by_situation(variable)
    assert ((by.low[0] < BY_LEVEL) & (by.high[0] > BY_LEVEL)).all()


def test_features_belong_to_their_variables(found):
    """Shared variables, those of the source and of the target, in any order, give the logits that were fitted."""
    pairs, model, _, _ = found
    context = Context.of(pairs)
    target = Smooth.of("target", OwnInput("target"), context)
    source = Smooth.of("source", OwnInput("source"), context)
    number, by_level = Smooth.of("number", CovariateColumn(0), context), level()
    answer = vary_by_likelihood(model, [target, number, source, by_level], pairs, GATED, fdr=1.0)
    assert torch.equal(answer.varies, GATED)
    graph = answer.model.graph
    logits = graph.condition(context).logits
    weights = graph.weights()
    for row, edge_source in GATED.nonzero().tolist():
        expected = graph.raw[row, edge_source] + sum(
            variable(context)[:, place] @ weights[row, edge_source, graph.feature_slice(variable)]
            if place is not None
            else variable(context) @ weights[row, edge_source, graph.feature_slice(variable)]
            for variable, place in ((target, row), (number, None), (source, edge_source), (by_level, None))
        )
        assert torch.allclose(logits[:, row, edge_source], expected, atol=1e-5)
    slope = weights[0, 1, graph.feature_slice(by_level)]
    assert slope.norm() > 3 * max(weights[0, 1, graph.feature_slice(one)].norm() for one in (target, number, source))


def test_at_most_so_many_gates(monkeypatch):
    """The edge that gains least by a gate is not tested, and a note says so."""
    pairs = pairs_of(800, torch.Generator().manual_seed(9))
    monkeypatch.setattr("tacit.assessment.situations.likelihood.MOST_GATES", 1)
    answer = vary_by_likelihood(constant_fit(pairs), [level()], pairs, GATED)
    assert int(answer.tested.sum()) == 2
    assert bool(answer.tested[1, 3])
    assert answer.notes == (
        "not tested because a node has more than 1 edges that act at times: 1 (those with the smallest gain "
        "from a gate)",
    )


def test_a_model_without_likelihood_is_refused(rng, refused):
    model = LatentGraphModel(
        BernoulliGraph(torch.full((2, 2), 0.5)), HopPredictor.random(1, 1, generator=rng), EnergyScore()
    )
    refused(vary_by_likelihood, model, [level()], pairs_of(5, rng), torch.ones(2, 2, dtype=torch.bool))


def test_double_precision_and_missing_targets(rng):
    """Rows without a target do not count."""
    pairs = pairs_of(700, rng)
    model = filter_model(PRESENT)
    wrong = pairs.targets.clone()
    observed = torch.ones_like(wrong)
    observed[::10], wrong[::10] = 0.0, 99.0
    some = Pairs(pairs.inputs.double(), wrong.double(), observed.double(), series=pairs.series)
    kept = torch.arange(700) % 10 > 0
    model.load_state_dict(acting(model, some, replicas=0, intervals=False, switching=True).parameters, strict=False)
    one = vary_by_likelihood(model, [level()], some, GATED)
    other = vary_by_likelihood(model, [level()], some[kept], GATED)
    assert torch.allclose(one.p_values, other.p_values, rtol=0.5, equal_nan=True)
    assert one.varies.nonzero().tolist() == [[0, 1]]


def repeated(pairs, times):
    """Each row several times in a row, in a series of its own."""
    rows = torch.arange(len(pairs)).repeat_interleave(times)
    return replace(pairs[rows], series=rows)


def test_rows_that_occur_four_times_do_not_make_an_edge_vary():
    """Copies of a row are no evidence: as rows of a series, or as neighbours, the p-values are those of single rows."""
    pairs = pairs_of(400, torch.Generator().manual_seed(5), varies=False)
    pairs = replace(pairs, series=None)
    model, four = constant_fit(pairs), repeated(pairs, 4)
    p_values = {}
    for name, data, block in (
        ("once", pairs, 1),
        ("series", four, 1),
        ("neighbours", replace(four, series=None), 4),
        ("independent", replace(four, series=None), 1),
    ):
        number = Smooth.of("number", CovariateColumn(0), Context.of(pairs))
        answer = vary_by_likelihood(model, [number], data, GATED, block=block)
        p_values[name] = stats.norm.isf(answer.p_values[GATED].numpy())
    assert p_values["series"] == pytest.approx(p_values["once"], abs=0.35)
    assert (p_values["neighbours"] < p_values["once"] + 0.6).all()
    assert (p_values["independent"] > p_values["once"] + 0.7).any()

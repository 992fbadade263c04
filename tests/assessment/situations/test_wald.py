"""Errors of logits and weights where the answer is known: a graph that can be read off the targets is counted."""

import dataclasses
from importlib import import_module

import pytest
import torch
from scipy import stats

from tacit.assessment.situations import edge_numbers
from tacit.assessment.situations.wald import design_of
from tacit.assessment.uncertainty import logit_curvature, sandwich
from tacit.data import Pairs
from tacit.graph import (
    BernoulliGraph,
    CandidateEdges,
    Category,
    ConditionalBernoulliGraph,
    Context,
    OwnInput,
    SeriesNumber,
    Smooth,
)
from tacit.losses import EnergyScore
from tacit.predictors import HopPredictor
from tacit.training import LatentGraphModel
from toys import LinearHop

module = import_module("tacit.assessment.situations.wald")
MANY_GRAPHS = 200  # the graphs' own noise adds about 1% to a variance


@pytest.fixture
def sharp(monkeypatch):
    monkeypatch.setattr(module, "NUM_GRAPHS", MANY_GRAPHS)


def counted(theta, num_pairs=400, *, shrinkage=0.0, varying=True, seed=0):
    r"""Node i reads itself: $y_i = A_{ii}$; in series k a share ``theta[k, i]`` of the pairs has the edge, to the pair.

    The graph is where the loss is least, at the logits of these shares.
    """
    rng = torch.Generator().manual_seed(seed)
    nodes, half = theta.shape[1], num_pairs // 2
    series = (torch.arange(num_pairs) >= half).long()
    targets = torch.zeros(num_pairs, nodes, 1)
    for k in range(2):
        for i in range(nodes):
            there = torch.randperm(half, generator=rng)[: round(float(theta[k, i]) * half)]
            targets[k * half + there, i] = 1.0
    pairs = Pairs(torch.ones(num_pairs, nodes, 1), targets, series=series)
    share = torch.stack([targets[series == k, :, 0].mean(0) for k in range(2)])
    start = BernoulliGraph(torch.diag(share.mean(0)), ~torch.eye(nodes, dtype=torch.bool))
    variable = Category("series", SeriesNumber(), labels=("a", "b"))
    free = torch.full((nodes, nodes), varying)
    graph = ConditionalBernoulliGraph(start, [variable], Context.of(pairs), varying=free, shrinkage=shrinkage)
    phi = variable(Context.of(pairs))[[0, -1], 0]  # +1 and -1, in one order or the other
    logits = torch.logit(share)
    with torch.no_grad():
        if varying:
            graph.edge_logits.copy_(torch.diag(logits.mean(0)))
            graph.context_weights[..., 0].copy_(torch.diag((logits[1] - logits[0]) / (phi[1] - phi[0])))
    predictor = LinearHop(torch.ones(1, 1, 1)).requires_grad_(False)
    return LatentGraphModel(graph, predictor, EnergyScore(), num_graphs=4), pairs, phi


def of_counting(theta, num_pairs, phi):
    """The covariance of (a, b): logits of two shares, each with the error of counting, times the design's inverse."""
    back = torch.linalg.inv(torch.stack([torch.ones(2), phi], 1).double())
    variances = 1 / (num_pairs / 2 * theta * (1 - theta)).double()  # (series, edge)
    return torch.stack([back @ torch.diag(variances[:, e]) @ back.mT for e in range(theta.shape[1])])


THETA = torch.tensor([[0.3, 0.5, 0.6], [0.5, 0.5, 0.2]])


def test_errors_of_logits_and_weights_are_those_of_counting(sharp):
    model, pairs, phi = counted(THETA)
    edges = torch.eye(3, dtype=torch.bool)
    found = edge_numbers(model, pairs, edges, generator=torch.Generator().manual_seed(0))
    expected = of_counting(THETA, 400, phi)
    scale = expected.diagonal(dim1=1, dim2=2).sqrt()
    assert ((found.covariances - expected).abs() < 0.12 * scale[:, :, None] * scale[:, None]).all()
    present = torch.stack([model.graph.raw.diagonal(), model.graph.context_weights[..., 0].diagonal()], 1)
    assert ((found.estimates - present.double()).abs() < 0.35 * scale).all(), "the fit is at the minimum already"
    statistic = present[:, 1].detach().double() ** 2 / expected[:, 1, 1]
    assert statistic.tolist() == pytest.approx([17.0, 0.0, 67.0], rel=0.1, abs=0.1)
    assert found.p_values[1] > 0.5
    assert (found.p_values[[0, 2]] < 1e-3).all()


def test_an_edge_that_does_not_vary_has_the_error_of_the_constant_sandwich(sharp):
    """Of the logit, that is the error of the probability over its slope."""
    model, pairs, _ = counted(THETA[[0, 0]], varying=False)
    edges = torch.eye(3, dtype=torch.bool)
    found = edge_numbers(model, pairs, edges, generator=torch.Generator().manual_seed(0))
    constant = LatentGraphModel(
        BernoulliGraph(model.graph.edge_probs.detach(), ~edges), model.predictor, model.loss, num_graphs=100
    )
    errors = sandwich(constant, pairs, generator=torch.Generator().manual_seed(1)).std_errors.diagonal()
    slope = THETA[0] * (1 - THETA[0])
    assert (found.covariances[:, 0, 0].sqrt() * slope).tolist() == pytest.approx(errors.tolist(), rel=0.05)
    assert not found.covariances[:, 1].any()
    assert found.p_values.isnan().all()
    assert not found.free[:, 1].any()


def test_a_predictor_that_is_learned_too(sharp):
    """The gap that an edge makes is seen without error, so that the numbers keep the errors of counting."""
    model, pairs, phi = counted(THETA[:, :1])
    model.predictor.requires_grad_(True)
    found = edge_numbers(model, pairs, torch.ones(1, 1, dtype=torch.bool), generator=torch.Generator().manual_seed(0))
    expected = of_counting(THETA[:, :1], 400, phi)
    assert found.covariances[0].diagonal().tolist() == pytest.approx(expected[0].diagonal().tolist(), rel=0.1)
    weight = found.predictor["predictor.hop_weights"]
    assert float(weight) == pytest.approx(1.0, abs=0.05)


def test_one_step_leads_to_the_minimum(sharp):
    model, pairs, _ = counted(THETA)
    best = torch.stack([model.graph.raw.diagonal(), model.graph.context_weights[..., 0].diagonal()], 1).detach().clone()
    with torch.no_grad():
        model.graph.edge_logits += 0.25 * torch.eye(3)
        model.graph.context_weights[..., 0] -= 0.2 * torch.eye(3)
    edges = torch.eye(3, dtype=torch.bool)
    found = edge_numbers(model, pairs, edges, generator=torch.Generator().manual_seed(0))
    assert ((found.estimates - best.double()).abs() < 0.08).all()


def test_shrinkage_pulls_the_weights_towards_0(sharp):
    edges, weights, errors = torch.eye(3, dtype=torch.bool), [], []
    for shrinkage in (0.0, 0.02):
        model, pairs, _ = counted(THETA, shrinkage=shrinkage)
        found = edge_numbers(model, pairs, edges, generator=torch.Generator().manual_seed(0))
        weights.append(found.estimates[[0, 2], 1].abs())
        errors.append(found.covariances[:, 1, 1])
    assert (weights[1] < 0.9 * weights[0]).all()
    assert (errors[1] < errors[0]).all()


def test_missing_targets_do_not_count(sharp):
    model, pairs, phi = counted(THETA)
    observed = torch.ones_like(pairs.targets)
    observed[::2, 1] = 0
    half = Pairs(pairs.inputs, pairs.targets, observed, pairs.series)
    found = edge_numbers(model, half, torch.eye(3, dtype=torch.bool), generator=torch.Generator().manual_seed(0))
    expected = of_counting(THETA, 400, phi)[:, 0, 0]
    assert found.covariances[[0, 2], 0, 0].tolist() == pytest.approx(expected[[0, 2]].tolist(), rel=0.1)
    assert found.covariances[1, 0, 0].item() == pytest.approx(2 * expected[1].item(), rel=0.15)


def test_p_values_are_uniform_where_no_edge_depends():
    """96 edges of eight data sets; a Kolmogorov-Smirnov test that raises a false alarm once in a thousand seeds."""
    p_values = []
    for seed in range(8):
        rng = torch.Generator().manual_seed(100 + seed)
        share = torch.rand(12, generator=rng) * 0.5 + 0.25
        targets = (torch.rand(300, 12, generator=rng) < share).float()[..., None]
        pairs = Pairs(torch.ones(300, 12, 1), targets, series=torch.arange(300) % 3)
        off = ~torch.eye(12, dtype=torch.bool)
        start = BernoulliGraph(torch.diag(targets.mean(0)[:, 0]), off)
        variable = Category("series", SeriesNumber(), labels=("a", "b", "c"))
        graph = ConditionalBernoulliGraph(start, [variable], Context.of(pairs))
        model = LatentGraphModel(
            graph, LinearHop(torch.ones(1, 1, 1)).requires_grad_(False), EnergyScore(), num_graphs=4
        )
        p_values += edge_numbers(model, pairs, ~off, generator=rng).p_values.tolist()
    assert len(p_values) == 96
    assert stats.kstest(p_values, "uniform").pvalue > 1e-3


def test_a_series_counts_what_hangs_together(sharp):
    model, few, _ = counted(THETA, 100)
    pairs = few[torch.arange(100).repeat_interleave(4)]
    edges = torch.eye(3, dtype=torch.bool)
    alone, together = (
        edge_numbers(model, pairs, edges, generator=torch.Generator().manual_seed(0), block=block).covariances[:, 0, 0]
        for block in (1, 8)
    )
    assert (together > 2 * alone).all()


def table_model(names, *, table, hops=2, symmetric=False):
    """A model over three nodes with weights at random, over all pairs or over a table of all of them."""
    rng = torch.Generator().manual_seed(0)
    inputs = torch.randn(12, 3, 2, generator=rng)
    pairs = Pairs(inputs, torch.randn(12, 3, 1, generator=rng), series=torch.arange(12) % 3)
    context = Context.of(pairs)
    made = {
        "series": Category("series", SeriesNumber(), labels=("a", "b", "c")),
        "source": Smooth.of("source", OwnInput("source", 1), context),
        "target": Smooth.of("target", OwnInput("target", 0), context),
    }
    probs = torch.rand(3, 3, generator=rng) * 0.6 + 0.2
    if symmetric:
        probs = probs.triu() + probs.triu(1).mT
    candidates = CandidateEdges.from_mask(torch.ones(3, 3, dtype=torch.bool)) if table else None
    start = BernoulliGraph(probs, candidates=candidates, symmetric=symmetric)
    graph = ConditionalBernoulliGraph(start, [made[name] for name in names], context)
    with torch.no_grad():
        graph.context_weights.copy_(torch.randn(graph.context_weights.shape, generator=rng))
    return LatentGraphModel(graph, HopPredictor(torch.randn(hops, 2, 1, generator=rng)), EnergyScore()), pairs


@pytest.mark.parametrize("table", [False, True])
def test_the_design_is_the_derivative_of_the_logits(table):
    model, pairs = table_model(("series", "source", "target"), table=table)
    graph, edges = model.graph, torch.rand(3, 3, generator=torch.Generator().manual_seed(1)) < 0.6
    found = design_of(graph, pairs, edges)
    for b, (e, (row, slot)) in ((b, each) for b in (0, 5) for each in enumerate(edges.nonzero().tolist())):
        logit = graph.logits_of(graph.features(Context.of(pairs[b : b + 1])))[0, row, slot]
        by_logit, by_weight = torch.autograd.grad(logit, (graph.edge_logits, graph.context_weights))
        assert float(by_logit[row, slot]) == found[b, e, 0] == 1
        assert torch.allclose(by_weight[row, slot], found[b, e, 1:], atol=1e-5)


@pytest.mark.parametrize("hops", [1, 2])
def test_a_table_of_all_pairs_has_the_same_curvature(hops):
    edges, found = torch.ones(3, 3, dtype=torch.bool), []
    for table in (False, True):
        model, pairs = table_model(("series",), table=table, hops=hops)
        found.append(
            logit_curvature(
                model,
                pairs,
                edges,
                generator=torch.Generator().manual_seed(0),
                design=lambda part, graph=model.graph: design_of(graph, part, edges),
                num_numbers=3,
            )
        )
    assert found[0].abs().max() > 1e-3
    assert torch.allclose(*found, atol=1e-6)


def test_the_design_multiplies_the_curvature_of_the_logits():
    """One pair at a time: a number of an edge is its feature times the logit."""
    model, pairs = table_model(("series",), table=False)
    edges, total = torch.ones(3, 3, dtype=torch.bool), 0.0
    for b in range(3):
        one, state = pairs[b : b + 1], torch.Generator().manual_seed(b)
        design = design_of(model.graph, one, edges)[0].double()  # (edge, number)
        plain = logit_curvature(model, one, edges, generator=torch.Generator().manual_seed(b))
        by_hand = (design[:, :, None, None] * plain[:, None, :, None] * design).reshape(27, 27)
        found = logit_curvature(
            model,
            one,
            edges,
            generator=state,
            design=lambda part: design_of(model.graph, part, edges),
            num_numbers=3,
        )
        assert torch.allclose(found, by_hand, atol=1e-6)
        total = total + found.abs().max()
    assert total > 1e-3


def test_too_many_numbers_are_taken_in_groups_of_rows(monkeypatch, sharp):
    model, pairs, _ = counted(THETA)
    edges = torch.eye(3, dtype=torch.bool)
    whole = edge_numbers(model, pairs, edges, generator=torch.Generator().manual_seed(0))
    assert not module.is_split(model, edges)
    monkeypatch.setattr(module, "MOST_PARAMETERS", 4)
    assert module.is_split(model, edges)
    groups = module._groups(edges, 2, 4)
    assert [int(group.sum()) for group in groups] == [2, 1]
    parts = edge_numbers(model, pairs, edges, generator=torch.Generator().manual_seed(0))
    assert parts.covariances.diagonal(dim1=1, dim2=2).flatten().tolist() == pytest.approx(
        whole.covariances.diagonal(dim1=1, dim2=2).flatten().tolist(), rel=0.1
    )


def test_of_a_flat_direction_nothing_is_known(monkeypatch):
    model, pairs, _ = counted(THETA)

    def curvature(*_, **__):
        return torch.diag(torch.tensor([1.0, 1.0, 1.0, -1.0, 1.0, 1.0], dtype=torch.float64))

    monkeypatch.setattr(module, "logit_curvature", curvature)
    found = edge_numbers(model, pairs, torch.eye(3, dtype=torch.bool), generator=torch.Generator().manual_seed(0))
    assert found.p_values[1] == 1
    assert found.covariances[1, 1, 1] == module.UNKNOWN
    assert float(found.estimates[1, 1]) == float(model.graph.context_weights[1, 1, 0].detach())


def test_pairs_in_the_order_of_their_series_show_every_situation(monkeypatch, sharp):
    """Curvature and covariance come from pairs of all series, though a series hangs together."""
    for name, value in (("CURVED_PAIRS", 200), ("KEPT_PAIRS", 200), ("PART", 50)):
        monkeypatch.setattr(module, name, value)
    model, pairs, _ = counted(THETA, 800)
    edges, order = torch.eye(3, dtype=torch.bool), pairs.series.argsort(stable=True)
    found = edge_numbers(model, pairs[order], edges, generator=torch.Generator().manual_seed(0), block=2)
    assert (found.p_values[[0, 2]] < 1e-3).all()
    assert (found.covariances.diagonal(dim1=1, dim2=2) < 1).all()


def test_a_part_without_targets_counts_nothing(monkeypatch, sharp):
    monkeypatch.setattr(module, "PART", 100)
    model, pairs, _ = counted(THETA)
    known = torch.ones_like(pairs.targets)
    known[-100:] = 0
    edges = torch.eye(3, dtype=torch.bool)
    found = edge_numbers(
        model, dataclasses.replace(pairs, observed=known), edges, generator=torch.Generator().manual_seed(0)
    )
    assert found.p_values.isfinite().all()
    assert found.p_values[2] < 1e-3


def test_units_of_the_predictor_do_not_matter():
    """Numbers of the graph are compared with each other only."""
    bend = torch.diag(torch.tensor([1.0, 2.0, 1e6, 2e6], dtype=torch.float64))
    inverse, flat = module._inverse(bend, 2)
    assert not flat.any()
    assert torch.allclose(inverse, torch.linalg.inv(bend))
    assert module._inverse(torch.diag(torch.tensor([1.0, 1.0, -1e-3]).double()), 3)[1].tolist() == [False, False, True]

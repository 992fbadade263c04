"""Edges that depend on the situation: gradients against exact enumeration, and what a fit does with them."""

import dataclasses

import pytest
import torch
from torch.func import functional_call

import oracles
from enumeration import cells_of, exact_gradient, mean_gradient, sets_of, together
from tacit.estimators import DisARM, GlobalCredit, ReceptiveFieldCredit
from tacit.graph import (
    BernoulliGraph,
    CandidateEdges,
    Category,
    ConditionalBernoulliGraph,
    Context,
    CovariateColumn,
    EdgePrior,
    EdgeProbsPerPair,
    OwnInput,
    SeriesNumber,
    SineSquared,
    Smooth,
)
from tacit.graph.conditional import REFERENCES
from tacit.losses import EnergyScore
from tacit.predictors import HopPredictor
from tacit.training import LatentGraphModel
from toys import TOLERANCE

FREE = torch.tensor([[True, True], [False, False]])  # one row, so that two hops come to it from both nodes
CROSSED = torch.tensor([[False, True], [True, False]])
THREE = torch.tensor([[True, True], [True, False]])


def situations(count=6, nodes=2, seed=1):
    """Training situations in float64; the first two are the pairs of a test."""
    rng = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, nodes, 2, generator=rng, dtype=torch.float64)
    covariates = torch.randn(count, 1, generator=rng, dtype=torch.float64)
    return Context(inputs, covariates, torch.arange(count) % 3)


def variables(names, context):
    made = {
        "series": lambda: Category("series", SeriesNumber(), labels=("a", "b", "c")),
        "wind": lambda: Smooth.of("wind", CovariateColumn(0, shift=0.3, scale=1.5), context),
        "source": lambda: Smooth.of("source", OwnInput("source", 1), context),
        "target": lambda: Smooth.of("target", OwnInput("target", 0), context),
    }
    return [made[name]() for name in names]


def toy(
    free,
    names,
    loss,
    num_graphs,
    *,
    table=False,
    symmetric=False,
    rank=None,
    shrinkage=0.0,
    seed=3,
    held=0.0,
    **choices,
):
    """A model of a few free edges with weights at random, and two pairs in different situations."""
    rng, context = torch.Generator().manual_seed(seed), situations()
    probs = torch.where(free, 0.2 + 0.6 * torch.rand(2, 2, generator=rng, dtype=torch.float64), 0.0)
    probs[1, 1] = held
    fixed = ~free
    if symmetric:
        probs, fixed = probs.triu() + probs.triu(1).mT, fixed.triu() | fixed.triu().mT
    candidates = None
    if table:
        candidates = CandidateEdges.from_mask(torch.tensor([[True, True], [True, True]]))
        probs, fixed = (
            probs[candidates.row_node[:, None], candidates.sources],
            fixed[candidates.row_node[:, None], candidates.sources],
        )
    start = BernoulliGraph(probs, fixed, symmetric=symmetric, candidates=candidates)
    graph = ConditionalBernoulliGraph(start, variables(names, context), context, shrinkage=shrinkage, rank=rank)
    with torch.no_grad():
        for name, value in graph.named_parameters():
            if name != "edge_logits":
                value.copy_(0.6 * torch.randn(value.shape, generator=rng, dtype=torch.float64))
    predictor = HopPredictor(torch.randn(2, 2, 1, generator=rng, dtype=torch.float64))
    model = LatentGraphModel(graph, predictor, loss, num_graphs=num_graphs, **choices).double()
    targets = 0.5 * torch.randn(2, 2, 1, generator=rng, dtype=torch.float64)
    return model, context[:2], targets


def logits_by_hand(graph, own, context):
    """(pair, node, node): the definition, edge by edge; of a fixed edge the logit of its probability."""
    features, table = graph.features(context), graph.candidates
    rows = []
    for b in range(len(context.inputs)):
        logits = torch.zeros(2, 2, dtype=torch.float64)
        for row in range(graph.edge_shape[0]):
            for slot in range(graph.edge_shape[1]):
                i = row if table is None else int(table.row_node[row])
                j = slot if table is None else int(table.sources[row, slot])
                place = (min(row, slot), max(row, slot)) if graph.symmetric else (row, slot)
                if graph.fixed[place]:
                    one = torch.logit(graph.fixed_probs[place])
                elif graph.rank is not None:
                    hidden = torch.tanh(features.shared[b] @ own["hidden"]) @ own["mixing"]
                    first = (own["receiving"][i] * own["sending"][j] * hidden).sum()
                    second = (own["receiving"][j] * own["sending"][i] * hidden).sum()
                    one = own["edge_logits"][place] + ((first + second) / 2 if graph.symmetric else first)
                else:
                    parts = [features.shared, features.source, features.target]
                    at = (None, j, i)
                    phi = [p[b] if n is None else p[b, n] for p, n in zip(parts, at, strict=True) if p is not None]
                    one = own["edge_logits"][place] + own["context_weights"][place] @ torch.cat(phi)
                logits = logits.index_put((torch.tensor(i), torch.tensor(j)), one)
        rows.append(logits)
    return torch.stack(rows)


def expected_of(model, context, targets, observed=None):
    """The loss of each pair summed over every graph, as a function of the parameters."""
    graph, everything = model.graph, oracles.all_graphs(torch.ones(2, 2, dtype=torch.bool))
    if graph.symmetric:
        everything = everything[(everything == everything.mT).flatten(1).all(1)]

    def expected(parameters):
        own = {name.removeprefix("graph."): v for name, v in parameters.items() if name.startswith("graph.")}
        probs = torch.sigmoid(logits_by_hand(graph, own, context))
        weights = {"hop_weights": parameters["predictor.hop_weights"]}
        samples = functional_call(model.predictor, weights, (context.inputs, everything[None]))
        total, count = 0.0, 0
        for b in range(len(targets)):
            coins = torch.where(everything > 0, probs[b], 1 - probs[b])
            coins = torch.where(torch.ones(2, 2).triu() > 0, coins, 1.0) if graph.symmetric else coins
            seen = None if observed is None else observed[b : b + 1]
            units = 1.0 if observed is None else observed[b].sum()
            loss = oracles.expected_loss(
                "energy", model.loss.scope, coins.prod(-1).prod(-1), samples[b][None], targets[b][None], seen
            )
            total, count = total + units * loss, count + units
        penalty = 0.0
        if graph.rank is None:
            weights = own["context_weights"]
            if graph.symmetric:  # a pair of nodes is one edge
                weights = torch.where(torch.ones(2, 2, dtype=torch.bool).triu()[..., None], weights, 0.0)
            penalty = 0.5 * graph.shrinkage * (weights.square() * graph.varying[..., None]).sum()
        return total / count + penalty

    return expected


def uniforms_of(model, context, num_graphs, *, shared):
    """Every set of uniforms for the two pairs: of each its own, or one set for both."""
    conditioned = model.graph.condition(context)
    theta = torch.sigmoid(conditioned.logits.detach())
    theta = torch.where(model.graph.fixed & (model.graph.fixed_probs == 0), 0.0, theta)
    if model.graph.symmetric:
        theta = theta * torch.ones(2, 2, dtype=torch.float64).triu()
    if shared:
        sets, probs = sets_of(*cells_of(theta), num_graphs)
        return sets[:, None], probs
    return together(*(sets_of(*cells_of(theta[b][None]), num_graphs) for b in range(2)))


CASES = {
    "series, node": (CROSSED, ("series",), {}, {}),
    "series, joint": (CROSSED, ("series",), {"scope": "joint"}, {}),
    "series, global credit": (CROSSED, ("series",), {}, {"credit": "global"}),
    "leave one out": (FREE, ("series",), {"baseline": "leave_one_out"}, {}),
    "leave one out, joint": (FREE, ("series",), {"baseline": "leave_one_out", "scope": "joint"}, {}),
    "an edge held at .3": (CROSSED, ("series",), {}, {"held": 0.3}),
    "number": (FREE, ("wind",), {}, {}),
    "source": (CROSSED, ("source",), {}, {}),
    "target": (CROSSED, ("target",), {}, {}),
    "all kinds": (CROSSED, ("target", "series", "source", "wind"), {}, {"shrinkage": 0.7}),
    "table": (CROSSED, ("series", "source", "target"), {}, {"table": True}),
    "table, joint": (CROSSED, ("series", "source"), {"scope": "joint"}, {"table": True}),
    "symmetric": (FREE, ("series",), {}, {"symmetric": True, "shrinkage": 0.7}),
    "network": (CROSSED, ("series", "wind"), {}, {"rank": 2}),
    "network, symmetric": (FREE, ("series",), {}, {"rank": 2, "symmetric": True}),
    "network, table": (CROSSED, ("series",), {"scope": "joint"}, {"rank": 2, "table": True}),
}  # fmt: skip


@pytest.mark.parametrize("shared", [False, True], ids=["graphs of each pair", "shared uniforms"])
@pytest.mark.parametrize("case", CASES)
def test_the_gradient_is_exact(case, shared):
    """Both pairs are in one batch: each one's costs meet its own logits."""
    free, names, loss, choices = CASES[case]
    loss = EnergyScore(**{"baseline": "none"} | loss)
    model, context, targets = toy(free, names, loss, loss.min_graphs, **choices)
    local = loss.scope == "node" and choices.get("credit") != "global"
    assert isinstance(model.estimator.credit, ReceptiveFieldCredit if local else GlobalCredit)
    exact = exact_gradient(model, expected_of(model, context, targets))
    sets = uniforms_of(model, context, loss.min_graphs, shared=shared)
    found = mean_gradient(model, context.inputs, targets, *sets, context)
    for name, value in exact.items():
        assert float(value.abs().max()) > 1e-4, "the check would be empty"
        assert float((found[name] - value).abs().max()) < TOLERANCE, name


def test_the_gradient_is_exact_where_targets_are_missing():
    model, context, targets = toy(CROSSED, ("series",), EnergyScore(baseline="none"), 2)
    observed = torch.tensor([[1.0, 0.0], [1.0, 1.0]], dtype=torch.float64)[..., None]
    exact = exact_gradient(model, expected_of(model, context, targets, observed))
    sets = uniforms_of(model, context, 2, shared=False)
    found = mean_gradient(model, context.inputs, targets, *sets, context, observed)
    for name, value in exact.items():
        assert float((found[name] - value).abs().max()) < TOLERANCE, name


def test_three_edges_of_two_rows_and_the_weights_of_edges_that_do_not_vary():
    model, context, targets = toy(THREE, ("series",), EnergyScore(baseline="none"), 2, shrinkage=0.5)
    varying = torch.tensor([[True, False], [True, False]])
    model.graph.varying.copy_(varying)
    with torch.no_grad():
        model.graph.context_weights[~varying] = 0.0
    exact = exact_gradient(model, expected_of(model, context, targets))
    found = mean_gradient(model, context.inputs, targets, *uniforms_of(model, context, 2, shared=False), context)
    for name, value in exact.items():
        there = value[varying] if name == "graph.context_weights" else value
        own = found[name][varying] if name == "graph.context_weights" else found[name]
        assert float((own - there).abs().max()) < TOLERANCE, name
    assert not found["graph.context_weights"][~varying].any()
    assert found["graph.context_weights"][varying].any()


@pytest.mark.parametrize("choices", [{}, {"table": True}, {"symmetric": True}, {"rank": 2}], ids=str)
def test_probabilities_add_up_and_have_their_marginals(choices):
    free = FREE if choices.get("symmetric") else CROSSED
    model, context, _ = toy(free, ("series",), EnergyScore(), 4, **choices)
    graph = model.graph
    own = {name: value.detach() for name, value in graph.named_parameters()}
    by_hand = torch.sigmoid(logits_by_hand(graph, own, context))
    conditioned, everything = graph.condition(context), oracles.all_graphs(torch.ones(2, 2, dtype=torch.bool))
    table = graph.candidates
    slots = everything if table is None else everything[:, table.row_node[:, None], table.sources]
    probs = conditioned.log_prob(slots.expand(2, *slots.shape)).exp().detach()
    assert torch.allclose(probs.sum(1), torch.ones(2, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(torch.einsum("bg,gij->bij", probs, everything), by_hand, atol=1e-12)


def test_the_average_is_that_over_the_training_situations():
    """Of as many situations as there are references the average is exact."""
    context = situations(REFERENCES)
    start = BernoulliGraph(torch.full((2, 2), 0.4, dtype=torch.float64))
    graph = ConditionalBernoulliGraph(start, variables(("series", "source"), context), context)
    assert torch.allclose(graph.edge_probs, start.edge_probs, atol=1e-12)
    with torch.no_grad():
        graph.context_weights.copy_(torch.linspace(-1, 1, graph.context_weights.numel()).view_as(graph.context_weights))
    each = torch.sigmoid(graph.condition(context).logits).detach()
    assert float(each.std(0).min()) > 0.01
    assert torch.allclose(graph.edge_probs, each.mean(0), atol=1e-12)


def test_the_average_does_not_follow_the_clock():
    """Steps of equal length through hourly data could meet the same hour every time."""
    hours = torch.arange(24 * REFERENCES + 1) % 24
    context = Context(torch.zeros(len(hours), 2, 1), series=hours)
    day = Category("hour", SeriesNumber(), labels=[str(hour) for hour in range(24)])
    graph = ConditionalBernoulliGraph(BernoulliGraph(torch.full((2, 2), 0.5)), [day], context)
    with torch.no_grad():
        graph.context_weights.copy_(torch.linspace(-1, 1, 23).expand_as(graph.context_weights))
    each = torch.sigmoid(graph.logits_of(graph.features(context[:24]))).mean(0)
    assert torch.allclose(graph.edge_probs, each, atol=0.02)


def test_an_edge_that_is_always_there_keeps_the_objective_finite(rng):
    """Its absence is impossible, and never counted, whatever the rounding of the weights."""
    logits = torch.tensor([torch.inf, 0.3]).view(1, 1, 2).expand(4, 1, 2)
    graph = EdgeProbsPerPair(logits)
    graphs = graph.sample(7, num_pairs=4, generator=rng)
    weights = torch.randn(4, 7, 1, 1, generator=rng)
    assert bool(graph.weighted_log_prob(weights, graphs).isfinite())


def test_what_was_stored_makes_the_same_graph():
    model, context, _ = toy(CROSSED, ("series", "source", "wind"), EnergyScore(), 4)
    graph = model.graph
    start = BernoulliGraph(torch.full((2, 2), 0.5, dtype=torch.float64), graph.fixed)
    again = ConditionalBernoulliGraph.from_dict(start, graph.to_dict()).double()
    again.load_state_dict(graph.state_dict())
    assert torch.allclose(again.condition(context).logits, graph.condition(context).logits, atol=1e-5)
    assert torch.allclose(again.edge_probs, graph.edge_probs, atol=1e-5)


def test_refusals(refused):
    context, coins = situations(), BernoulliGraph(torch.full((2, 2), 0.5, dtype=torch.float64))
    refused(ConditionalBernoulliGraph, coins, [], context)
    refused(
        ConditionalBernoulliGraph,
        BernoulliGraph(torch.full((2, 2), 0.5), link=SineSquared()),
        variables(("series",), context),
        context,
    )
    refused(ConditionalBernoulliGraph, coins, variables(("source",), context), context, rank=2)
    undirected = BernoulliGraph(torch.full((2, 2), 0.5, dtype=torch.float64), symmetric=True)
    refused(ConditionalBernoulliGraph, undirected, variables(("source",), context), context)
    same = dataclasses.replace(context, series=torch.zeros(6, dtype=torch.long))
    refused(ConditionalBernoulliGraph, coins, variables(("series",), context), same)
    graph = ConditionalBernoulliGraph(coins, variables(("series",), context), context)
    predictor = HopPredictor(torch.ones(1, 2, 1))
    refused(LatentGraphModel, graph, predictor, EnergyScore(), estimator=DisARM())
    refused(LatentGraphModel, graph, predictor, EnergyScore(), prior=EdgePrior(0.5))
    refused(graph.conditioned, Context(context.inputs))
    with pytest.raises(RuntimeError, match=r"requires a context; use condition\(context\)"):
        graph.sample(3, generator=torch.Generator())
    with pytest.raises(ValueError, match="'wind' is not a variable of this graph"):
        graph.feature_slice(variables(("wind",), context)[0])

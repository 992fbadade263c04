"""A graph over a table of candidates equals the dense graph in which all other edges are held at 0."""

import pytest
import torch
from benchmarks.polynomial_filter import PolynomialFilter
from torch.func import functional_call, grad

from tacit.data import Pairs
from tacit.errors import InputError
from tacit.estimators import Concrete, DisARM, StraightThrough
from tacit.graph import BernoulliGraph, CandidateEdges, CandidateGraphs, EdgePrior, boolean_powers, candidate_powers
from tacit.losses import MMD, EnergyScore, NodewiseExpectedError
from tacit.observation import GaussianNoise
from tacit.predictors import (
    ConvolutionStack,
    GraphFilter,
    GraphNetwork,
    HopPredictor,
    PyGPredictor,
)
from tacit.training import FitSettings, LatentGraphModel, fit

NODES, CHANNELS = 7, 4


def a_table(rng, *, hub=False, loops=True, nodes=NODES):
    mask = torch.rand(nodes, nodes, generator=rng) < 0.35
    if hub:
        mask[0], mask[1:] = True, torch.rand(nodes - 1, nodes, generator=rng) < 0.2
    mask.fill_diagonal_(False)
    if loops:
        mask |= torch.eye(nodes).bool()
    return mask, CandidateEdges.from_mask(mask)


def in_slots(matrix, candidates):
    """Values of all pairs of nodes, looked up for each slot; 0 in empty ones."""
    return torch.where(candidates.used, matrix[..., candidates.row_node[:, None], candidates.sources], 0.0)


def a_linear_sum(num_channels):
    class SumOfNeighbours(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(num_channels, 1, generator=torch.Generator().manual_seed(3)))

        def forward(self, x, edge_index):
            source, target = edge_index
            return x.new_zeros(len(x), 1).index_add(0, target, x[source] @ self.weight)

    return SumOfNeighbours()


def predictors(candidates, rng):
    dense = GraphFilter(NODES, 2, 2, activation="tanh")
    dense.load_state_dict(dense.initial_parameters(rng), strict=False)
    listed = GraphFilter(NODES, 2, 2, activation="tanh", candidates=candidates)
    weights = dense.edge_weights.detach()[candidates.row_node[:, None], candidates.sources]
    listed.load_state_dict({"own": dense.own, "bias": dense.bias, "edge_weights": weights})
    recurrent = GraphNetwork.recurrent(window=2, num_features=2, hidden=3, num_layers=2)
    recurrent.load_state_dict(recurrent.initial_parameters(rng))
    same = {
        "one hop": HopPredictor.random(1, CHANNELS, generator=rng),
        "two hops": HopPredictor.random(2, CHANNELS, generator=rng),
        "stack": ConvolutionStack.random([CHANNELS, 3, 1], generator=rng),
        "stack with loops": ConvolutionStack.random([CHANNELS, 3, 1], self_loops=True, generator=rng),
        "polynomial": PolynomialFilter(torch.randn(3, 2, generator=rng) / 2, num_features=2),
        "recurrent": recurrent,
        "noisy": HopPredictor.random(2, CHANNELS, generator=rng),
        "pyg": PyGPredictor(a_linear_sum(CHANNELS), window=2, num_features=2),
    }
    return {name: (one.double(), one.double()) for name, one in same.items()} | {
        "filter": (dense.double(), listed.double())
    }


NAMES = [
    *("one hop", "two hops", "stack", "stack with loops", "polynomial", "recurrent", "noisy", "pyg"),
    "filter",
]
CHOICES = {
    "energy": lambda: {"loss": EnergyScore()},
    "joint": lambda: {"loss": MMD(scope="joint")},
    "shared": lambda: {"loss": MMD(), "share_graphs": True},
    "disarm": lambda: {"loss": EnergyScore(), "estimator": DisARM()},
    "prior": lambda: {"loss": EnergyScore(baseline="none"), "prior": EdgePrior(0.2, weight=0.1)},
}


def gradients(model, *batch):
    parameters = dict(model.named_parameters())
    return grad(lambda p: functional_call(model, p, batch)[0])(parameters)


def two_models(rng, name, *, hub=False, **choices):
    mask, candidates = a_table(rng, hub=hub)
    probs = torch.rand(NODES, NODES, generator=rng, dtype=torch.float64) * mask
    dense, listed = predictors(candidates, rng)[name]
    if name == "noisy":
        choices["observation"] = GaussianNoise(NODES).double()
    first = LatentGraphModel(BernoulliGraph(probs, ~mask), dense, num_graphs=4, **choices)
    second = LatentGraphModel(
        BernoulliGraph(in_slots(probs, candidates), candidates=candidates), listed, num_graphs=4, **choices
    )
    return first, second, candidates


@pytest.mark.parametrize("hub", [False, True], ids=["even", "hub"])
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_of_the_dense_graph(rng, name, choice, hub):
    dense, listed, candidates = two_models(rng, name, hub=hub, **CHOICES[choice]())
    if hub:
        assert len(candidates.row_node) > NODES  # the hub has several rows
    inputs, targets = torch.randn(5, NODES, CHANNELS, generator=rng).double(), torch.randn(5, NODES, 1, generator=rng)
    shape = dense.uniforms_shape(5)
    uniforms = torch.rand(shape, generator=rng, dtype=torch.float64)
    edges, noise = uniforms.tensor_split([NODES], -1)
    extra = torch.zeros(*shape[:2], len(candidates.row_node), shape[3] - NODES, dtype=torch.float64)
    extra[..., :NODES, :] = noise
    wanted = gradients(dense, inputs, targets.double(), uniforms)
    found = gradients(listed, inputs, targets.double(), torch.cat([in_slots(edges, candidates), extra], -1))
    for part, value in wanted.items():
        per_edge = part in ("graph.edge_logits", "predictor.edge_weights")
        if per_edge:
            value = value[candidates.row_node[:, None], candidates.sources]
            value = torch.where(candidates.used.view(*candidates.used.shape, *[1] * (value.ndim - 2)), value, 0.0)
        torch.testing.assert_close(found[part], value, rtol=1e-10, atol=1e-12)
    assert found["graph.edge_logits"].abs().max() > 0


@pytest.mark.parametrize("estimator", [StraightThrough(), Concrete()], ids=["straight-through", "concrete"])
def test_gradients_through_the_graph(rng, estimator):
    dense, listed, candidates = two_models(rng, "stack", loss=EnergyScore(), estimator=estimator)
    inputs, targets = torch.randn(5, NODES, CHANNELS, generator=rng).double(), torch.randn(5, NODES, 1, generator=rng)
    uniforms = torch.rand(dense.uniforms_shape(5), generator=rng, dtype=torch.float64)
    wanted = gradients(dense, inputs, targets.double(), uniforms)["graph.edge_logits"]
    chances = torch.where(
        candidates.used, in_slots(uniforms, candidates), 0.5
    )  # strictly between 0 and 1 in empty candidates too
    found = gradients(listed, inputs, targets.double(), chances)["graph.edge_logits"]
    torch.testing.assert_close(found, in_slots(wanted, candidates), rtol=1e-10, atol=1e-12)


def test_credit_of_literature_2(rng):
    dense, listed, candidates = two_models(rng, "two hops", loss=NodewiseExpectedError("mse"))
    inputs, targets = torch.randn(5, NODES, CHANNELS, generator=rng).double(), torch.randn(5, NODES, 1, generator=rng)
    uniforms = torch.rand(dense.uniforms_shape(5), generator=rng, dtype=torch.float64)
    wanted = gradients(dense, inputs, targets.double(), uniforms)["graph.edge_logits"]
    found = gradients(listed, inputs, targets.double(), in_slots(uniforms, candidates))["graph.edge_logits"]
    torch.testing.assert_close(found, in_slots(wanted, candidates), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shared", [False, True])
def test_a_fit_over_all_pairs_is_the_dense_fit(rng, shared):
    """The table of all pairs has the layout of a matrix: the same random numbers, the same result."""
    inputs = torch.randn(200, NODES, CHANNELS, generator=rng).double()
    predictor = HopPredictor.random(2, CHANNELS, generator=rng).double().requires_grad_(False)
    truth = BernoulliGraph(0.7 * (torch.rand(NODES, NODES, generator=rng) < 0.3).double())
    targets = predictor(inputs, truth.sample(1, num_pairs=200, generator=rng))[:, 0]
    pairs, results = Pairs(inputs, targets).split(), []
    for candidates in (None, CandidateEdges.from_mask(torch.ones(NODES, NODES).bool())):
        graph = BernoulliGraph.uniform(NODES, generator=torch.Generator().manual_seed(0), candidates=candidates)
        model = LatentGraphModel(graph, predictor, EnergyScore(), num_graphs=4, share_graphs=shared)
        settings = FitSettings(epochs=3, batch_size=16, halve_after=(2,))
        results.append(fit(model, pairs.train, pairs.validation, settings, seeds=range(2), compile=False))
    first, second = results
    torch.testing.assert_close(
        first.parameters["graph.edge_logits"], second.parameters["graph.edge_logits"], rtol=1e-9, atol=1e-9
    )
    assert [replica.dropped_after for replica in first.replicas] == [r.dropped_after for r in second.replicas]


def test_lifted_and_looped_replicas_agree(rng):
    _, candidates = a_table(rng, hub=True)
    inputs, targets = torch.randn(40, NODES, CHANNELS, generator=rng).double(), torch.randn(40, NODES, 1, generator=rng)
    pairs, stacks = Pairs(inputs, targets.double()), []
    for lift in ("loop", "vmap"):
        graph = BernoulliGraph.uniform(NODES, generator=torch.Generator().manual_seed(0), candidates=candidates)
        predictor = ConvolutionStack.random([CHANNELS, 3, 1], generator=torch.Generator().manual_seed(1))
        model = LatentGraphModel(graph, predictor, EnergyScore(), num_graphs=4)
        settings = FitSettings(epochs=2, batch_size=8)
        result = fit(model, pairs, pairs, settings, seeds=range(3), lift=lift, compile=False)
        assert not result.warnings
        stacks.append(result.parameters)
    for name, value in stacks[0].items():
        torch.testing.assert_close(value, stacks[1][name], rtol=1e-9, atol=1e-9)


def test_empty_slots_are_never_drawn_nor_moved(rng):
    _, candidates = a_table(rng, hub=True)
    graph = BernoulliGraph(torch.ones(candidates.sources.shape), candidates=candidates)
    drawn = graph.sample(5, generator=rng)
    assert torch.equal(drawn[0, 0] > 0, candidates.used)
    assert graph.score(drawn)[..., ~candidates.used].abs().max() == 0
    assert graph.num_nodes == NODES


@pytest.mark.parametrize("hub", [False, True])
def test_powers_over_a_table_are_those_of_the_matrix(rng, hub):
    _, candidates = a_table(rng, hub=hub)
    values = (torch.rand(2, 3, *candidates.sources.shape, generator=rng) < 0.5).double() * candidates.used
    matrix = torch.zeros(2, 3, NODES, NODES, dtype=torch.float64)
    for row, node in enumerate(candidates.row_node.tolist()):
        for slot in candidates.used[row].nonzero()[:, 0].tolist():
            matrix[..., node, candidates.sources[row, slot]] = values[..., row, slot]
    messages = torch.randn(2, 1, NODES, 2, generator=rng, dtype=torch.float64)
    for dense, listed in zip(
        boolean_powers(matrix, 3), candidate_powers(CandidateGraphs(values, candidates), 3), strict=True
    ):
        torch.testing.assert_close(listed @ messages, dense @ messages)


def test_what_a_table_cannot_do(rng, monkeypatch):
    _, candidates = a_table(rng)
    probs = torch.full(candidates.sources.shape, 0.5)
    with pytest.raises(
        InputError, match=r"symmetric requires a graph over all pairs of nodes, got a table of candidates"
    ):
        BernoulliGraph(probs, candidates=candidates, symmetric=True)
    with pytest.raises(InputError, match=r"edge_probs must have the shape of the table of candidates, .* per slot"):
        BernoulliGraph(torch.full((NODES, NODES), 0.5), candidates=candidates)
    deep = ConvolutionStack.random([CHANNELS, 3, 3, 1], generator=rng)
    with pytest.raises(
        InputError, match=r"over a table of candidates requires num_hops <= 2, got 3 .* credit='global'"
    ):
        LatentGraphModel(BernoulliGraph(probs, candidates=candidates), deep, EnergyScore(), num_graphs=4)
    LatentGraphModel(BernoulliGraph(probs, candidates=candidates), deep, EnergyScore(), num_graphs=4, credit="global")
    monkeypatch.setattr("tacit.graph.operators.MOST_WALKS", 3)
    with pytest.raises(
        InputError, match=r"powers of the graph over this table require \d+ walks, but at most 3 are listed"
    ):
        next(iter(list(candidate_powers(CandidateGraphs(probs[None, None], a_table(rng)[1]), 2))))


def test_a_predictor_that_is_not_local_is_found_over_a_table_too(rng):
    class Everyone(HopPredictor):
        def forward(self, inputs, graphs):
            return super().forward(inputs, graphs) + super().forward(inputs, graphs).sum(-2, keepdim=True)

    _, candidates = a_table(rng)
    graph = BernoulliGraph.uniform(NODES, generator=rng, candidates=candidates)
    model = LatentGraphModel(graph, Everyone(torch.ones(1, CHANNELS, 1)), EnergyScore(), num_graphs=4)
    with pytest.raises(InputError, match=r"local predictor, but Everyone declares num_hops=1 .* out of reach"):
        model.check(torch.randn(4, NODES, CHANNELS, generator=rng), torch.randn(4, NODES, 1, generator=rng))


def test_parts_that_need_all_pairs_say_so(rng):
    from tacit.assessment.identification import compare_replicas, identify
    from tacit.assessment.uncertainty import bootstrap, sandwich

    _, candidates = a_table(rng)
    graph = BernoulliGraph.uniform(NODES, generator=rng, candidates=candidates)
    predictor = HopPredictor.random(1, CHANNELS, generator=rng)
    model = LatentGraphModel(graph, predictor, EnergyScore(), num_graphs=4)
    pairs = Pairs(torch.randn(40, NODES, CHANNELS, generator=rng), torch.randn(40, NODES, 1, generator=rng))
    settings = FitSettings(epochs=1, batch_size=8)
    result = fit(model, pairs, pairs, settings, compile=False)
    calls = {
        "identify": lambda: identify(model, pairs.inputs, pairs.targets, generator=rng),
        "compare_replicas": lambda: compare_replicas(result),
        "sandwich": lambda: sandwich(model, pairs, generator=rng),
        "bootstrap": lambda: bootstrap(model, pairs, pairs, settings, replicas=8),
    }
    for name, call in calls.items():
        with pytest.raises(InputError, match=f"{name} requires a graph over all pairs of nodes, got a table of"):
            call()
    with pytest.raises(InputError, match="num_nodes must equal that of candidates, 7, got 9"):
        BernoulliGraph.uniform(9, generator=rng, candidates=candidates)
    two = LatentGraphModel(
        graph,
        HopPredictor.random(2, CHANNELS, generator=rng),
        EnergyScore(),
        estimator=StraightThrough(),
        num_graphs=4,
    )
    with pytest.raises(InputError, match="HopPredictor with one hop over a table of candidates, got 2"):
        two.check(pairs.inputs, pairs.targets)
    wrong = LatentGraphModel(graph, GraphFilter(NODES, 2, 2), EnergyScore(), num_graphs=4)
    with pytest.raises(InputError, match=r"build GraphFilter with candidates=graph\.candidates"):
        wrong.check(pairs.inputs, pairs.targets)

"""Distributions behind the interface: theta from a context, correlated edges; gradients against exact enumeration."""

import pytest
import torch
from benchmarks.studies.correlated_system import CorrelatedGraph, columns_together, exclusive_pairs, rows_together
from torch import nn
from torch.func import functional_call

import oracles
from enumeration import cells_of, exact_gradient, mean_gradient, sets_of
from tacit.data import Pairs
from tacit.estimators import Concrete, DisARM, GlobalCredit, ReceptiveFieldCredit, StraightThrough
from tacit.graph import BernoulliGraph, Context, EdgePrior, EdgeProbsPerPair, GraphDistribution
from tacit.losses import EnergyScore, NodewiseExpectedError
from tacit.predictors import HopPredictor
from tacit.training import FitSettings, LatentGraphModel, fit
from toys import TOLERANCE

ALL = torch.ones(2, 2, dtype=torch.bool)


class InputGraph(GraphDistribution):
    """Logits that are linear in the inputs of the two nodes."""

    independent_edges = True
    context_fields = ("inputs",)

    def __init__(self, num_nodes, slope):
        super().__init__()
        self.level = nn.Parameter(torch.zeros(num_nodes, num_nodes))
        self.slope = nn.Parameter(torch.tensor(slope))

    @property
    def edge_shape(self):
        return tuple(self.level.shape)

    @property
    def edge_probs(self):
        return torch.sigmoid(self.level)

    def logits(self, context):
        size = context.inputs.sum(-1)
        return self.level + self.slope * (size[:, :, None] - 0.5 * size[:, None])

    def condition(self, context):
        return EdgeProbsPerPair(self.logits(context))

    def sample_from(self, _):
        raise AssertionError("only the conditioned distribution is drawn from")

    log_prob = sample_from

    def initial_parameters(self, generator):
        return {"level": 0.1 * torch.randn(self.level.shape, generator=generator), "slope": self.slope.detach()}


class SeriesGraph(InputGraph):
    """Logits of their own for each series."""

    context_fields = ("series",)

    def __init__(self, num_nodes, num_series):
        super().__init__(num_nodes, 0.0)
        start = torch.linspace(-1, 1.5, num_series * num_nodes**2)
        self.level = nn.Parameter(start.view(num_series, num_nodes, num_nodes))

    @property
    def edge_shape(self):
        return tuple(self.level.shape[1:])

    def logits(self, context):
        return self.level[context.series] + 0 * self.slope


def toy(graph, loss, num_graphs, **choices):
    rng = torch.Generator().manual_seed(3)
    predictor = HopPredictor(torch.randn(2, 2, 1, generator=rng))
    model = LatentGraphModel(graph, predictor, loss, num_graphs=num_graphs, **choices).double()
    return model, torch.randn(2, 2, 2, generator=rng).double(), 0.5 * torch.randn(2, 2, 1, generator=rng).double()


@pytest.mark.parametrize("scope", ["node", "joint"])
@pytest.mark.parametrize("kind", ["inputs", "series"])
def test_the_gradient_of_a_conditional_distribution_is_exact(kind, scope):
    """Each pair has graphs of its own; the loss of a pair depends on its own graphs alone, so they are enumerated."""
    graph = InputGraph(2, 0.7) if kind == "inputs" else SeriesGraph(2, 2)
    model, inputs, targets = toy(graph, EnergyScore(scope=scope, baseline="none"), 2)
    assert isinstance(model.estimator.credit, ReceptiveFieldCredit if scope == "node" else GlobalCredit)
    context = Context(inputs, series=torch.tensor([1, 0]))
    everything = oracles.all_graphs(ALL)

    def expected(parameters):
        own = {name.removeprefix("graph."): v for name, v in parameters.items() if name.startswith("graph.")}
        level, slope, size = own["level"], own["slope"], inputs.sum(-1)
        logits = level + slope * (size[:, :, None] - 0.5 * size[:, None])
        if kind == "series":
            logits = level[context.series]
        weights = {"hop_weights": parameters["predictor.hop_weights"]}
        samples = functional_call(model.predictor, weights, (inputs, everything[None]))
        losses = [
            oracles.expected_loss(
                "energy", scope, oracles.graph_probs(everything, torch.sigmoid(logits[b])), samples[b][None],
                targets[b][None],
            )
            for b in range(2)
        ]  # fmt: skip
        return sum(losses) / 2

    exact = exact_gradient(model, expected)
    theta = torch.sigmoid(graph.logits(context)).detach()
    found = {name: torch.zeros_like(value) for name, value in exact.items()}
    for b in range(2):  # the other pair under any graph: its part is left out by its own gradient being enumerated
        sets, probs = sets_of(*cells_of(theta[b][None]), 2)
        one = Context(inputs[b : b + 1], series=context.series[b : b + 1])
        part = mean_gradient(model, inputs[b : b + 1], targets[b : b + 1], sets[:, None], probs, one)
        found = {name: found[name] + part[name] / 2 for name in found}
    for name in ("graph.level", "predictor.hop_weights"):
        assert float(exact[name].abs().max()) > 1e-3, "the check would be empty"
    for name in exact:
        assert float((found[name] - exact[name]).abs().max()) < TOLERANCE, name
    sets, probs = sets_of(*cells_of(theta), 2)  # uniforms that both share: graphs differ where their thetas do
    shared = mean_gradient(model, inputs, targets, sets[:, None], probs, context)
    for name in exact:
        assert float((shared[name] - exact[name]).abs().max()) < TOLERANCE, name


def test_pairs_that_share_a_batch_have_graphs_of_their_own(rng):
    model, _, _ = toy(InputGraph(2, 50.0), EnergyScore(baseline="none"), 4)
    strong = torch.stack([torch.ones(2, 2), -torch.ones(2, 2)]).double()  # theta about 1 and about 0
    drawn = model.graph_for(strong).sample(50, num_pairs=2, generator=rng)
    assert drawn.mean((1, 2, 3)).tolist() == [1.0, 0.0]
    outputs = model.outputs(strong, 3, generator=rng)
    assert torch.allclose(outputs[0], model.predictor(strong[:1], torch.ones(1, 3, 2, 2).double())[0])
    assert torch.allclose(outputs[1], torch.zeros(3, 2, 1).double())


def test_a_context_that_lacks_what_is_needed_is_refused(rng, refused):
    model, inputs, _ = toy(SeriesGraph(2, 2), EnergyScore(baseline="none"), 2)
    refused(model.sample, inputs, 3, generator=rng)
    drawn = model.sample(inputs, 3, generator=rng, context=Context(inputs, series=torch.tensor([0, 1])))
    assert drawn.shape == (2, 3, 2, 1)


TIES = {"rows": rows_together, "columns": columns_together, "exclusive": exclusive_pairs}


def correlated(name, probs):
    return CorrelatedGraph(probs, *TIES[name](ALL))


def probs_by_intervals(graph, theta):
    """P(A) of all 16 graphs: one uniform per source, cut at every bound; a product over sources of interval lengths."""
    everything, total = oracles.all_graphs(ALL), 1.0
    for source in graph.sources.unique().tolist():
        mine, turned = graph.sources == source, graph.turned
        bounds = torch.where(turned, 1 - theta, theta)[mine]
        ends = torch.cat([bounds.new_zeros(1), bounds.sort().values, bounds.new_ones(1)])
        middles = (ends[1:] + ends[:-1]).detach() / 2
        values = torch.where(turned, 1 - middles[:, None, None], middles[:, None, None])
        made = values < theta.detach()  # (interval, node, node)
        fits = ((everything[:, None] > 0) == made)[:, :, mine].all(-1).to(theta.dtype)  # (graph, interval)
        total = total * (fits @ ends.diff())
    return everything, total


@pytest.mark.parametrize("name", TIES)
def test_probabilities_of_correlated_graphs_add_up_and_keep_their_marginals(name):
    theta = torch.tensor([[0.3, 0.8], [0.45, 0.6]], dtype=torch.float64)
    graph = correlated(name, theta)
    everything, expected = probs_by_intervals(graph, theta)
    probs = graph.log_prob(everything[None])[0].exp().detach()
    assert torch.allclose(probs, expected, atol=1e-12)
    assert float(probs.sum()) == pytest.approx(1, abs=1e-12)
    assert torch.allclose(torch.einsum("g,gij->ij", probs, everything), theta, atol=1e-12)
    assert (probs == 0).any(), "some graphs cannot be"
    assert not graph.independent_edges


@pytest.mark.parametrize("scope", ["node", "joint"])
@pytest.mark.parametrize("name", TIES)
def test_the_gradient_of_correlated_graphs_is_exact(name, scope):
    theta = torch.tensor([[0.3, 0.8], [0.45, 0.6]], dtype=torch.float64)
    model, inputs, targets = toy(correlated(name, theta), EnergyScore(scope=scope, baseline="none"), 2)
    assert isinstance(model.estimator.credit, GlobalCredit)

    def expected(parameters):
        edge_probs = torch.sigmoid(parameters["graph.marginals.edge_logits"])
        everything, probs = probs_by_intervals(model.graph, edge_probs)
        weights = {"hop_weights": parameters["predictor.hop_weights"]}
        samples = functional_call(model.predictor, weights, (inputs, everything[None]))
        return oracles.expected_loss("energy", scope, probs, samples, targets)

    exact = exact_gradient(model, expected)
    sets, probs = sets_of(*cells_of(_bounds_of_sources(model.graph, theta)), 2)
    found = mean_gradient(model, inputs, targets, sets[:, None], probs)
    for key in exact:
        assert float(exact[key].abs().max()) > 1e-3, "the check would be empty"
        assert float((found[key] - exact[key]).abs().max()) < TOLERANCE, key


def _bounds_of_sources(graph, theta):
    """At each place the bounds that the uniform there is compared with: (entry, node, node), 0 where there are none."""
    bounds = torch.where(graph.turned, 1 - theta, theta).flatten()
    found = torch.zeros(4, 4, dtype=theta.dtype)
    for entry, source in enumerate(graph.sources.flatten().tolist()):
        found[entry, source] = bounds[entry]
    return found.view(4, 2, 2)


@pytest.mark.parametrize("kind", ["correlated", "inputs"])
def test_a_fit_moves_any_distribution(kind):
    """Targets under every edge: the probabilities rise."""
    rng = torch.Generator().manual_seed(0)
    theta = torch.tensor([[0.4, 0.5], [0.45, 0.55]])
    graph = InputGraph(2, 0.1) if kind == "inputs" else correlated("rows", theta)
    predictor = HopPredictor(torch.ones(1, 1, 1)).requires_grad_(False)
    inputs = torch.rand(300, 2, 1, generator=rng) + 0.5
    with torch.no_grad():
        pairs = Pairs(inputs, predictor(inputs, torch.ones(1, 1, 2, 2))[:, 0]).split()
    model = LatentGraphModel(graph, predictor, EnergyScore(), num_graphs=4)
    before = graph.edge_probs.detach().clone()
    result = fit(
        model, pairs.train, pairs.validation, FitSettings(epochs=4, batch_size=32), seeds=(0, 1), compile=False
    )
    assert (model.graph.edge_probs > before + 0.2).all()
    stacks = {name.removeprefix("graph."): value for name, value in result.parameters.items()}
    probs = model.graph.probs_of(stacks)
    assert probs.shape == (2, 2, 2)
    assert torch.allclose(probs[result.best], model.graph.edge_probs, atol=1e-6)


def test_what_needs_coins_or_independent_edges_is_refused(rng, refused):
    graph, predictor = correlated("rows", torch.full((2, 2), 0.5)), HopPredictor(torch.ones(1, 1, 1))
    for estimator in (DisARM(), Concrete(), StraightThrough()):
        refused(LatentGraphModel, graph, predictor, EnergyScore(), estimator=estimator)
    for choices in ({"credit": "receptive_field"}, {"prior": EdgePrior(0.5)}):
        refused(LatentGraphModel, graph, predictor, EnergyScore(), **choices)
    refused(LatentGraphModel, graph, predictor, NodewiseExpectedError())
    refused(graph.require_all_pairs, "sandwich")
    coins = BernoulliGraph(torch.full((2, 2), 0.5))
    coins.require_all_pairs("sandwich")
    assert coins.conditioned(Context(torch.zeros(1, 2, 1))) is coins

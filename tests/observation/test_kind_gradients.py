"""Gradients for theta, psi and the parameters of each kind, by summing over every graph and every value.

What is exact: yes or no and categories have few values. Counts are summed up to 60 where the noise is integrated (means
below 5: the rest has a probability below 1e-15), and up to 8 where it is sampled (means below 0.13: the rest has one
below 1e-12). Log-normal distances are integrals by a rule that is exact to 1e-13. For Student t samples have
derivatives, and any finite set of uniforms makes an exact expectation.
"""

import itertools

import numpy as np
import pytest
import torch
from torch.func import functional_call, grad, vmap

import oracles
from tacit.estimators import DisARM, ScoreFunction
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore, LogScore, NoisyEnergyScore
from tacit.observation import GaussianNoise, MixedObservation, TargetValues
from tacit.predictors import HopPredictor
from tacit.registry import OBSERVATIONS
from tacit.training import LatentGraphModel

FREE = torch.tensor([[False, True], [True, False]])
CATEGORIES = (0.0, 1.0, 3.0)
WAYS = {
    "score function": (ScoreFunction(), "none", 2),
    "leave-one-out": (ScoreFunction(), "leave_one_out", 3),
    "disarm": (DisARM(), "none", 4),
}
TARGETS = {"counts": (3.0, 1.0), "two values": (1.0, 0.0), "categories": (3.0, 1.0), "positive": (1.4, 0.6)}


def kind(name, offset=1.0, largest=60):
    """A kind for two nodes, in float64, away from its start."""
    values = TargetValues(torch.full((2, 1), offset), torch.tensor([[1.0], [0.8]]), CATEGORIES, largest)
    model = OBSERVATIONS[name].for_sizes(num_nodes=2, in_channels=2, channels=1, values=values).double()
    for number, value in enumerate(model.parameters()):
        value.data += 0.2 * torch.arange(1, 1 + value.numel()).view(value.shape).double() - 0.1 * number
    return model


def toy(observation, loss, num_graphs, estimator=None, free=FREE, targets=None):
    """Two nodes, two hops, two free edges or one; targets are values of the kind."""
    generator = torch.Generator().manual_seed(1)
    graph = BernoulliGraph(torch.where(free, torch.tensor([[0.0, 0.3], [0.6, 0.0]]), 0.0), fixed=~free)
    predictor = HopPredictor(torch.randn(2, 2, 1, generator=generator))
    model = LatentGraphModel(
        graph, predictor, loss, observation=observation, num_graphs=num_graphs, estimator=estimator
    ).double()
    inputs = torch.randn(1, 2, 2, generator=generator).double()
    values = torch.tensor(targets or TARGETS.get(observation.support, (0.4, -0.3))).double().view(1, 2, 1)
    if observation.support != "real":
        values = (values - observation.offset) / observation.unit
    return model, inputs, values


def mean_gradient(model, inputs, targets, cells, probs):
    """The mean of the estimator over every tuple of cells of uniforms."""
    parameters = {name: value.detach() for name, value in model.named_parameters()}

    def objective(parameters, uniforms):
        return functional_call(model, parameters, (inputs, targets, uniforms))[0]

    groups = model.num_graphs // model.estimator.group_size
    tuples = torch.cartesian_prod(*[torch.arange(len(cells))] * groups).view(-1, groups)
    total = {name: torch.zeros_like(value) for name, value in parameters.items()}
    for some in tuples.split(20_000):
        gradients = vmap(grad(objective), in_dims=(None, 0))(parameters, cells[some][:, None])
        for name, value in gradients.items():
            total[name] += torch.tensordot(probs[some].prod(1), value, dims=1)
    return total


def exact_gradient(model, inputs, free, expectation):
    """The gradient of expectation(probs, described), with what describes each target under every graph."""
    graphs = oracles.all_graphs(free)

    def loss(parameters):
        edge_probs = model.graph.link.probs(parameters["graph.edge_logits"])
        probs = oracles.graph_probs(graphs, torch.where(free, edge_probs, 0.0))
        own, noise = (
            {name.removeprefix(part): v for name, v in parameters.items() if name.startswith(part)}
            for part in ("predictor.", "observation.")
        )
        outputs = functional_call(model.predictor, own, (inputs, graphs[None]))
        with torch.nn.utils.stateless._reparametrize_module(model.observation, noise):
            return expectation(probs, model.observation.describe(outputs, inputs))

    parameters = {name: value.detach() for name, value in model.named_parameters()}
    parameters["graph.edge_logits"] = torch.where(free, parameters["graph.edge_logits"], 0.5)
    exact = grad(loss)(parameters)
    return exact | {"graph.edge_logits": torch.where(free, exact["graph.edge_logits"], 0.0)}


def compare(expected, exact):
    assert set(expected) == set(exact)
    for name, value in exact.items():
        assert float(value.abs().max()) > 1e-6, f"the check of {name} would be empty"
        assert float((expected[name] - value).abs().max()) < 1e-10, name


def support_of(observation, most=60):
    known = {"two values": (0.0, 1.0), "categories": CATEGORIES}.get(observation.support)
    return torch.tensor(known if known is not None else [float(k) for k in range(most + 1)]).double()


def masses(observation, described, values):
    """P(v) under each graph and of each node: (graph, node, value)."""
    targets = (values - observation.offset) / observation.unit  # (node, value)
    found = [observation.log_prob(described, targets[:, k].view(1, 2, 1)).exp()[0, ..., 0] for k in range(len(values))]
    return torch.stack(found, -1)


def energy_of_values(observation, targets):
    """The expected energy score of a mixture over graphs, as sums over all pairs of values."""
    values = support_of(observation)
    v = (targets * observation.unit + observation.offset)[0, :, 0]

    def expectation(probs, described):
        mixture = torch.einsum("g,gnk->nk", probs, masses(observation, described, values))
        total = 0.0
        for node, unit in enumerate(observation.unit[:, 0]):
            data = mixture[node] @ (values - v[node]).abs()
            spread = mixture[node] @ (values[:, None] - values).abs() @ mixture[node]
            total = total + (data - spread / 2) / unit
        return total / 2

    return expectation


def energy_of_positive_numbers(observation, targets):
    r"""$\int (F(v) - 1[y \le v])^2 dv$ of the mixture's distribution function, by Gauss-Legendre on both sides of y."""
    points, weights = (torch.tensor(part) for part in np.polynomial.legendre.leggauss(200))
    v = (targets * observation.unit + observation.offset)[0, :, 0]

    def expectation(probs, described):
        total = 0.0
        for node, unit in enumerate(observation.unit[:, 0]):
            mean, sigma = described[0, :, node, 0], observation.sigma[node, 0]
            for low, high, above in ((-12.0, float(v[node].log()), 0.0), (float(v[node].log()), 12.0, 1.0)):
                logs = low + (high - low) * (points + 1) / 2
                below = torch.special.ndtr((logs[:, None] - mean.log()) / sigma + sigma / 2) @ probs
                total = total + (weights * logs.exp() * (below - above) ** 2).sum() * (high - low) / 2 / unit
        return total / 2

    return expectation


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["poisson", "negative_binomial", "bernoulli", "ordered", "log_normal"])
def test_gradients_with_integrated_noise(name, way):
    estimator, baseline, num_graphs = WAYS[way]
    observation = kind(name)
    model, inputs, targets = toy(observation, EnergyScore(baseline=baseline), num_graphs, estimator)
    assert type(model.loss) is NoisyEnergyScore
    energy = energy_of_positive_numbers if name == "log_normal" else energy_of_values
    cells = oracles.uniform_cells(FREE, model.graph.edge_probs.detach(), antithetic=estimator.group_size == 2)
    expected = mean_gradient(model, inputs, targets, *cells)
    compare(expected, exact_gradient(model, inputs, FREE, energy(observation, targets)))


class SampledEnergyScore(EnergyScore):
    """The energy score without its closed form."""

    def integrating(self, observation):
        del observation


def joint_energy(values, weights, target, scope):
    """The energy score of a weighted sample of outputs (outcome, node)."""

    def distance(a, b):
        if scope == "node":
            return (a - b).abs().mean(-1)
        mean = (a - b).square().mean(-1)
        return torch.where(mean > 0, mean.clamp_min(1e-300).sqrt(), 0.0)

    data = weights @ distance(values, target)
    return data - weights @ distance(values[:, None], values) @ weights / 2


def value_cells(model, inputs, values, free):
    """Uniforms for every graph and every value of both nodes, with their probabilities and outcomes."""
    observation, graphs = model.observation, oracles.all_graphs(free)
    edges, edge_probs = oracles.uniform_cells(free, model.graph.edge_probs.detach(), antithetic=False)
    drawn = model.graph.sample_from(edges[None])[0]
    assert (drawn[:, None] == graphs).all((-2, -1)).sum() == len(edges)
    with torch.no_grad():
        found = masses(observation, model.describe(inputs, drawn[None]), values)
    cells, probs = [], []
    for number in range(len(drawn)):
        middles = found[number].cumsum(-1) - found[number] / 2
        for i, j in itertools.product(range(len(values)), repeat=2):
            noise = torch.stack([middles[0, i], middles[1, j]])[:, None]
            cells.append(torch.cat([edges[number], noise], -1))
            probs.append(edge_probs[number] * found[number, 0, i] * found[number, 1, j])
    return torch.stack(cells), torch.stack(probs)


@pytest.mark.parametrize("scope", ["node", "joint"])
@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("bernoulli", "score function"),
        ("bernoulli", "leave-one-out"),
        ("ordered", "score function"),
        ("poisson", "score function"),
        ("negative_binomial", "score function"),
    ],
)
def test_gradients_with_sampled_values(name, way, scope):
    """Samples have no derivatives: their log probabilities carry the gradient. Counts: one edge, small means."""
    counts = name in ("poisson", "negative_binomial")
    _, baseline, num_graphs = WAYS[way]
    observation = kind(name, offset=-3.0 if counts else 0.0, largest=12)
    free = FREE & FREE.triu() if counts else FREE
    loss = SampledEnergyScore(scope=scope, baseline=baseline)
    model, inputs, targets = toy(observation, loss, num_graphs, free=free, targets=(1.0, 0.0))
    assert not observation.reparameterized
    assert model.noise_channels == 1
    values = support_of(observation, 8)

    def expectation(probs, described):
        found = masses(observation, described, values)
        weights = torch.einsum("g,gi,gj->ij", probs, found[:, 0], found[:, 1]).flatten()
        outcomes = (torch.cartesian_prod(values, values) - observation.offset[:, 0]) / observation.unit[:, 0]
        return joint_energy(outcomes, weights, targets[0, :, 0], scope)

    cells = value_cells(model, inputs, values, free)
    assert abs(float(cells[1].sum()) - 1) < 1e-11
    expected = mean_gradient(model, inputs, targets, *cells)
    compare(expected, exact_gradient(model, inputs, free, expectation))


@pytest.mark.parametrize("scope", ["node", "joint"])
def test_gradients_of_student_t(scope):
    """Two uniforms for the size and two for the angle of each node stand for the noise."""
    observation = kind("student_t")
    model, inputs, targets = toy(observation, EnergyScore(scope=scope, baseline="none"), 2)
    assert model.noise_channels == 2
    pairs = [(0.3, 0.1), (0.8, 0.7)]
    edges, edge_probs = oracles.uniform_cells(FREE, model.graph.edge_probs.detach(), antithetic=False)
    noises = [torch.tensor(both).double() for both in itertools.product(pairs, repeat=2)]  # (node, 2)
    cells = torch.cat([torch.cat([edges, noise.expand(len(edges), -1, -1)], -1) for noise in noises])
    expected = mean_gradient(model, inputs, targets, cells, edge_probs.repeat(4) / 4)

    def expectation(probs, described):
        outcomes = []
        for noise in noises:
            u, w = noise.unbind(-1)
            nu = observation.degrees[:, 0]
            size = (nu * (u ** (-2 / nu) - 1)).sqrt() * torch.cos(2 * torch.pi * w)
            outcomes.append(described[0, ..., 0] + observation.sigma[:, 0] * size)
        return joint_energy(torch.cat(outcomes), probs.repeat(4) / 4, targets[0, :, 0], scope)

    compare(expected, exact_gradient(model, inputs, FREE, expectation))


def test_gradients_of_a_mix_of_sampled_values_and_gaussian_noise():
    """The joint energy score of yes or no beside a Gaussian node, whose noise has derivatives: neither counts twice."""
    answers = OBSERVATIONS["bernoulli"].for_sizes(num_nodes=1, in_channels=2, channels=1)
    mixed = MixedObservation([(answers, [0]), (GaussianNoise(1), [1])]).double()
    loss = EnergyScore(scope="joint", baseline="leave_one_out")
    model, inputs, targets = toy(mixed, loss, 3, targets=(1.0, -0.4))
    normals = torch.special.ndtri(torch.tensor([0.2, 0.7]).double())
    edges, edge_probs = oracles.uniform_cells(FREE, model.graph.edge_probs.detach(), antithetic=False)
    drawn = model.graph.sample_from(edges[None])
    with torch.no_grad():
        high = torch.sigmoid(model.describe(inputs, drawn))[0, :, 0, 0]
    cells, probs = [], []
    for number, yes, u in itertools.product(range(len(edges)), (0, 1), (0.2, 0.7)):
        first = 1 - high[number] / 2 if yes else (1 - high[number]) / 2
        noise = torch.tensor([[float(first)], [u]]).double()
        cells.append(torch.cat([edges[number], noise], -1))
        probs.append(edge_probs[number] * (high[number] if yes else 1 - high[number]) / 2)
    expected = mean_gradient(model, inputs, targets, torch.stack(cells), torch.stack(probs))

    def expectation(probs, described):
        outcomes, weights = [], []
        for yes, normal in itertools.product((0.0, 1.0), normals):
            p = torch.sigmoid(described[0, :, 0, 0])
            second = described[0, :, 1, 0] + described[0, :, 1, 1] * normal
            outcomes.append(torch.stack([torch.full_like(second, yes), second], -1))
            weights.append(probs * (p if yes else 1 - p) / 2)
        return joint_energy(torch.cat(outcomes), torch.cat(weights), targets[0, :, 0], "joint")

    compare(expected, exact_gradient(model, inputs, FREE, expectation))


@pytest.mark.parametrize("scope", ["node", "joint"])
@pytest.mark.parametrize("way", ["score function", "leave-one-out"])
@pytest.mark.parametrize(
    "name", ["poisson", "negative_binomial", "bernoulli", "ordered", "log_normal", "student_t", "gaussian"]
)
def test_gradients_of_the_log_score(name, way, scope):
    """The expectation of the bound over every tuple of graphs."""
    _, baseline, num_graphs = WAYS[way]
    observation = kind(name)
    model, inputs, targets = toy(observation, LogScore(scope=scope, baseline=baseline), num_graphs)
    cells = oracles.uniform_cells(FREE, model.graph.edge_probs.detach(), antithetic=False)

    def expectation(probs, described):
        dens = observation.log_prob(described, targets)[0, ..., 0].exp()  # (graph, node)
        dens = dens if scope == "node" else dens.prod(-1, keepdim=True)
        total = 0.0
        for chosen in itertools.product(range(4), repeat=num_graphs):
            total = total - probs[list(chosen)].prod() * dens[list(chosen)].mean(0).log().sum() / 2
        return total

    compare(mean_gradient(model, inputs, targets, *cells), exact_gradient(model, inputs, FREE, expectation))

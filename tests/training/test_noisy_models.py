"""Models with noise: exact gradients by enumeration, noise from uniforms, combinations that are refused, a fit."""

import itertools

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

import oracles
from tacit.data import Pairs
from tacit.estimators import Concrete, DisARM, ScoreFunction, StraightThrough
from tacit.graph import BernoulliGraph
from tacit.losses import ELBO, MMD, EnergyScore, ExpectedError, Gaussian, NoisyEnergyScore, PointMSE
from tacit.observation import (
    GaussianNoise,
    HeadGaussianNoise,
    InputGaussianNoise,
    MixedObservation,
    NoNoise,
    TargetValues,
)
from tacit.observation.gaussian import expected_distance
from tacit.predictors import GraphFilter, GraphNetwork, HopPredictor
from tacit.randomness import draw_uniforms
from tacit.registry import OBSERVATIONS
from tacit.training import CosineDecay, FitSettings, LatentGraphModel, fit
from tacit.training.gradient import LiftedGradient
from tacit.training.state import initial_stacks

HEAD_OF_2 = HeadGaussianNoise(2)
FREE = torch.tensor([[False, True], [True, False]])
NOISE = [(0.2, 0.5), (0.7, 0.5)]  # two uniforms stand for the noise: any noise will do for an exact expectation


class SampledEnergyScore(EnergyScore):
    """The energy score without its closed form."""

    def integrating(self, observation):
        del observation


def toy(loss, num_graphs, **choices):
    """Two nodes, two free edges, two hops, sigma from the input; all in float64."""
    generator = torch.Generator().manual_seed(1)
    graph = BernoulliGraph(torch.where(FREE, torch.tensor([[0.0, 0.3], [0.6, 0.0]]), 0.0), fixed=~FREE)
    predictor, noise = HopPredictor(torch.randn(2, 2, 1, generator=generator)), InputGaussianNoise(2, 2)
    for value in (noise.sigma_weights, noise.sigma_bias):
        value.data = 0.5 * torch.randn(value.shape, generator=generator)
    model = LatentGraphModel(graph, predictor, loss, observation=noise, num_graphs=num_graphs, **choices).double()
    inputs = torch.randn(1, 2, 2, generator=generator).double()
    return model, inputs, 0.5 * torch.randn(1, 2, 1, generator=generator).double()


def expected_gradient(model, inputs, targets, observed=None):
    """The estimator's mean over every tuple of uniforms, those of the noise among them where it is sampled."""
    edges, edge_probs = oracles.uniform_cells(
        FREE, model.graph.edge_probs.detach(), antithetic=model.estimator.group_size == 2
    )
    cells, probs = [], []
    for noise in itertools.product(NOISE, repeat=2 * model.noise_channels):
        uniforms = torch.tensor([u for u, _ in noise], dtype=torch.float64).view(2, model.noise_channels)
        cells.append(torch.cat([edges, uniforms.expand(len(edges), -1, -1)], -1))
        probs.append(edge_probs * torch.tensor([p for _, p in noise], dtype=torch.float64).prod())
    cells, probs = torch.cat(cells), torch.cat(probs)
    parameters = {name: value.detach() for name, value in model.named_parameters()}

    def objective(parameters, uniforms):
        return functional_call(model, parameters, (inputs, targets, uniforms, observed))[0]

    groups = model.num_graphs // model.estimator.group_size
    tuples = torch.cartesian_prod(*[torch.arange(len(cells))] * groups).view(-1, groups)
    gradients = vmap(grad(objective), in_dims=(None, 0))(parameters, cells[tuples][:, None])
    weights = probs[tuples].prod(1)
    return {name: torch.tensordot(weights, value, dims=1) for name, value in gradients.items()}


def exact_gradient(model, inputs, targets, expectation):
    """The gradient of a loss that is a sum over all graphs: expectation(probs, outputs) of each of them."""
    graphs = oracles.all_graphs(FREE)

    def loss(parameters):
        edge_probs = model.graph.link.probs(parameters["graph.edge_logits"])
        probs = oracles.graph_probs(graphs, torch.where(FREE, edge_probs, 0.0))
        own, noise = (
            {name.removeprefix(part): v for name, v in parameters.items() if name.startswith(part)}
            for part in ("predictor.", "observation.")
        )
        means = functional_call(model.predictor, own, (inputs, graphs[None]))
        features = torch.cat([inputs, inputs.abs()], -1)
        sigmas = torch.log1p((features @ noise["sigma_weights"] + noise["sigma_bias"]).exp()) + 1e-3
        return expectation(probs, torch.cat([means, sigmas[:, None].expand_as(means)], -1))

    parameters = {name: value.detach() for name, value in model.named_parameters()}
    parameters["graph.edge_logits"] = torch.where(FREE, parameters["graph.edge_logits"], 0.5)
    exact = grad(loss)(parameters)
    return exact | {"graph.edge_logits": torch.where(FREE, exact["graph.edge_logits"], 0.0)}


def check(model, inputs, targets, expectation, observed=None):
    expected = expected_gradient(model, inputs, targets, observed)
    for name, exact in exact_gradient(model, inputs, targets, expectation).items():
        assert float(exact.abs().max()) > 1e-4, f"the check of {name} would be empty"
        assert float((expected[name] - exact).abs().max()) < 1e-10, name


WAYS = {
    "score function": (ScoreFunction(), "none", 2),
    "leave-one-out": (ScoreFunction(), "leave_one_out", 3),
    "disarm": (DisARM(), "none", 4),
}


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_gradients_with_integrated_noise_are_exact_in_expectation(way, missing):
    estimator, baseline, num_graphs = WAYS[way]
    model, inputs, targets = toy(EnergyScore(scope="node", baseline=baseline), num_graphs, estimator=estimator)
    assert model.uniforms_shape(7)[-1] == 2
    assert type(model.loss) is NoisyEnergyScore
    observed = torch.tensor([[[1.0], [0.0]]]).double() if missing else None
    nodes = [0] if missing else [0, 1]

    def expectation(probs, outputs):
        """sum_A P(A) a(y - mu, sigma) - 1/2 sum_{A, B} P(A) P(B) a(mu - nu, root of sigma^2 + tau^2)."""
        total = 0.0
        for i in nodes:
            means, sigmas = outputs[0, :, i, 0], outputs[0, :, i, 1]
            total = total + probs @ expected_distance(targets[0, i, 0] - means, sigmas)
            for (p, m, s), (q, n, t) in itertools.product(zip(probs, means, sigmas, strict=True), repeat=2):
                total = total - 0.5 * p * q * expected_distance(m - n, (s**2 + t**2).sqrt())
        return total / len(nodes)

    check(model, inputs, targets, expectation, observed)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("energy", lambda **k: EnergyScore(scope="joint", **k)),
        ("energy", lambda **k: SampledEnergyScore(scope="node", **k)),
        ("gaussian", lambda **k: MMD(Gaussian(0.4), scope="node", **k)),
    ],
)
def test_gradients_with_sampled_noise_are_exact_in_expectation(name, loss, way):
    estimator, baseline, num_graphs = WAYS[way]
    model, inputs, targets = toy(loss(baseline=baseline), num_graphs, estimator=estimator)
    assert model.uniforms_shape(7)[-1] == 3

    def expectation(probs, outputs):
        """Graphs and noise together are one large mixture."""
        means, sigmas = outputs.chunk(2, -1)
        samples, weights = [], []
        for noise in itertools.product(NOISE, repeat=2):
            normals = torch.special.ndtri(torch.tensor([u for u, _ in noise], dtype=torch.float64)).view(2, 1)
            samples.append(means + sigmas * normals)
            weights.append(probs * noise[0][1] * noise[1][1])
        return oracles.expected_loss(name, model.loss.scope, torch.cat(weights), torch.cat(samples, 1), targets)

    check(model, inputs, targets, expectation)


def test_sampled_noise_is_normal_and_as_large_as_sigma(rng):
    """20,000 samples of each node, eight numbers, five standard errors: a false alarm once in 200,000 runs."""
    model, inputs, _ = toy(EnergyScore(scope="joint"), 4)
    outputs = model.outputs(inputs, 20_000, generator=torch.Generator().manual_seed(3))
    samples = model.observation.draw(outputs, generator=rng)
    uniforms = draw_uniforms(20_000, 1, 2, 3, generator=rng, dtype=torch.float64)
    _, noise = model._split(uniforms)
    normals = torch.special.ndtri(noise)
    assert samples.shape == (1, 20_000, 2, 1)
    for drawn in ((samples - outputs[..., :1]) / outputs[..., 1:], normals):
        values = drawn.reshape(-1, 2)  # (sample, node)
        for moment, expected, deviation in ((1, 0.0, 1.0), (2, 1.0, 2**0.5)):
            error = (values**moment).mean(0) - expected
            assert error.abs().max() < 5 * deviation / len(values) ** 0.5
    assert torch.isfinite(normals).all()


@pytest.mark.parametrize("estimator", [StraightThrough(), Concrete()])
@pytest.mark.parametrize("loss", [EnergyScore(), EnergyScore(scope="joint")])
def test_gradients_pass_through_graphs_with_noise(rng, estimator, loss):
    model, inputs, targets = toy(loss, 4, estimator=estimator)
    uniforms = draw_uniforms(*model.uniforms_shape(1), generator=rng, dtype=torch.float64)
    objective, (losses, *_) = model(inputs, targets, uniforms)
    objective.backward()
    assert float(model.graph.edge_logits.grad.abs().max()) > 0
    assert torch.isfinite(losses).all()


def test_a_model_without_noise_is_as_it_was(rng):
    predictor = HopPredictor.random(1, 2, generator=rng)
    model = LatentGraphModel(BernoulliGraph(torch.full((3, 3), 0.5)), predictor, EnergyScore(), num_graphs=4)
    assert model.uniforms_shape(7) == (7, 4, 3, 3)
    inputs = torch.randn(5, 3, 2, generator=rng)
    samples = model.sample(inputs, 6, generator=torch.Generator().manual_seed(5))
    graphs = model.graph.sample(6, generator=torch.Generator().manual_seed(5))
    assert torch.equal(samples, predictor(inputs, graphs).detach())


def lifted_batches(model, rng):
    shape, data = model.uniforms_shape(8), torch.randn(8, 3, 3, generator=rng).double()
    batches = [
        (data[..., :2], data[..., 2:], draw_uniforms(*shape, generator=rng, dtype=torch.float64)) for _ in range(2)
    ]
    return *initial_stacks(model, (0, 1)), batches, (0, 1)


def agree(outcome, other):
    assert torch.allclose(outcome.losses, other.losses, atol=1e-10)
    for name, value in outcome.gradients.items():
        assert torch.allclose(value, other.gradients[name], atol=1e-10)


@pytest.mark.parametrize(("loss", "last"), [(EnergyScore(), 3), (EnergyScore(scope="joint"), 4)])
def test_lifted_and_looped_agree(rng, loss, last):
    graph = BernoulliGraph.uniform(3, generator=rng, low=0.3, high=0.7)
    model = LatentGraphModel(graph, GraphFilter(3, 2, 1), loss, observation=GaussianNoise(3), num_graphs=4).double()
    assert model.uniforms_shape(8) == (8, 4, 3, last)
    arguments = lifted_batches(model, rng)
    lifted = LiftedGradient(model, lift="vmap", compile=False)
    agree(lifted(*arguments), LiftedGradient(model, compile=False)(*arguments))
    assert lifted.fallback is None


@pytest.mark.slow
def test_a_recurrent_network_with_sampled_noise_compiles(rng):
    graph = BernoulliGraph.uniform(3, generator=rng, low=0.3, high=0.7)
    predictor = GraphNetwork.recurrent(2, 1, hidden=3, numbers_per_target=2)
    loss, noise = EnergyScore(scope="joint"), HeadGaussianNoise()
    model = LatentGraphModel(graph, predictor, loss, observation=noise, num_graphs=4).double()
    arguments = lifted_batches(model, rng)
    compiled = LiftedGradient(model)
    outcome = compiled(*arguments)
    if compiled.fallback is not None:
        pytest.skip(f"no compiler here: {compiled.fallback}")
    agree(outcome, LiftedGradient(model, compile=False)(*arguments))


def test_a_fit_finds_theta_and_sigma_and_without_noise_theta_is_bent(unchecked):
    """Three nodes, weights known, y = sum_j A_ij w_ij x_j + 0.7 e."""
    rng = torch.Generator().manual_seed(0)
    truth = torch.tensor([[0.0, 0.2, 0.0], [0.0, 0.0, 0.8], [0.0, 0.0, 0.0]])
    weights = torch.tensor([1.0, -1.0, 1.5]).view(1, 3, 1, 1).expand(3, 3, 1, 1)
    inputs = torch.randn(6000, 3, 1, generator=rng)
    graphs = (torch.rand(6000, 3, 3, generator=rng) < truth).float()
    targets = torch.einsum("bij,bj->bi", graphs * weights[..., 0, 0], inputs[..., 0])
    noisy = targets[..., None] + 0.7 * torch.randn(6000, 3, 1, generator=rng)
    pairs = Pairs(inputs, noisy).split()
    off_diagonal = ~torch.eye(3, dtype=torch.bool)
    errors = {}
    for name in ("with", "without"):
        known = GraphFilter(3, 1, 1, residual=False).with_weights(torch.zeros(3, 1, 1), weights)
        known.requires_grad_(False)
        noise = GaussianNoise(3) if name == "with" else NoNoise()
        graph = BernoulliGraph(torch.full((3, 3), 0.5).fill_diagonal_(0), fixed=~off_diagonal)
        model = LatentGraphModel(graph, known, EnergyScore(), observation=noise, num_graphs=8)
        settings = FitSettings(epochs=6, batch_size=128, schedule=CosineDecay(0.1))
        fit(model, pairs.train, pairs.validation, settings, compile=False)
        errors[name] = (graph.edge_probs - truth)[off_diagonal].abs().max().item()
        if name == "with":
            sigmas = model.observation.log_sigma.exp()
            assert (sigmas - 0.7).abs().max() < 0.05
    assert errors["with"] < 0.08
    assert errors["without"] > 0.15


def test_impossible_combinations_are_refused(rng, unchecked, refused):
    graph, bare = BernoulliGraph(torch.full((3, 3), 0.5)), GraphFilter(3, 2, 1)
    noise, two = GaussianNoise(3), GaussianNoise(3, 2)

    class Silent(nn.Module):
        numbers_per_target = "two"

    for predictor, observation, loss in (
        (bare, None, NoisyEnergyScore(noise)),
        (bare, two, NoisyEnergyScore(noise)),
        (bare, noise, PointMSE()),
        (bare, noise, ExpectedError()),
        (bare, noise, ELBO()),
        (Silent(), noise, EnergyScore()),
        (bare, HeadGaussianNoise(), EnergyScore()),
        (GraphNetwork.recurrent(2, 1, numbers_per_target=2), noise, EnergyScore()),
        (bare, "gaussian", EnergyScore()),
    ):
        refused(LatentGraphModel, graph, predictor, loss, observation=observation)
    model = LatentGraphModel(
        graph, GraphNetwork.recurrent(2, 2, 2, numbers_per_target=2), EnergyScore(), observation=HEAD_OF_2
    )
    refused(model.check, torch.zeros(4, 3, 4), torch.zeros(4, 3, 1))
    model = LatentGraphModel(graph, bare, EnergyScore(), observation=two)
    refused(model.check, torch.zeros(4, 3, 2), torch.zeros(4, 3, 1))


KINDS = ["poisson", "negative_binomial", "bernoulli", "ordered", "log_normal", "student_t", "mixed"]


def model_of_kind(kind, scope, rng):
    """Three nodes with values of a kind, or of three kinds; in float64."""
    values = TargetValues(torch.full((3, 1), 2.0), torch.ones(3, 1), (0.0, 1.0, 2.0, 3.0), 20)
    names = ["poisson", "gaussian", "student_t"] if kind == "mixed" else [kind]
    nodes = [[0], [1], [2]] if kind == "mixed" else [[0, 1, 2]]
    parts = [
        OBSERVATIONS[name].for_sizes(num_nodes=len(own), in_channels=2, channels=1, values=values.chosen(own))
        for name, own in zip(names, nodes, strict=True)
    ]
    noise = parts[0] if len(parts) == 1 else MixedObservation(list(zip(parts, nodes, strict=True)))
    graph, loss = BernoulliGraph.uniform(3, generator=rng, low=0.3, high=0.7), EnergyScore(scope=scope)
    return LatentGraphModel(graph, GraphFilter(3, 2, 1), loss, observation=noise, num_graphs=4).double()


def batches_of_values(model, rng):
    parameters, constants, batches, running = lifted_batches(model, rng)
    whole = [(inputs, targets.round().clamp(-2, 1), uniforms) for inputs, targets, uniforms in batches]
    return parameters, constants, whole, running


@pytest.mark.parametrize("scope", ["node", "joint"])
@pytest.mark.parametrize("kind", KINDS)
def test_replicas_of_all_kinds_are_lifted(rng, kind, scope):
    model = model_of_kind(kind, scope, rng)
    arguments = batches_of_values(model, rng)
    lifted = LiftedGradient(model, lift="vmap", compile=False)
    agree(lifted(*arguments), LiftedGradient(model, compile=False)(*arguments))
    assert lifted.fallback is None
    assert all(value.abs().max() > 0 for value in lifted(*arguments).gradients.values())


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["node", "joint"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_compile(rng, kind, scope):
    model = model_of_kind(kind, scope, rng)
    arguments = batches_of_values(model, rng)
    compiled = LiftedGradient(model)
    outcome = compiled(*arguments)
    if compiled.fallback is not None and "g++" in compiled.fallback:
        pytest.skip(f"no compiler here: {compiled.fallback}")
    assert compiled.fallback is None
    agree(outcome, LiftedGradient(model, compile=False)(*arguments))

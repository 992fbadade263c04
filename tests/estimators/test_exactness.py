"""The gradient estimates against exact enumeration: an expectation is a sum over every tuple of graphs."""

import itertools

import pytest
import torch
from torch.func import grad

import oracles
from tacit.graph import BernoulliGraph
from tacit.losses import MMD, EnergyScore, Gaussian, KernelScore, Laplacian, RationalQuadratic
from tacit.predictors import HopPredictor
from tacit.training import LatentGraphModel

TOLERANCE = 1e-10
LOSSES = {
    "rational_quadratic": lambda **k: MMD(RationalQuadratic(0.3), **k),
    "rational_quadratic_alpha": lambda **k: MMD(RationalQuadratic(0.3, alpha=1.3), **k),
    "gaussian": lambda **k: MMD(Gaussian(0.4), **k),
    "laplacian": lambda **k: MMD(Laplacian(0.6), **k),
    "energy": lambda **k: EnergyScore(**k),
}
THREE_EDGES = torch.tensor([[True, True], [True, False]])
TWO_EDGES = torch.tensor([[False, True], [True, False]])


def toy(free, loss, num_pairs, num_graphs, *, share=False, credit="auto", seed=0):
    """A model of a few free edges, everything else impossible, and a batch for it; all in float64."""
    generator = torch.Generator().manual_seed(seed)
    nodes = len(free)
    probs = 0.15 + 0.7 * torch.rand(nodes, nodes, generator=generator, dtype=torch.float64)
    graph = BernoulliGraph(torch.where(free, probs, 0.0), fixed=~free)
    predictor = HopPredictor(torch.randn(2, 2, 1, generator=generator, dtype=torch.float64))
    model = LatentGraphModel(graph, predictor, loss, num_graphs=num_graphs, share_graphs=share, credit=credit).double()
    inputs = torch.randn(num_pairs, nodes, 2, generator=generator, dtype=torch.float64)
    targets = 0.5 * torch.randn(num_pairs, nodes, 1, generator=generator, dtype=torch.float64)
    return model, inputs, targets


def exact_gradients(model, inputs, targets, free, spread_factor=1.0, data_factor=1.0):
    def loss(logits, weights):
        spread, data = oracles.exact_loss(model, logits, weights, inputs, targets, free)
        return spread_factor * spread + data_factor * data

    logits, weights = model.graph.edge_logits.detach(), model.predictor.hop_weights.detach()
    logits = torch.where(free, logits, -torch.inf)
    for_logits, for_weights = grad(loss, argnums=(0, 1))(logits, weights)
    return torch.where(free, for_logits, 0.0), for_weights


def gap(expected, exact):
    return float((expected - exact).abs().max())


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("scope", ["node", "joint"])
@pytest.mark.parametrize(("baseline", "num_graphs"), [("none", 2), ("none", 3), ("leave_one_out", 3)])
def test_gradients_of_theta_and_psi_are_exact_in_expectation(name, scope, baseline, num_graphs):
    loss = LOSSES[name](scope=scope, baseline=baseline)
    model, inputs, targets = toy(THREE_EDGES, loss, 1, num_graphs)
    expected = oracles.expected_gradient(model, inputs, targets, THREE_EDGES, 1, num_graphs)
    for_logits, for_weights = exact_gradients(model, inputs, targets, THREE_EDGES)
    assert float(for_logits.abs().max()) > 1e-3, "the check would be empty"
    assert gap(expected["graph.edge_logits"], for_logits) < TOLERANCE
    assert gap(expected["predictor.hop_weights"], for_weights) < TOLERANCE


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("scope", ["node", "joint"])
def test_exact_for_batches_with_shared_and_with_own_graphs(share, scope):
    model, inputs, targets = toy(TWO_EDGES, EnergyScore(scope=scope), 2, 3, share=share)
    expected = oracles.expected_gradient(model, inputs, targets, TWO_EDGES, 1 if share else 2, 3)
    for_logits, for_weights = exact_gradients(model, inputs, targets, TWO_EDGES)
    assert gap(expected["graph.edge_logits"], for_logits) < TOLERANCE
    assert gap(expected["predictor.hop_weights"], for_weights) < TOLERANCE


@pytest.mark.parametrize("num_graphs", [2, 3])
@pytest.mark.parametrize("share", [True, False])
def test_baseline_of_the_paper_has_the_predicted_bias(share, num_graphs):
    pairs = 2
    model, inputs, targets = toy(
        TWO_EDGES, MMD(RationalQuadratic(0.3), scope="joint", baseline="paper"), pairs, num_graphs, share=share
    )
    expected = oracles.expected_gradient(model, inputs, targets, TWO_EDGES, 1 if share else pairs, num_graphs)
    values = num_graphs if share else num_graphs * pairs
    shrunk, _ = exact_gradients(model, inputs, targets, TWO_EDGES, 1 - 2 / values, 1 - 1 / values)
    unbiased, _ = exact_gradients(model, inputs, targets, TWO_EDGES)
    assert gap(expected["graph.edge_logits"], shrunk) < TOLERANCE
    assert gap(expected["graph.edge_logits"], unbiased) > 1e-4


class TrapBaseline(KernelScore):
    """Leaves out row s and column t of the kernel matrix only; entries in column s still depend on graph s."""

    def __call__(self, samples, targets):
        terms = super().__call__(samples, targets)
        k = self.kernel(self._squared_distance(samples[:, :, None] - samples[:, None]))
        count = samples.shape[1]
        baseline = torch.zeros_like(terms.cost)
        for s, t in itertools.permutations(range(count), 2):
            rest = [k[:, u, v] for u, v in itertools.permutations(range(count), 2) if u != s and v != t]
            baseline[:, s] += 2 * self.weight * sum(rest) / len(rest) / (count - 1)
        return terms._replace(baseline=baseline)


def test_trap_baseline_fails_the_check():
    """Its baseline keeps entries that depend on graph s, which shrinks the gradient of the spread."""
    one_edge = torch.tensor([[False, True], [False, False]])
    model, inputs, targets = toy(one_edge, TrapBaseline(RationalQuadratic(0.3), scope="joint"), 1, 4)
    expected = oracles.expected_gradient(model, inputs, targets, one_edge, 1, 4)["graph.edge_logits"][0, 1]
    spread, _ = exact_gradients(model, inputs, targets, one_edge, 1.0, 0.0)
    exact, _ = exact_gradients(model, inputs, targets, one_edge)
    assert abs(expected - exact[0, 1]) > 1e-3
    # the gradient of the data term is untouched, so the gap is the shrinkage of the spread term
    assert (expected - exact[0, 1]) / spread[0, 1] == pytest.approx(-3 / 7, abs=1e-9)  # 43% at S = 4


class RowMean(HopPredictor):
    """Another local predictor of two hops: each hop averages over neighbours, with a non-linearity between."""

    def forward(self, inputs, graphs):
        hidden = torch.einsum("bjc,co->bjo", inputs, self.hop_weights[0])[:, None]
        mean = graphs / graphs.sum(-1, keepdim=True).clamp_min(1)
        first = torch.tanh(mean @ hidden + hidden)
        return torch.tanh(mean @ first * self.hop_weights[1, 0] + first)


@pytest.mark.parametrize("predictor", [HopPredictor, RowMean])
def test_receptive_field_credit_is_exact_over_all_graphs_of_three_nodes(predictor):
    free = torch.ones(3, 3, dtype=torch.bool)  # 512 graphs, 262,144 pairs of graphs
    loss = EnergyScore(scope="node", baseline="none")
    model, inputs, targets = toy(free, loss, 1, 2, credit="receptive_field")
    model.predictor = predictor(model.predictor.hop_weights.detach())
    expected = oracles.expected_gradient(model, inputs, targets, free, 1, 2)
    for_logits, for_weights = exact_gradients(model, inputs, targets, free)
    assert gap(expected["graph.edge_logits"], for_logits) < TOLERANCE
    assert gap(expected["predictor.hop_weights"], for_weights) < TOLERANCE


def test_receptive_field_credit_with_leave_one_out_is_exact_and_less_noisy():
    free = torch.tensor([[False, True, True], [False, False, True], [True, False, False]])  # 16 graphs, 4,096 triples
    variance = {}
    for credit in ("receptive_field", "global"):
        model, inputs, targets = toy(free, EnergyScore(scope="node"), 1, 3, credit=credit)
        mean, square = oracles.gradient_moments(model, inputs, targets, free, 1, 3)
        for_logits, _ = exact_gradients(model, inputs, targets, free)
        assert gap(mean["graph.edge_logits"], for_logits) < TOLERANCE
        variance[credit] = float((square["graph.edge_logits"] - mean["graph.edge_logits"] ** 2).sum())
    assert variance["receptive_field"] < 0.9 * variance["global"]


def test_a_too_short_receptive_field_is_not_exact():
    """The check has teeth: claiming one hop for a predictor of two loses part of the gradient."""
    from tacit.estimators import ReceptiveFieldCredit, ScoreFunction

    free = torch.ones(2, 2, dtype=torch.bool)
    model, inputs, targets = toy(free, EnergyScore(scope="node", baseline="none"), 1, 2)
    model.estimator = ScoreFunction(ReceptiveFieldCredit(1))
    expected = oracles.expected_gradient(model, inputs, targets, free, 1, 2)
    for_logits, _ = exact_gradients(model, inputs, targets, free)
    assert gap(expected["graph.edge_logits"], for_logits) > 1e-3

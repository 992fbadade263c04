"""The generated series are of their kind, and no target on errors of theta is below its bound."""

import itertools

import numpy as np
import pytest
import torch
from benchmarks.large_system import LargeSystem
from benchmarks.observation.paper_system import CommunityCounts, error_bound, masses
from benchmarks.observation.systems import KINDS, NULL, heavy_tails
from benchmarks.simultaneous.systems import KINDS as WITHIN_STEP
from benchmarks.simultaneous.systems import noises, structural_var
from benchmarks.studies.correlated_system import (
    CorrelatedGraph,
    CorrelatedSystem,
    columns_together,
    each_alone,
    exclusive_pairs,
    rows_together,
)
from scipy.optimize import minimize

from tacit.data import Pairs
from tacit.graph import BernoulliGraph
from tacit.losses import MMD, EnergyScore, RationalQuadratic
from tacit.systems import CommunitySystem, community_edge_probs
from tacit.training import FitSettings, LatentGraphModel, fit


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_seed_gives_one_series_of_its_kind(kind):
    first, second = KINDS[kind](5), KINDS[kind](5)
    assert np.array_equal(first.series, second.series)
    assert np.isfinite(first.series).all()
    assert first.truth.any() != kind.startswith(NULL)
    assert not first.truth.diagonal().any()
    assert ((first.theta > 0) == first.truth).all()
    for node, own in enumerate(first.kinds):
        values = first.series[:, node]
        if own in ("poisson", "negative_binomial"):
            assert (values >= 0).all()
            assert (values == values.round()).all()
        if own == "bernoulli":
            assert set(values.tolist()) == {0.0, 1.0}
        if own == "ordered":
            assert set(values.tolist()) <= {1.0, 2.0, 3.0, 4.0, 5.0}
        if own == "log_normal":
            assert (values > 0).all()


def test_half_of_the_edges_with_heavy_tails_are_gated():
    system = heavy_tails(0, 50)
    theta = system.theta[system.truth]
    assert (int((theta < 1).sum()), int((theta == 1).sum())) == (5, 5)


@pytest.mark.parametrize("kind", ["poisson", "bernoulli"])
def test_masses_sum_to_1(kind):
    total = masses(kind, torch.linspace(-5, 20, 9, dtype=torch.float64)).sum(-1)
    assert torch.allclose(total, torch.ones_like(total), atol=1e-6)


@pytest.mark.parametrize(("kind", "target"), [("poisson", 0.02), ("bernoulli", 0.03)])
def test_the_targets_are_above_the_bound(kind, target):
    assert 0.1 * target < error_bound(CommunityCounts(kind), 28_000)["mean_absolute_error"] < 0.5 * target


def test_the_bound_falls_with_the_root_of_the_number_of_pairs():
    system = CommunityCounts("bernoulli")
    few, many = (error_bound(system, number)["mean_absolute_error"] for number in (1_000, 4_000))
    assert few == pytest.approx(2 * many)


def test_pairs_have_the_means_of_the_model():
    pairs = CommunityCounts("poisson").generate(4_000, seed=3)
    assert pairs.targets.min() >= 0
    assert (pairs.targets == pairs.targets.round()).all()
    assert abs(float(pairs.targets.mean()) - 10) < 0.5  # f is symmetric around b = 10


# ---------------------------------------------------------------- the generated systems follow their equation, and a pe


EXACT = ("svar laplace 500", "svar scales 500", "lagged gaussian 500", "chain interpolated 1000")


def noise_of(system):
    """Solve the structural equation for the noise, lag by lag."""
    y, lags = system.series, len(system.lagged)
    noise = y[lags:] - y[lags:] @ system.within.T
    for lag in range(1, lags + 1):
        noise = noise - y[lags - lag : len(y) - lag] @ system.lagged[lag - 1].T
    return noise


@pytest.mark.parametrize("kind", EXACT)
def test_the_weights_leave_independent_noise(kind):
    noise = noise_of(WITHIN_STEP[kind](3))
    now = np.corrcoef(noise.T) - np.eye(noise.shape[1])
    before = np.corrcoef(noise[1:].T, noise[:-1].T)[: noise.shape[1], noise.shape[1] :]
    largest = 5.5 / len(noise) ** 0.5  # one false alarm in 20,000 over the entries of both, and the seed is fixed
    assert np.abs(now).max() < largest
    assert np.abs(before).max() < largest


@pytest.mark.parametrize("kind", list(WITHIN_STEP))
def test_a_seed_gives_one_system_without_cycles_at_lag_0(kind):
    first, second = WITHIN_STEP[kind](5), WITHIN_STEP[kind](5)
    assert np.array_equal(first.series, second.series)
    assert np.isfinite(first.series).all()
    paths = np.linalg.matrix_power(first.within_graph.astype(float), len(first.within))
    assert not paths.any()
    assert bool(first.within.any()) == (not kind.startswith(("lagged", "hidden"))) or kind == "mixed"


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "uniform", "exponential"])
def test_noise_has_variance_1(noise):
    drawn = noises(np.random.default_rng(1), noise, 20_000, 2)
    assert np.abs(drawn.mean(0)).max() < 0.05
    assert np.abs(drawn.var(0) - 1).max() < 0.1


def test_the_truth_scores_perfectly_and_its_reverse_only_without_direction():
    pytest.importorskip("sklearn")
    from benchmarks.simultaneous.peers import Answer
    from benchmarks.simultaneous.scores import figures, pooled

    system = structural_var(0, 200)
    edges, now = system.truth.astype(float), system.within_graph.astype(float)
    both, now_both = np.maximum(edges, edges.T), np.maximum(now, now.T)
    right = Answer(edges, both, now, now_both, probabilities=True)
    found = figures(right, system)
    assert all(found[key] == 1.0 for key in found if key.endswith(("auroc", "aupr")))
    assert (found["listed"], found["false"]) == (10, 0)
    assert pooled([(right, system)])["directed_calibration_error"] == 0
    wrong = figures(Answer(edges.T, both, now.T, now_both, probabilities=True), system)
    assert wrong["within_auroc"] < 0.5
    assert wrong["within_undirected_auroc"] == 1.0


# ---------------------------------------------------------------- correlated edges keep their marginals


GRAPHS = np.array(list(itertools.product((0, 1), repeat=2)))  # of two edges: (graph, edge)
TOGETHER, EXCLUSIVE = np.array([0.25, 0, 0, 0.75]), np.array([0, 0.5, 0.5, 0])  # probabilities of 00, 01, 10, 11
INPUTS = np.random.default_rng(0).normal(size=(50, 2))


def kernel_on_graphs(kappa):
    """The mean over inputs of kappa(y, y') for y = sum of the inputs of the edges that are there: (graph, graph)."""
    outputs = INPUTS @ GRAPHS.T
    return kappa(np.abs(outputs[:, :, None] - outputs[:, None, :])).mean(0)


KERNELS = {
    "equal or not": np.eye(4),
    "means alone": GRAPHS @ GRAPHS.T,
    "energy": kernel_on_graphs(lambda distance: -distance),
    "mmd": kernel_on_graphs(lambda distance: 1 / (1 + distance**2 / 0.1)),
}


def nearest_independent(truth, kernel):
    """The edge probabilities of least expected loss, from several starts."""

    def loss(logits):
        probs = 1 / (1 + np.exp(-logits))
        gap = truth - np.where(GRAPHS, probs, 1 - probs).prod(1)
        return gap @ kernel @ gap

    starts = ([0.0, 0.1], [1.5, 1.5], [2.0, -2.0], [-2.0, 2.0])
    best = min((minimize(loss, start, tol=1e-15) for start in starts), key=lambda found: found.fun)
    return 1 / (1 + np.exp(-best.x))


def test_edges_that_come_together_look_surer_than_they_are():
    found = {name: nearest_independent(TOGETHER, kernel) for name, kernel in KERNELS.items()}
    assert found["means alone"] == pytest.approx([0.75, 0.75], abs=1e-5)
    assert found["equal or not"] == pytest.approx([(1 + 0.5 ** (1 / 3)) / 2] * 2, abs=1e-5)  # the docstring's formula
    for name in ("energy", "mmd"):
        assert (found[name] > 0.78).all()
        assert (found[name] < found["equal or not"]).all()


def test_of_two_edges_that_exclude_each_other_the_marginals_are_kept_but_flat():
    for name in ("energy", "mmd"):
        assert nearest_independent(EXCLUSIVE, KERNELS[name]) == pytest.approx([0.5, 0.5], abs=1e-3)
    for d in (0.1, 0.2, 0.3):
        gap = EXCLUSIVE - np.where(GRAPHS, [0.5 + d, 0.5 - d], [0.5 - d, 0.5 + d]).prod(1)
        assert gap @ gap == pytest.approx(0.25 + 4 * d**4, abs=1e-12)


class Sum(torch.nn.Module):
    """y_i = the sum of the inputs that node i reads."""

    def forward(self, inputs, graphs):
        return graphs @ inputs[:, None]


@pytest.mark.parametrize(
    ("loss", "name"), [(EnergyScore(scope="node"), "energy"), (MMD(RationalQuadratic(scale=0.05)), "mmd")]
)
def test_training_goes_where_the_enumeration_says(loss, name, rng, unchecked):
    """Node 2 reads nodes 0 and 1, both or none; nobody else reads. Of 2,000 pairs a frequency is .01 off."""
    place = torch.zeros(3, 3, dtype=torch.bool)
    place[2, :2] = True
    x = torch.from_numpy(INPUTS).float().repeat(40, 1)
    inputs = torch.cat([x, torch.zeros(len(x), 1)], 1)[..., None]
    truth = CorrelatedGraph(0.75 * place.float(), *rows_together(place))
    targets = Sum()(inputs, truth.sample(1, num_pairs=len(x), generator=rng))[:, 0]
    graph = BernoulliGraph(0.5 * place.float(), fixed=~place)
    pairs = Pairs(inputs, targets)
    model = LatentGraphModel(graph, Sum(), loss, num_graphs=16)
    fit(model, pairs, pairs, FitSettings(epochs=12, batch_size=200), compile=False)
    expected = nearest_independent(TOGETHER, KERNELS[name])
    assert model.graph.edge_probs[2, :2].tolist() == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("ties", [each_alone, rows_together, columns_together, exclusive_pairs])
def test_marginals_are_kept(ties, rng):
    """Within five standard errors for each of 50 entries, all four ties: a false alarm in 9,000 random starts."""
    truth = community_edge_probs(edge_prob=0.5)
    graphs = CorrelatedGraph(truth, *ties(truth > 0)).sample(4000, generator=rng)[0]
    assert (graphs.mean(0) - truth).abs().max() < 5 * 0.5 / 4000**0.5
    assert (graphs[:, truth == 0] == 0).all()


def test_edges_are_tied_as_they_are_called(rng):
    truth = community_edge_probs()
    edges = truth > 0
    rows = CorrelatedGraph(truth, *rows_together(edges)).sample(50, generator=rng)[0].sum(-1)
    assert ((rows == 0) | (rows == edges.sum(-1))).all()
    columns = CorrelatedGraph(truth, *columns_together(edges)).sample(50, generator=rng)[0].sum(-2)
    assert ((columns == 0) | (columns == edges.sum(-2))).all()
    even = community_edge_probs(edge_prob=0.5)
    pairs = CorrelatedGraph(even, *exclusive_pairs(edges)).sample(50, generator=rng)[0].sum(-1)
    assert ((pairs == edges.sum(-1) // 2) | (pairs == -(-edges.sum(-1) // 2))).all()


def test_untied_edges_give_the_pairs_of_the_plain_system():
    truth = community_edge_probs()
    plain, untied = CommunitySystem().generate(20), CorrelatedSystem(ties=each_alone(truth > 0)).generate(20)
    assert torch.equal(plain.targets, untied.targets)
    assert not torch.equal(plain.targets, CorrelatedSystem().generate(20).targets)


def test_sources_of_another_shape_are_refused(unchecked, refused):
    refused(CorrelatedGraph, community_edge_probs(), *rows_together(torch.ones(3, 3).bool()))


# ---------------------------------------------------------------- large system


def test_the_edges_are_those_of_the_chain_of_communities():
    system = LargeSystem(4, num_candidates=10)
    dense = torch.zeros(24, 24)
    target = system.candidates.row_node[:, None].expand_as(system.candidates.sources)
    dense[target[system.candidates.used], system.candidates.sources[system.candidates.used]] = system.true_edge_probs[
        system.candidates.used
    ]
    assert torch.equal(dense, community_edge_probs(4).fill_diagonal_(0))
    assert system.candidates.num_edges == 24 * 10
    assert not bool((system.candidates.sources == system.candidates.row_node[:, None])[system.candidates.used].any())


def test_pairs_have_the_mean_of_the_dense_system(rng):
    """The same predictor over matrices, averaged over many graphs, gives the mean of the targets."""
    system = LargeSystem(2, num_candidates=8)
    one = system.generate(1, seed=3).inputs
    graph = BernoulliGraph(community_edge_probs(2).fill_diagonal_(0))
    many = system.true_predictor()(one, graph.sample(4000, generator=rng))[0, :, :, 0]
    candidates = system.true_edges
    listed = BernoulliGraph(0.75 * candidates.used.float(), candidates=candidates)
    drawn = listed.as_operator(listed.sample(4000, generator=rng))
    found = system.true_predictor()(one, drawn)[0, :, :, 0]
    errors = ((many.var(0) + found.var(0)) / 4000).sqrt()
    assert bool(((many.mean(0) - found.mean(0)).abs() < 5 * errors).all())  # one false alarm in 100,000


def test_candidates_hold_every_edge(refused):
    refused(LargeSystem, 2, num_candidates=3)
    refused(LargeSystem, 2, num_candidates=12)

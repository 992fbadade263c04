"""Which losses are least at the truth? On a system small enough to sum over every graph, target and tuple of graphs."""

import itertools

import pytest
import torch

import oracles
from tacit.estimators import StraightThrough
from tacit.graph import BernoulliGraph, EdgePrior
from tacit.losses import ELBO, MMD, EnergyScore, ExpectedError, Gaussian, Laplacian, NodewiseExpectedError, PointMSE
from tacit.predictors import HopPredictor
from tacit.training import LatentGraphModel

FREE = torch.tensor([[False, True], [True, True]])  # three edges, eight graphs
TRUTH = (0.3, 0.7, 0.5)
GRID = [tuple(k / 10 for k in point) for point in itertools.product(range(1, 10), repeat=3)]
PROPER = {
    "mmd joint": MMD(scope="joint", baseline="none"),
    "mmd node": MMD(scope="node", baseline="none"),
    "gaussian": MMD(Gaussian(0.4), scope="joint", baseline="none"),
    "laplacian": MMD(Laplacian(0.4), scope="joint", baseline="none"),
    "energy joint": EnergyScore(scope="joint", baseline="none"),
    "energy node": EnergyScore(scope="node", baseline="none"),
    "point_mse": PointMSE(baseline="none"),
}
NOT_PROPER = {
    "literature_1_mae": ExpectedError("mae", baseline="none"),
    "literature_1_mse": ExpectedError("mse", baseline="none"),
    "literature_2_mae": NodewiseExpectedError("mae", baseline="none"),
    "literature_2_mse": NodewiseExpectedError("mse", baseline="none"),
    "elbo": ELBO(0.3, EdgePrior(0.5), baseline="none"),
}


def edge_probs(point):
    probs = torch.zeros(2, 2, dtype=torch.float64)
    probs[FREE] = torch.tensor(point, dtype=torch.float64)
    return probs


def expected_losses(loss, inputs, weights, points):
    """The loss at each point of theta, summed over the graphs of the targets and over every tuple of sampled graphs."""
    graphs = oracles.all_graphs(FREE)
    outputs = HopPredictor(weights)(inputs, graphs[None]).detach()  # (pair, graph, node, channel)
    tuples = list(itertools.product(range(len(graphs)), repeat=loss.min_graphs))
    truth = oracles.graph_probs(graphs, edge_probs(TRUTH))
    chosen = outputs[:, tuples].flatten(0, 1)  # (pair * tuple, graph, node, channel)
    by_tuple = torch.zeros(len(tuples), dtype=torch.float64)
    for target, prob in enumerate(truth):
        targets = outputs[:, target].repeat_interleave(len(tuples), 0)
        value = loss(chosen, targets).value.mean(-1)
        by_tuple += prob * value.view(len(inputs), len(tuples)).mean(0)
    totals = []
    for point in points:
        probs = oracles.graph_probs(graphs, edge_probs(point))
        penalty = 0.0
        if isinstance(loss, ELBO):
            coins = (
                torch.distributions.Bernoulli(torch.tensor(point)),
                torch.distributions.Bernoulli(torch.tensor(0.5)),
            )
            penalty = float(torch.distributions.kl_divergence(*coins).sum())
        totals.append(float(probs[torch.tensor(tuples)].prod(1) @ by_tuple) + penalty)
    return torch.tensor(totals, dtype=torch.float64)


@pytest.fixture
def system(rng):
    inputs = torch.randn(3, 2, 2, generator=rng, dtype=torch.float64)
    return inputs, torch.randn(2, 2, 1, generator=rng, dtype=torch.float64)


@pytest.mark.parametrize("name", PROPER)
def test_proper_losses_are_least_at_the_truth_and_nowhere_else(system, name):
    losses = expected_losses(PROPER[name], *system, GRID)
    best, second = losses.sort().values[:2]
    assert GRID[int(losses.argmin())] == TRUTH
    assert second - best > 1e-6


@pytest.mark.parametrize("name", NOT_PROPER)
def test_the_others_are_not(system, name):
    points = [*GRID, *itertools.product((0.0, 1.0), repeat=3)]
    losses = expected_losses(NOT_PROPER[name], *system, points)
    best = points[int(losses.argmin())]
    assert losses[points.index(TRUTH)] - losses.min() > 1e-3
    if name.startswith("literature"):
        assert set(best) <= {0.0, 1.0}  # one single graph


@pytest.mark.parametrize("error", ["mae", "mse"])
def test_literature_2_does_not_stay_at_the_truth(system, error, unchecked):
    """Its gradient is not that of a loss; at the truth, over all targets, it is far from zero. MMD's is zero."""
    inputs, weights = system[0][:1], system[1]
    graphs = oracles.all_graphs(FREE)
    outputs = HopPredictor(weights)(inputs, graphs[None]).detach()[0]  # (graph, node, channel)
    truth = oracles.graph_probs(graphs, edge_probs(TRUTH))
    norms = {}
    for name, loss in (("literature_2", NodewiseExpectedError(error)), ("mmd", MMD(baseline="none"))):
        graph = BernoulliGraph(edge_probs(TRUTH), fixed=~FREE)
        model = LatentGraphModel(graph, HopPredictor(weights), loss, num_graphs=2).double()
        gradients = [
            p * oracles.expected_gradient(model, inputs, y[None], FREE, 1, 2)["graph.edge_logits"]
            for p, y in zip(truth, outputs, strict=True)
        ]
        norms[name] = float(sum(gradients).norm())
    assert norms["mmd"] < 1e-10
    assert norms["literature_2"] > 1e-3


@pytest.mark.parametrize(
    ("loss", "stays"),
    [
        (MMD(scope="joint"), True),
        (MMD(scope="node"), True),
        (EnergyScore(scope="joint"), True),
        (EnergyScore(scope="node"), True),
        (PointMSE(), True),
        (ExpectedError("mse"), False),
    ],
)
def test_straight_through_stays_at_the_truth_for_proper_losses(system, loss, stays):
    """It is biased elsewhere. At the truth target and samples are alike, so that what pulls at a sample cancels,
    whatever the derivative of the predictor is."""
    inputs, weights = system[0][:1], system[1]
    graphs = oracles.all_graphs(FREE)
    outputs = HopPredictor(weights)(inputs, graphs[None]).detach()[0]
    graph = BernoulliGraph(edge_probs(TRUTH), fixed=~FREE)
    model = LatentGraphModel(graph, HopPredictor(weights), loss, num_graphs=2, estimator=StraightThrough()).double()
    gradients = [
        p * oracles.expected_gradient(model, inputs, y[None], FREE, 1, 2)["graph.edge_logits"]
        for p, y in zip(oracles.graph_probs(graphs, edge_probs(TRUTH)), outputs, strict=True)
    ]
    norm = float(sum(gradients).norm())
    assert norm < 1e-10 if stays else norm > 1e-3


def test_point_mse_cannot_tell_distributions_of_one_mean_apart_and_the_energy_score_can():
    """y = (A_01 x + A_02 x) with equal x: only theta_01 + theta_02 shows in the mean."""

    class Sum(HopPredictor):
        def forward(self, inputs, graphs):
            return graphs @ inputs[:, None]

    free = torch.tensor([[False, True, True], [False, False, False], [False, False, False]])
    graphs = oracles.all_graphs(free)
    outputs = Sum(torch.ones(1, 1, 1))(torch.ones(1, 3, 1).double(), graphs[None])[0]
    points = {"truth": (0.5, 0.5), "same mean": (0.9, 0.1), "other mean": (0.6, 0.6)}
    probs = {}
    for name, point in points.items():
        theta = torch.zeros(3, 3, dtype=torch.float64)
        theta[free] = torch.tensor(point, dtype=torch.float64)
        probs[name] = oracles.graph_probs(graphs, theta)
    for loss, blind in ((PointMSE(baseline="none"), True), (EnergyScore(baseline="none"), False)):
        pairs = torch.cartesian_prod(torch.arange(4), torch.arange(4))
        values = torch.stack([loss(outputs[pairs], y.expand(16, -1, -1)).value.mean(-1) for y in outputs])
        expected = {name: float(probs["truth"] @ values @ p[pairs].prod(1)) for name, p in probs.items()}
        assert (abs(expected["same mean"] - expected["truth"]) < 1e-12) == blind
        assert expected["other mean"] > expected["truth"] + 1e-3

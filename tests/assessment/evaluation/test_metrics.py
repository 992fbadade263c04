import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Generator

from tacit.assessment.evaluation import (
    discrete_nodes,
    edge_prob_errors,
    forecast_scores,
    gaussian_crps,
    gaussian_scores,
    persistence,
    point_prediction,
    predictive_metrics,
    residual_sigmas,
)
from tacit.assessment.evaluation.forecasts import class_scores
from tacit.data import Pairs
from tacit.graph import BernoulliGraph
from tacit.losses import MMD, EnergyScore
from tacit.observation import (
    BernoulliTargets,
    GaussianNoise,
    MixedObservation,
    NoNoise,
    OrderedCategories,
    PoissonCounts,
    TargetValues,
)
from tacit.predictors import GraphFilter, HopPredictor
from tacit.randomness import generator_for
from tacit.training import LatentGraphModel


def test_edge_prob_errors():
    errors = edge_prob_errors(torch.tensor([[0.5, 0.1], [0.0, 1.0]]), torch.tensor([[0.25, 0.1], [0.0, 0.0]]))
    assert errors == {"edge_prob_mae": pytest.approx(1.25 / 4), "edge_prob_max_error": 1.0}


def test_point_predictions(rng, unchecked, refused):
    samples = torch.randn(2, 7, 3, 1, generator=rng)
    assert torch.equal(point_prediction(samples, "median"), samples.median(1).values)
    assert torch.equal(point_prediction(samples, "mean"), samples.mean(1))
    even = point_prediction(samples[:, :6], "median")
    assert torch.allclose(even, samples[:, :6].quantile(0.5, dim=1))
    for level in (0.0, 0.1, 0.25, 0.5, 0.9, 1.0):
        assert torch.allclose(point_prediction(samples, level), samples.quantile(level, dim=1), atol=1e-6)
    for wrong in ("mode", 1.5, -0.1, float("nan"), True):
        refused(point_prediction, samples, wrong)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.8])
def test_a_quantile_is_best_for_its_pinball_error(rng, level):
    samples = torch.randn(1, 2001, 1, 1, generator=rng)

    def pinball(guess):
        return torch.maximum(level * (samples - guess), (level - 1) * (samples - guess)).mean().item()

    best = point_prediction(samples, level)
    assert pinball(best) < min(pinball(best + 0.05), pinball(best - 0.05))


def test_missing_targets_do_not_enter_the_metrics(rng):
    graph = BernoulliGraph(torch.full((3, 3), 0.5))
    model = LatentGraphModel(graph, HopPredictor.random(2, 2, generator=rng), EnergyScore())
    inputs, targets = torch.randn(300, 3, 2, generator=rng), torch.randn(300, 3, 1, generator=rng)
    observed = (torch.rand(300, 3, 1, generator=rng) < 0.6).float()

    def metrics(filler):
        pairs = Pairs(inputs, torch.where(observed > 0, targets, filler), observed)
        return predictive_metrics(model, pairs, model.loss, generator=generator_for(0, "m"), point_graphs=100)

    observed[:100] = 0  # chunks of different sizes that see different amounts
    observed[290:] = 0
    ours = metrics(0.0)
    assert ours == metrics(1000.0)
    draws, errors, losses = generator_for(0, "m"), [], []
    for start in (0, 128, 256):  # the chunks of the library, so that the graphs are the same
        part = slice(start, start + 128)
        samples = model.sample(inputs[part], 100, generator=draws)
        errors.append((samples.mean(1) - targets[part]).square()[observed[part] > 0])
        by_node = model.loss(samples[:, :32], targets[part]).value  # of all nodes, then of those that are observed
        losses.append(by_node[observed[part][..., 0] > 0])
    assert ours["point_mse"] == pytest.approx(torch.cat(errors).mean().item(), rel=1e-5)
    assert ours["distribution_loss"] == pytest.approx(torch.cat(losses).mean().item(), rel=1e-5)


def test_a_broken_prediction_has_no_quantile():
    samples = torch.tensor([0.0, 1.0, torch.nan]).view(1, 3, 1, 1)
    assert all(point_prediction(samples, kind).isnan().all() for kind in ("mean", "median", 0.1))


def test_predictive_metrics_of_an_enumerable_model(rng):
    """One edge of probability 0.3: y is a or b. Every value has a formula; chunks do not change them."""
    probs = torch.tensor([[0.0, 0.3], [0.0, 0.0]])
    model = LatentGraphModel(BernoulliGraph(probs), HopPredictor(torch.ones(1, 1, 1)), EnergyScore(scope="joint"))
    inputs = torch.tensor([[0.0], [0.5]]).expand(300, 2, 1).clone()
    targets = torch.full((300, 2, 1), 0.2)
    b = torch.tanh(torch.tensor(0.5)).item()
    scores = predictive_metrics(
        model, Pairs(inputs, targets), EnergyScore(scope="node"), generator=generator_for(0, "t"), point_graphs=4000
    )
    assert scores["point_mae"] == pytest.approx(0.2)  # the median is 0 at both nodes
    assert scores["point_mse"] == pytest.approx(((0.2 - 0.3 * b) ** 2 + 0.2**2) / 2, rel=0.05)
    spread = 0.3 * 0.7 * b  # E|y_s - y_t| / 2 at node 0
    node = 0.7 * 0.2 + 0.3 * abs(b - 0.2) - spread
    assert scores["distribution_loss"] == pytest.approx((node + 0.2) / 2, abs=0.01)
    joint = 0.7 * 0.2 + 0.3 * (((b - 0.2) ** 2 + 0.2**2) / 2) ** 0.5 - spread / 2**0.5
    assert scores["energy_score"] == pytest.approx(joint, abs=0.01)


def test_the_truth_beats_a_wrong_graph(rng):
    from tacit.systems import CommunitySystem

    system = CommunitySystem()
    pairs = system.generate(500, 0)
    values = {}
    for name, probs in (("truth", system.true_edge_probs), ("wrong", system.true_edge_probs * 0.5)):
        model = LatentGraphModel(BernoulliGraph(probs), system.true_predictor(), MMD())
        values[name] = predictive_metrics(model, pairs, model.loss, generator=generator_for(0, "t"), point_graphs=200)
    assert all(values["truth"][key] < values["wrong"][key] for key in values["truth"])


# ---------------------------------------------------------------- persistence


def test_persistence_is_the_newest_value_of_the_target_variables():
    inputs = torch.arange(12.0).view(1, 1, 12)  # three lags of four features
    assert persistence(inputs, num_features=4, out_channels=2).flatten().tolist() == [8.0, 9.0]
    assert persistence(inputs).flatten().tolist() == [11.0]


def test_errors(unchecked, refused):
    refused(persistence, torch.zeros(1, 1, 12), num_features=5)
    refused(persistence, torch.zeros(1, 1, 12), out_channels=2)


# ---------------------------------------------------------------- gaussian


def test_crps_is_the_integral_it_stands_for():
    """Integral of (F(t) - 1[t >= y])^2 dt, by a fine sum."""
    grid = torch.linspace(-30, 30, 600_001, dtype=torch.float64)
    for mean, sigma, target in ((0.0, 1.0, 0.0), (1.0, 0.4, 0.2), (-2.0, 2.0, 3.0)):
        below = torch.distributions.Normal(mean, sigma).cdf(grid)
        integral = ((below - (grid >= target).double()) ** 2).sum() * (grid[1] - grid[0])
        one = torch.ones(1, 1, 1, dtype=torch.float64)
        assert gaussian_crps(mean * one, sigma * one[0], target * one).item() == pytest.approx(
            integral.item(), abs=1e-4
        )


def test_crps_equals_scoringrules(rng):
    scoringrules = pytest.importorskip("scoringrules")
    means, targets = (torch.randn(4, 3, 2, generator=rng, dtype=torch.float64) for _ in range(2))
    sigmas = torch.rand(3, 2, generator=rng, dtype=torch.float64) + 0.1
    theirs = scoringrules.crps_normal(targets.numpy(), means.numpy(), sigmas.expand(4, 3, 2).numpy())
    assert gaussian_crps(means, sigmas, targets).numpy() == pytest.approx(theirs)


def test_scores_leave_missing_targets_out():
    targets = torch.tensor([1.0, 3.0, 9.0]).view(3, 1, 1)
    observed = torch.tensor([1.0, 1.0, 0.0]).view(3, 1, 1)
    pairs, means = Pairs(torch.zeros(3, 1, 1), targets, observed), torch.zeros(3, 1, 1)
    assert residual_sigmas(means, pairs).item() == pytest.approx(5**0.5)
    scores = gaussian_scores(means, torch.zeros(1, 1), pairs)
    assert scores == {"point_mae": 2.0, "point_mse": 5.0, "crps": 2.0}
    assert gaussian_scores(means, torch.ones(1, 1), pairs)["crps"] < 2.0


def test_errors_gaussian(unchecked, refused):
    pairs = Pairs(torch.zeros(2, 2, 1), torch.zeros(2, 2, 1), torch.tensor([1.0, 0.0]).view(1, 2, 1).expand(2, 2, 1))
    refused(residual_sigmas, torch.zeros(2, 2, 1), pairs)


# ---------------------------------------------------------------- brier, ranked probability and log scores against sums


BATCH, GRAPHS, NODES = 5, 7, 2
GRADES = (1.0, 2.0, 4.0)


@pytest.fixture
def outputs():
    return torch.randn(BATCH, GRAPHS, NODES, 1, generator=Generator().manual_seed(0), dtype=torch.float64)


def scaled(categories=()):
    """Values of two nodes with an offset and a unit each."""
    offset, unit = torch.tensor([[0.5], [2.0]]).double(), torch.tensor([[2.0], [0.5]]).double()
    return TargetValues(offset, unit, categories)


def test_the_log_score_is_that_of_the_mixture_of_graphs(outputs):
    counts = PoissonCounts(NODES, values=scaled()).double()
    described = counts.describe(outputs, torch.zeros(BATCH, NODES, 1).double())
    seen = torch.randint(0, 6, (BATCH, NODES, 1), generator=Generator().manual_seed(1)).double()
    found, nodes = class_scores(counts, described, counts.to_targets(seen), counts.unit)["log_score"]
    wanted = np.log(stats.poisson.pmf(seen[:, None].numpy(), described.numpy()).mean(1))
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-10)
    assert nodes.all()


def test_a_density_is_that_in_the_units_of_the_data():
    noise, unit = GaussianNoise(NODES, initial_sigma=0.7).double(), torch.tensor([[2.0], [5.0]]).double()
    means = torch.randn(BATCH, 1, NODES, 1, generator=Generator().manual_seed(2)).double()
    targets = torch.randn(BATCH, NODES, 1, generator=Generator().manual_seed(3)).double()
    described = noise.describe(means, torch.zeros(BATCH, NODES, 1).double())
    found, _ = class_scores(noise, described, targets, unit)["log_score"]
    wanted = stats.norm.logpdf((unit * targets).numpy(), (unit * means[:, 0]).numpy(), 0.7 * unit.numpy())
    np.testing.assert_allclose(found.detach().numpy(), wanted, atol=1e-6)


def test_the_brier_score_has_no_bias_of_few_graphs(outputs):
    answers = BernoulliTargets(NODES, values=scaled()).double()
    seen = torch.tensor([[0.0], [1.0]]).double().expand(BATCH, NODES, 1)
    found, nodes = class_scores(answers, outputs, answers.to_targets(seen), answers.unit)["brier_score"]
    probs = torch.sigmoid(outputs)
    pairs = (probs[:, :, None] - seen[:, None, None]) * (probs[:, None] - seen[:, None, None])
    apart = ~torch.eye(GRAPHS, dtype=torch.bool)  # the mean over two different graphs is the square of the mean
    torch.testing.assert_close(found, pairs[:, apart].mean(1))
    assert nodes.all()


def test_the_ranked_probability_score_counts_steps_of_a_category(outputs):
    grades = OrderedCategories(NODES, values=scaled(GRADES)).double()
    seen = torch.tensor(GRADES).double()[torch.arange(BATCH * NODES) % 3].view(BATCH, NODES, 1)
    found, _ = class_scores(grades, outputs, grades.to_targets(seen), grades.unit)["ranked_probability_score"]
    up_to = grades.table(outputs)  # (batch, graph, node, channel, category)
    wanted = torch.zeros(BATCH, NODES, 1).double()
    for place, grade in enumerate(GRADES[:-1]):
        errors = up_to[..., place] - (seen <= grade).double()[:, None]
        wanted += errors.mean(1).square() - errors.var(1) / GRAPHS
    torch.testing.assert_close(found, wanted)


def test_scores_of_a_mixed_model_are_for_their_nodes():
    parts = [(PoissonCounts(1), [1]), (BernoulliTargets(1), [0]), (GaussianNoise(1), [2])]
    graph = BernoulliGraph(torch.full((3, 3), 0.5))
    model = LatentGraphModel(graph, GraphFilter(3, 1, 1), EnergyScore(), observation=MixedObservation(parts))
    rng = Generator().manual_seed(0)
    targets = torch.tensor([1.0, 3.0, 0.2]).view(1, 3, 1).expand(8, 3, 1).contiguous()
    scores = forecast_scores(model, Pairs(torch.randn(8, 3, 1, generator=rng), targets), generator=rng)
    assert set(scores.further) == {"log_score", "brier_score"}
    assert [math.isfinite(value) for value in scores.by_node["brier_score"]] == [True, False, False]
    assert scores.further["brier_score"] == pytest.approx(scores.by_node["brier_score"][0])
    assert scores.further["brier_score"] == pytest.approx(scores.by_node["crps"][0], abs=1e-5)
    assert all(math.isfinite(value) for value in scores.by_node["log_score"])


def test_a_model_of_samples_alone_has_no_log_score():
    assert class_scores(NoNoise(), torch.zeros(2, 3, 4, 1), torch.zeros(2, 4, 1), torch.ones(4, 1)) == {}


@pytest.mark.parametrize("level", [0.0, 0.025, 0.1, 0.5, 0.9, 1.0])
def test_a_discrete_quantile_is_the_inverse_of_the_distribution_function(level):
    samples = torch.randint(0, 9, (3, 40, 2, 1), generator=Generator().manual_seed(4)).float()
    found = point_prediction(samples, level, torch.tensor([True, True]))
    wanted = np.quantile(samples.numpy(), level, axis=1, method="inverted_cdf")
    np.testing.assert_array_equal(found.numpy(), wanted)


def test_quantiles_of_other_nodes_are_interpolated():
    samples = torch.tensor([0.0, 1.0]).view(1, 2, 1, 1).expand(1, 2, 2, 1)
    assert point_prediction(samples, 0.5, torch.tensor([True, False])).flatten().tolist() == [0.0, 0.5]


def test_a_broken_sample_is_not_hidden_by_a_discrete_quantile():
    samples = torch.tensor([0.0, math.nan]).view(1, 2, 1, 1)
    assert point_prediction(samples, "median", torch.tensor([True])).isnan().all()


def test_positive_numbers_are_not_discrete():
    mixed = MixedObservation([(GaussianNoise(1), [0]), (PoissonCounts(1), [1])])
    assert discrete_nodes(mixed, 2).tolist() == [False, True]

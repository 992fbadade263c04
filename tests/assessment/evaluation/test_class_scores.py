"""Brier, ranked probability and log scores against sums over graphs by hand, and discrete quantiles."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Generator

from tacit.assessment.evaluation import discrete_nodes, forecast_scores, point_prediction
from tacit.assessment.evaluation.forecasts import class_scores
from tacit.data import Pairs
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.observation import (
    BernoulliTargets,
    GaussianNoise,
    MixedObservation,
    NoNoise,
    OrderedCategories,
    PoissonCounts,
    TargetValues,
)
from tacit.predictors import GraphFilter
from tacit.training import LatentGraphModel

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

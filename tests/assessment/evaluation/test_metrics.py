import pytest
import torch

from tacit.assessment.evaluation import edge_prob_errors, point_prediction, predictive_metrics
from tacit.data import Pairs
from tacit.graph import BernoulliGraph
from tacit.losses import MMD, EnergyScore
from tacit.predictors import HopPredictor
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

"""Controls without and with the full graph."""

import pytest
import torch

from tacit.assessment.evaluation import forecast_scores
from tacit.assessment.fit_tests import graph_controls
from tacit.data import Pairs
from tacit.estimators import DisARM, StraightThrough
from tacit.graph import BernoulliGraph, EdgePrior
from tacit.losses import ELBO, EnergyScore, NodewiseExpectedError
from tacit.observation import GaussianNoise
from tacit.predictors import HopPredictor
from tacit.training import FitSettings, LatentGraphModel

SETTINGS = FitSettings(epochs=3, batch_size=32)


def model_and_pairs(rng, *, known=False, noisy=False, fixed=None):
    predictor = HopPredictor(torch.tensor([[[0.8]]]))
    inputs = torch.randn(200, 3, 1, generator=rng)
    graph = BernoulliGraph(torch.full((3, 3), 0.5), fixed=fixed)
    with torch.no_grad():
        targets = predictor(inputs, graph.sample(1, num_pairs=200, generator=rng))[:, 0]
    if known:
        predictor.requires_grad_(False)
    model = LatentGraphModel(
        graph,
        predictor,
        EnergyScore(scope="node"),
        observation=GaussianNoise(3) if noisy else None,
        num_graphs=4,
        prior=EdgePrior(0.2, weight=0.01),
    )
    return model, Pairs(inputs, targets)


def test_known_predictor_is_taken_as_it_is(rng):
    model, pairs = model_and_pairs(rng, known=True)
    reported = []
    controls = graph_controls(model, pairs, pairs, SETTINGS, on_progress=reported.append)
    assert not reported
    assert torch.equal(controls.absent.graph.edge_probs, torch.zeros(3, 3))
    assert torch.equal(controls.present.graph.edge_probs, torch.ones(3, 3))
    assert torch.equal(controls.present.predictor.hop_weights, model.predictor.hop_weights)
    assert torch.equal(model.graph.edge_probs, torch.full((3, 3), 0.5))
    assert model.prior is not None


@pytest.mark.parametrize("noisy", [False, True])
def test_predictor_is_trained_anew_and_edges_stay(rng, noisy):
    model, pairs = model_and_pairs(rng, noisy=noisy)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    reported = []
    controls = graph_controls(
        model, pairs[:150], pairs[150:], SETTINGS, seeds=(0, 1), compile=False, on_progress=reported.append
    )
    assert reported
    for value, control in ((0.0, controls.absent), (1.0, controls.present)):
        assert torch.equal(control.graph.edge_probs, torch.full((3, 3), value))
        assert bool(torch.isfinite(control.predictor.hop_weights).all())
        assert not torch.equal(control.predictor.hop_weights, torch.tensor([[[0.8]]]))
        if noisy:
            assert (control.observation.log_sigma - model.observation.log_sigma).abs().min() > 0.01
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_entries_held_by_a_rule_stay_in_both(rng):
    fixed = torch.eye(3) > 0
    model, pairs = model_and_pairs(rng, known=True, fixed=fixed)
    controls = graph_controls(model, pairs, pairs)
    for value, control in ((0.0, controls.absent), (1.0, controls.present)):
        assert torch.equal(control.graph.edge_probs, torch.where(fixed, 0.5, value))


def test_a_learned_random_graph_beats_no_graph_and_the_full_one(rng):
    model, pairs = model_and_pairs(rng, known=True)  # the truth
    controls = graph_controls(model, pairs, pairs)
    models = {"model": model, **controls.by_name()}
    crps = {name: forecast_scores(one, pairs, generator=rng).crps for name, one in models.items()}
    assert crps["model"] < 0.9 * crps["no graph"]
    assert crps["model"] < 0.9 * crps["full graph"]
    assert crps["no graph"] == pytest.approx(float(pairs.targets.abs().mean()), rel=1e-5)


@pytest.mark.parametrize(
    ("loss", "estimator", "symmetric"),
    [
        (ELBO(0.5, EdgePrior(0.2)), None, False),
        (NodewiseExpectedError("mse"), None, False),
        (EnergyScore(), DisARM(), False),
        (EnergyScore(), StraightThrough(), True),
    ],
)
def test_every_kind_of_gradient_works_with_nothing_to_learn_about_edges(rng, loss, estimator, symmetric):
    _, pairs = model_and_pairs(rng)
    graph = BernoulliGraph(torch.full((3, 3), 0.5), symmetric=symmetric)
    model = LatentGraphModel(graph, HopPredictor(torch.zeros(1, 1, 1)), loss, estimator=estimator, num_graphs=4)
    controls = graph_controls(model, pairs[:150], pairs[150:], SETTINGS, compile=False)
    weight = controls.present.predictor.hop_weights.item()
    assert 0.1 < weight < 0.8  # every edge present: a message counts for less than the 0.8 of the truth
    assert torch.equal(controls.present.graph.edge_probs, torch.ones(3, 3))

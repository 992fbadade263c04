"""The biased estimators: how far their expected gradient for theta is from the exact one, summed over every graph.

docs/concepts/estimators.md quotes these figures; a change of an estimator that moves them has to change the page too.
"""

import pytest
import torch

import oracles
from tacit.estimators import Concrete, StraightThrough
from tacit.graph import BernoulliGraph
from tacit.losses import PointMSE
from toys import (
    LOSSES,
    ONE_EDGE,
    THREE_EDGES,
    TOLERANCE,
    LinearHop,
    exact_gradients,
    gap,
    integrated_gradient,
    relative_bias,
    toy,
)

STRAIGHT_THROUGH = {
    ("rational_quadratic", "node"): 0.626,
    ("rational_quadratic", "joint"): 0.544,
    ("energy", "node"): 0.644,
    ("energy", "joint"): 0.452,
    ("point_mse", "node"): 0.357,
    ("literature_mae", "node"): 0.538,
    ("literature_mse", "node"): 0.402,
}


@pytest.mark.parametrize(("name", "scope"), STRAIGHT_THROUGH)
def test_straight_through_is_biased_for_theta_and_exact_for_psi(name, scope):
    loss = LOSSES[name](scope=scope, baseline="none")
    model, inputs, targets = toy(THREE_EDGES, loss, 1, loss.min_graphs, estimator=StraightThrough())
    expected = oracles.expected_gradient(model, inputs, targets, THREE_EDGES, 1, loss.min_graphs)
    exact, for_weights = exact_gradients(model, name, inputs, targets, THREE_EDGES)
    bias = relative_bias(expected["graph.edge_logits"], exact)
    assert bias == pytest.approx(STRAIGHT_THROUGH[name, scope], abs=5e-4)
    assert gap(expected["predictor.hop_weights"], for_weights) < TOLERANCE


def test_straight_through_is_exact_where_the_loss_is_linear_in_each_edge():
    """Two factors from different graphs are; the square of one prediction is not."""
    for name, exact_here in (("point_mse", True), ("literature_mse", False)):
        loss = LOSSES[name](baseline="none")
        model, inputs, targets = toy(THREE_EDGES, loss, 1, loss.min_graphs, estimator=StraightThrough())
        model.predictor = LinearHop(model.predictor.hop_weights.detach())
        expected = oracles.expected_gradient(model, inputs, targets, THREE_EDGES, 1, loss.min_graphs)
        exact, _ = exact_gradients(model, name, inputs, targets, THREE_EDGES)
        assert (gap(expected["graph.edge_logits"], exact) < TOLERANCE) == exact_here


CONCRETE = {
    ("literature_mse", 2000): {1.0: 0.272, 0.3: 0.032, 0.1: 0.001},
    ("energy", 300): {1.0: 0.385, 0.3: 0.080, 0.1: 0.010},
}


@pytest.mark.parametrize(("name", "points"), CONCRETE)
def test_concrete_loses_its_bias_as_the_temperature_falls(name, points):
    loss = LOSSES[name](baseline="none")
    biases = {}
    for temperature in CONCRETE[name, points]:
        model, inputs, targets = toy(ONE_EDGE, loss, 1, loss.min_graphs, estimator=Concrete(temperature, temperature))
        expected = integrated_gradient(model, inputs, targets, loss.min_graphs, points)
        exact, _ = exact_gradients(model, name, inputs, targets, ONE_EDGE)
        biases[temperature] = relative_bias(expected, exact)
    assert biases == pytest.approx(CONCRETE[name, points], abs=6e-4)
    assert list(biases.values()) == sorted(biases.values(), reverse=True)


def test_concrete_rounds_to_the_graphs_of_the_same_uniforms(rng):
    model, _, _ = toy(THREE_EDGES, PointMSE(), 1, 3, estimator=Concrete())
    uniforms = torch.rand(5, 3, 2, 2, generator=rng, dtype=torch.float64)
    soft = model.estimator.draw(model.graph, uniforms, torch.tensor(0.0))
    assert torch.equal(soft.round(), model.graph.sample_from(uniforms))
    assert ((soft > 0) & (soft < 1))[..., THREE_EDGES].all()
    coin = BernoulliGraph(torch.full((2, 2), 0.5, dtype=torch.float64), fixed=torch.ones(2, 2, dtype=torch.bool))
    held = Concrete().draw(coin, uniforms, torch.tensor(0.0))
    assert torch.equal(held, coin.sample_from(uniforms))  # what is held fixed is not relaxed
    sharp = model.estimator.draw(model.graph, uniforms, torch.tensor(1.0))
    assert (sharp - sharp.round()).abs().mean() < 0.5 * (soft - soft.round()).abs().mean()


def test_temperature_falls_with_the_training(rng):
    """What the step is told as progress changes its gradient and nothing else."""
    model, inputs, targets = toy(THREE_EDGES, PointMSE(), 1, 3, estimator=Concrete(1.0, 0.1))
    uniforms = torch.rand(1, 3, 2, 2, generator=rng, dtype=torch.float64)
    outcomes = {}
    for progress in (0.0, 1.0):
        model.progress.fill_(progress)
        objective, (losses, *_) = model(inputs, targets, uniforms)
        outcomes[progress] = torch.autograd.grad(objective, model.graph.raw)[0], losses
    assert gap(outcomes[0.0][0], outcomes[1.0][0]) > 1e-3
    assert torch.equal(outcomes[0.0][1], outcomes[1.0][1])  # the loss reported is that of real graphs

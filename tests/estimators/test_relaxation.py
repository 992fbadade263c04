import pytest
import torch
from torch import nn

from tacit.estimators import Concrete, StraightThrough, check_relaxation
from tacit.graph import BernoulliGraph, boolean_powers, soft_powers
from tacit.losses import EnergyScore
from tacit.predictors import HopPredictor
from tacit.training import LatentGraphModel
from toys import even_graph


class Threshold(nn.Module):
    """Counts neighbours and forgets how: no derivative for the graph."""

    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(3, 1)

    def forward(self, inputs, graphs):
        return torch.tanh((graphs > 0.5).to(inputs.dtype) @ self.lift(inputs)[:, None])


class WrongRelaxation(HopPredictor):
    def relaxed(self, inputs, graphs):
        return 0.9 * super().relaxed(inputs, graphs)


class Smooth(nn.Module):
    """Multiplies by the graph, with a ReLU: differentiable as it is."""

    def __init__(self):
        super().__init__()
        self.lift, self.read = nn.Linear(3, 8), nn.Linear(8, 1)

    def forward(self, inputs, graphs):
        return self.read(torch.relu(graphs @ self.lift(inputs)[:, None]))


class Hidden(HopPredictor):
    """Two hops by thresholds and no relaxed form: the derivative knows of the first hop only."""

    relaxed = property()


THRESHOLD = Threshold()


@pytest.mark.parametrize("predictor", [Smooth(), HopPredictor(torch.ones(2, 3, 1)), HopPredictor(torch.ones(3, 3, 1))])
def test_predictors_with_derivatives_pass(rng, predictor):
    check_relaxation(predictor, even_graph(8), 3, generator=rng)


@pytest.mark.parametrize("predictor", [THRESHOLD, Hidden(torch.ones(2, 3, 1))])
def test_thresholds_are_found_out(rng, predictor, refused):
    refused(check_relaxation, predictor, even_graph(8), 3, generator=rng)


def test_a_relaxed_form_that_is_another_function_is_refused(rng, refused):
    refused(check_relaxation, WrongRelaxation(torch.ones(2, 3, 1)), even_graph(8), 3, generator=rng)


@pytest.mark.parametrize("estimator", [StraightThrough(), Concrete()])
def test_the_model_checks_before_training(rng, estimator, refused):
    graph = BernoulliGraph.uniform(5, generator=rng)
    model = LatentGraphModel(graph, THRESHOLD, EnergyScore(), estimator=estimator)
    refused(model.check, torch.randn(4, 5, 3, generator=rng), torch.zeros(4, 5, 1))


@pytest.mark.parametrize("num_hops", [1, 2, 3, 4])
def test_soft_powers_equal_boolean_powers_for_graphs_of_0_and_1(rng, num_hops):
    graphs = (torch.rand(4, 6, 7, 7, generator=rng) < 0.25).float()
    for hard, soft in zip(boolean_powers(graphs, num_hops), soft_powers(graphs, num_hops), strict=True):
        assert torch.equal(hard, soft)


def test_the_derivative_of_a_soft_power_is_what_a_flip_would_change(rng):
    """Except between the edge's own ends, where self-loops let it serve in two walks at once."""
    graphs = (torch.rand(1, 1, 5, 5, generator=rng, dtype=torch.float64) < 0.4).double()

    def second(some):
        return list(soft_powers(some, 2))[1][0, 0]

    slopes = torch.func.jacrev(second)(graphs)[:, :, 0, 0]  # (i, j, row, column)
    for row, column in [(r, c) for r in range(5) for c in range(5) if r != c]:
        flipped = graphs.clone()
        flipped[0, 0, row, column] = 1 - flipped[0, 0, row, column]
        change = (second(flipped) - second(graphs)) * (1 - 2 * graphs[0, 0, row, column])
        change[row, column] = slopes[row, column, row, column]
        assert torch.allclose(slopes[:, :, row, column], change, atol=1e-12)

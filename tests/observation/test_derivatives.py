"""First and second derivatives of the log probability: closed forms equal those of automatic differentiation."""

import pytest
import torch

from tacit.observation import (
    BernoulliTargets,
    GaussianNoise,
    LogNormalNoise,
    NegativeBinomialCounts,
    ObservationModel,
    OrderedCategories,
    PoissonCounts,
    StudentTNoise,
    TargetValues,
)

NODES, GRAPHS, ROWS = 3, 4, 25
VALUES = TargetValues(torch.tensor([[3.0], [0.5], [8.0]]), torch.tensor([[2.0], [1.0], [0.7]]))
GRADES = TargetValues(torch.zeros(NODES, 1), torch.tensor([[1.0], [2.0], [0.5]]), categories=(0.0, 1.0, 2.0, 5.0))
KINDS = {
    "gaussian": lambda: GaussianNoise(NODES),
    "student_t": lambda: StudentTNoise(NODES),
    "log_normal": lambda: LogNormalNoise(NODES, values=VALUES),
    "poisson": lambda: PoissonCounts(NODES, values=VALUES),
    "negative_binomial": lambda: NegativeBinomialCounts(NODES, values=VALUES),
    "bernoulli": lambda: BernoulliTargets(NODES),
    "ordered": lambda: OrderedCategories(NODES, values=GRADES),
}


def drawn(name, rng):
    model = KINDS[name]().double()
    for value in model.parameters():
        value.data += 0.5 * torch.randn(value.shape, generator=rng).double()
    outputs = 1.5 * torch.randn(ROWS, GRAPHS, NODES, 1, generator=rng).double()
    described = model.describe(outputs[:, :1], torch.zeros(ROWS, NODES, 1))
    targets = model.draw(described, generator=rng)[:, 0].detach()
    return model, outputs, targets


@pytest.mark.parametrize("name", KINDS)
def test_closed_forms_are_those_of_automatic_differentiation(name, rng):
    model, outputs, targets = drawn(name, rng)
    with torch.no_grad():
        found, expected = model.derivatives(outputs, targets), ObservationModel.derivatives(model, outputs, targets)
    for one, other in zip(found, expected, strict=True):
        one, other = (one, other) if isinstance(one, list) else ([one], [other])
        assert len(one) == len(other)
        for closed, differentiated in zip(one, other, strict=True):
            assert torch.allclose(closed.expand_as(differentiated), differentiated, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", KINDS)
def test_automatic_differentiation_agrees_with_differences(name, rng):
    model, outputs, targets = drawn(name, rng)

    def log_prob(moved):
        return model.log_prob(model.describe(moved, torch.zeros(ROWS, NODES, 1)), targets).detach()

    found, step = ObservationModel.derivatives(model, outputs, targets), 1e-5
    assert torch.allclose(found.log_prob, log_prob(outputs), rtol=0, atol=1e-10)
    assert torch.allclose(found.score, (log_prob(outputs + step) - log_prob(outputs - step)) / (2 * step), atol=1e-4)
    number = 0
    for value in model.parameters():
        for place in range(value[0].numel()):
            found_here = []
            for sign in (1, -1):
                value.data.view(NODES, -1)[:, place] += sign * step
                moved = ObservationModel.derivatives(model, outputs, targets)
                found_here.append((moved.log_prob, moved.score))
                value.data.view(NODES, -1)[:, place] -= sign * step
            slope, cross = ((one - other) / (2 * step) for one, other in zip(*found_here, strict=True))
            assert torch.allclose(found.noise[number], slope, atol=1e-4)
            assert torch.allclose(found.cross[number], cross, atol=1e-4)
            number += 1
    assert len(found.noise) == number


@pytest.mark.parametrize("name", KINDS)
def test_models_of_single_nodes_stack_to_the_model_of_all(name, rng):
    model, outputs, targets = drawn(name, rng)
    again = model.chosen([0]).stacked([model.chosen([node]) for node in range(NODES)])
    assert torch.equal(again.derivatives(outputs, targets).log_prob, model.derivatives(outputs, targets).log_prob)

"""The update of the parameters: Adam is that of torch, the average a mean; compiled it equals the eager one."""

from dataclasses import replace

import pytest
import torch

from tacit.graph import BernoulliGraph, SineSquared
from tacit.losses import EnergyScore
from tacit.predictors import HopPredictor
from tacit.training import FitSettings, LatentGraphModel
from tacit.training.gradient import StepResult
from tacit.training.settings import StepNumbers, StepPlan
from tacit.training.state import TrainingState
from tacit.training.step import Update, adam_

SETTINGS = FitSettings(min_draws_per_edge=0.5, predictor_learning_rate=0.05)
REPLICAS = (0, 1)


def start(link=None):
    rng = torch.Generator().manual_seed(0)
    graph = BernoulliGraph.uniform(4, generator=rng, link=link)
    model = LatentGraphModel(graph, HopPredictor.random(2, 1, generator=rng), EnergyScore(), num_graphs=3).double()
    return TrainingState.create(model, REPLICAS, StepPlan.of(SETTINGS, model, 10))


def steps_of(state, count):
    rng = torch.Generator().manual_seed(1)
    drawn = lambda *shape: torch.randn(*shape, generator=rng, dtype=torch.float64)  # noqa: E731
    for step in range(1, count + 1):
        gradients = {name: drawn(*value.shape) for name, value in state.parameters.items()}
        numbers = StepNumbers(0.3, 1 / step, step / 9, 0.4 / step, 1 - 0.9**step, 1 - 0.99**step)
        there = [torch.tensor(number, dtype=torch.float64) for number in numbers]
        yield StepResult(gradients, drawn(2, 6).abs(), drawn(2, 6).abs(), {}), StepNumbers(*there)


@pytest.mark.parametrize("betas", [(0.9, 0.99), (0.5, 0.9)])
def test_steps_are_those_of_torch(rng, betas):
    """Also where gradients are tiny, zero, or lie in another order in memory."""
    start = torch.randn(3, 4, 5, generator=rng, dtype=torch.float64)
    theirs, ours = start.clone().requires_grad_(), start.clone()
    first, second = torch.zeros_like(ours), torch.zeros_like(ours)
    optimizer = torch.optim.Adam([theirs], lr=0.1, betas=betas)
    for step in range(1, 30):
        gradient = torch.randn(4, 3, 5, generator=rng, dtype=torch.float64).transpose(0, 1) * 10.0 ** (-step % 9)
        gradient = gradient * (torch.arange(5) > 0)
        rate = 0.1 / step
        for group in optimizer.param_groups:
            group["lr"] = rate
        theirs.grad = gradient.contiguous()
        optimizer.step()
        corrections = (1 - betas[0] ** step, 1 - betas[1] ** step)
        adam_(ours, gradient, first, second, rate=rate, betas=betas, corrections=corrections)
        torch.testing.assert_close(ours, theirs.detach(), rtol=1e-12, atol=1e-14)


def test_the_average_is_the_mean_of_the_steps_that_count(rng):
    """Edge probabilities are averaged as probabilities, the rest as it is; tensors of one number do what floats do."""
    graph = BernoulliGraph.uniform(3, generator=rng)
    model = LatentGraphModel(graph, HopPredictor.random(2, 4, generator=rng), EnergyScore(), num_graphs=4).double()
    plan = StepPlan.of(FitSettings(), model, 10)
    states = [TrainingState.create(model, (0, 1), plan) for _ in range(2)]
    losses = torch.ones(2, 1, dtype=torch.float64)
    gradients = [
        {
            name: torch.randn(value.shape, generator=rng, dtype=torch.float64)
            for name, value in states[0].parameters.items()
        }
        for _ in range(4)
    ]
    seen: list[dict[str, torch.Tensor]] = []
    for step, gradient in enumerate(gradients):
        weight = 0.0 if step == 0 else 1 / step
        numbers = (0.1, weight, 0.0, 0.01, 1 - 0.9 ** (step + 1), 1 - 0.99 ** (step + 1))
        as_tensors = [torch.tensor(value, dtype=torch.float64) for value in numbers]
        for state, values in zip(states, (numbers, as_tensors), strict=True):
            Update(state, FitSettings())(StepResult(gradient, losses, losses, {}), StepNumbers(*values))
        if step > 0:
            seen.append({name: value.clone() for name, value in states[0].parameters.items()})
    for name, average in states[0].averages.items():
        values = torch.stack([values[name] for values in seen])
        wanted = (torch.sigmoid(values) if name == "graph.edge_logits" else values).mean(0)
        torch.testing.assert_close(average, wanted)
        torch.testing.assert_close(states[1].averages[name], average)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("link", "average_fraction"),
    [
        (None, SETTINGS.average_fraction),
        (SineSquared(), 0.0),
        pytest.param(None, 0.0, marks=pytest.mark.slow),
        pytest.param(SineSquared(), SETTINGS.average_fraction, marks=pytest.mark.slow),
    ],
)
def test_compiled_it_equals_the_eager_update(link, average_fraction):
    settings = replace(SETTINGS, average_fraction=average_fraction)
    eager, state = start(link), start(link)
    update, compiled = Update(eager, settings), Update(state, settings, compile=True)
    for result, numbers in steps_of(eager, 3):
        torch.testing.assert_close(compiled(result, numbers), update(result, numbers), rtol=1e-12, atol=1e-12)
    if compiled.fallback is not None:
        pytest.skip(f"no compiler here: {compiled.fallback}")
    for kind in ("parameters", "averages", "first_moments", "second_moments"):
        torch.testing.assert_close(getattr(state, kind), getattr(eager, kind), rtol=1e-12, atol=1e-12)
    assert any(value.any() for value in state.averages.values()) == (settings.average_fraction > 0)
    assert compiled.compile_seconds > 0


@pytest.mark.usefixtures("unchecked")
def test_no_two_fits_share_a_compiler_cache():
    with torch._dynamo.config.patch(recompile_limit=1, fail_on_recompile_limit_hit=True):
        for fit in range(3):
            state = start()
            compiled = Update(state, SETTINGS, compile=True)
            for result, numbers in steps_of(state, 2):
                compiled(result, numbers)
            if compiled.fallback is not None and fit == 0:
                pytest.skip("no compiler here")
            assert compiled.fallback is None


def test_without_a_compiler_it_is_eager(monkeypatch):
    def refuses(*args, **options):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(torch, "compile", refuses)
    eager, state = start(), start()
    update, compiled = Update(eager, SETTINGS), Update(state, SETTINGS, compile=True)
    for result, numbers in steps_of(eager, 2):
        assert torch.equal(compiled(result, numbers), update(result, numbers))
    assert "no compiler" in compiled.fallback
    assert all(torch.equal(state.parameters[name], value) for name, value in eager.parameters.items())

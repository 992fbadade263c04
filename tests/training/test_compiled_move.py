"""The compiled move equals the eager one, and every fit of a process gets its own."""

import pytest
import torch

from tacit.graph import BernoulliGraph, SineSquared
from tacit.losses import EnergyScore
from tacit.predictors import HopPredictor
from tacit.training import FitSettings, LatentGraphModel
from tacit.training.compiled_move import CompiledMove
from tacit.training.lift import Outcome
from tacit.training.state import ReplicaState, StepNumbers

SETTINGS = FitSettings(sightings=0.5, predictor_rate=0.5)
REPLICAS = (0, 1)


def start(link=None):
    rng = torch.Generator().manual_seed(0)
    graph = BernoulliGraph.uniform(4, generator=rng, link=link)
    model = LatentGraphModel(graph, HopPredictor.random(2, 1, generator=rng), EnergyScore(), num_graphs=3).double()
    return ReplicaState.create(model, REPLICAS, fresh=True)


def steps_of(state, count, weight):
    rng = torch.Generator().manual_seed(1)
    drawn = lambda *shape: torch.randn(*shape, generator=rng, dtype=torch.float64)  # noqa: E731
    for step in range(1, count + 1):
        gradients = {name: drawn(*value.shape) for name, value in state.parameters.items()}
        numbers = StepNumbers(0.3, weight and 1 / step, step / 9, 0.4 / step, 1 - 0.9**step, 1 - 0.99**step)
        there = [None if number is None else torch.tensor(number, dtype=torch.float64) for number in numbers]
        yield Outcome(gradients, drawn(2, 6).abs(), drawn(2, 6).abs(), {}), StepNumbers(*there)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("weight", [1.0, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize("link", [None, pytest.param(SineSquared(), marks=pytest.mark.slow)])
def test_it_equals_the_eager_move(link, weight):
    eager, state = start(link), start(link)
    compiled = CompiledMove(state, SETTINGS)
    for outcome, numbers in steps_of(eager, 3, weight):
        expected = eager.move(outcome, numbers, SETTINGS)
        torch.testing.assert_close(compiled(outcome, numbers), expected, rtol=1e-12, atol=1e-12)
    if not compiled.compiled:
        pytest.skip("no compiler here")
    for name, value in eager.parameters.items():
        torch.testing.assert_close(state.parameters[name], value, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(state.averages[name], eager.averages[name], rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(state.moments[name], eager.moments[name], rtol=1e-12, atol=1e-12)
    assert compiled.compile_seconds > 0


@pytest.mark.usefixtures("unchecked")
def test_no_two_fits_share_a_compiler_cache():
    with torch._dynamo.config.patch(recompile_limit=1, fail_on_recompile_limit_hit=True):
        for _ in range(3):
            state = start()
            compiled = CompiledMove(state, SETTINGS)
            for outcome, numbers in steps_of(state, 2, 1.0):
                compiled(outcome, numbers)
            if not compiled.compiled and _ == 0:
                pytest.skip("no compiler here")
            assert compiled.compiled


def test_without_a_compiler_it_moves_eagerly(monkeypatch):
    def refuses(*args, **options):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(torch, "compile", refuses)
    eager, state = start(), start()
    compiled = CompiledMove(state, SETTINGS)
    for outcome, numbers in steps_of(eager, 2, 1.0):
        expected = eager.move(outcome, numbers, SETTINGS)
        assert torch.equal(compiled(outcome, numbers), expected)
    assert not compiled.compiled
    assert all(torch.equal(state.parameters[name], value) for name, value in eager.parameters.items())

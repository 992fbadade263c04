"""On a GPU the same: every estimator, link and kind of loss gives the gradients that the CPU gives, in float64."""

import pytest
import torch

from tacit.estimators import Concrete, DisARM, ScoreFunction, StraightThrough
from tacit.graph import BernoulliGraph, EdgePrior, Sigmoid, SineSquared
from tacit.losses import ELBO, MMD, EnergyScore, ExpectedError, NodewiseExpectedError, PointMSE
from tacit.predictors import HopPredictor
from tacit.systems import CommunitySystem
from tacit.training import FitSettings, LatentGraphModel, fit
from tacit.training.gradient import LiftedGradient
from tacit.training.state import initial_stacks

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="requires a CUDA device")]
LOSSES = [MMD(scope="joint"), EnergyScore(), PointMSE(), ExpectedError("mae"), NodewiseExpectedError("mse"), ELBO(0.3)]
ESTIMATORS = [ScoreFunction(), DisARM(), StraightThrough(), Concrete()]
SEEDS = (0, 1, 2)


def outcome(loss, estimator, link, observed, device, *, compile):
    rng = torch.Generator().manual_seed(0)
    pairs = CommunitySystem().generate(32, 0).to("cpu", torch.float64)
    graph = BernoulliGraph.uniform(12, generator=rng, high=0.6, link=link)
    prior = None if isinstance(loss, ELBO) else EdgePrior(0.2, weight=0.1)
    predictor = HopPredictor.random(2, 4, generator=rng)
    model = LatentGraphModel(graph, predictor, loss, estimator=estimator, num_graphs=4, prior=prior).double()
    uniforms = torch.rand(model.uniforms_shape(32), generator=rng, dtype=torch.float64)
    batch = [pairs.inputs, pairs.targets, uniforms]
    if observed:
        batch.append((torch.rand(pairs.targets.shape, generator=rng) < 0.7).double())
    stacks = initial_stacks(model, SEEDS)
    model = model.to(device)
    stacks = [{name: value.to(device) for name, value in stack.items()} for stack in stacks]
    gradient = LiftedGradient(model, compile=compile)
    batches = [tuple(part.to(device) for part in batch)] * len(SEEDS)
    result = gradient(*stacks, batches, range(len(SEEDS)))
    assert gradient.fallback is None
    return {**result.gradients, "losses": result.losses, "weights": result.weights, **result.carried}


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("link", [Sigmoid(), SineSquared()])
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_equal_those_of_the_cpu(loss, estimator, link, observed):
    if isinstance(loss, NodewiseExpectedError) and not estimator.takes_credit:
        pytest.skip("refused")
    here = outcome(loss, estimator, link, observed, "cpu", compile=False)
    there = outcome(loss, estimator, link, observed, "cuda", compile=False)
    assert here.keys() == there.keys()
    for name, value in here.items():
        assert torch.allclose(value, there[name].cpu(), atol=1e-9, rtol=1e-9), name


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_compiled_and_lifted_on_the_gpu(estimator):
    plain, compiled = (outcome(EnergyScore(), estimator, None, True, "cuda", compile=c) for c in (False, True))
    for name, value in plain.items():
        assert torch.allclose(value, compiled[name], atol=1e-9), name


def test_a_short_training_on_the_gpu():
    pairs = CommunitySystem().generate(2000, 0).to("cuda").split()
    rng = torch.Generator().manual_seed(0)
    model = LatentGraphModel(
        BernoulliGraph.uniform(12, generator=rng), HopPredictor.random(2, 4, generator=rng), NodewiseExpectedError()
    )
    result = fit(model, pairs.train, pairs.validation, FitSettings(epochs=2), seeds=SEEDS)
    assert result.warnings == []
    assert result.history[-1].validation_loss[0] < result.history[0].train_loss[0]


@pytest.mark.parametrize("estimator", [ScoreFunction(), Concrete()])
@pytest.mark.parametrize("loss", [EnergyScore(), MMD(scope="joint"), NodewiseExpectedError("mse")])
def test_replayed_steps_equal_steps_taken_one_by_one(loss, estimator, monkeypatch):
    """The recorded step, with its schedule, carried averages and mean of the last iterates, is the plain one."""
    if isinstance(loss, NodewiseExpectedError) and not estimator.takes_credit:
        pytest.skip("refused")
    pairs = CommunitySystem().generate(2000, 0).to("cuda", torch.float64).split()
    results = []
    for warm_up in (3, 10**9):
        monkeypatch.setattr("tacit.training.gradient.WARM_UP_CALLS", warm_up)
        rng = torch.Generator().manual_seed(0)
        graph, predictor = BernoulliGraph.uniform(12, generator=rng), HopPredictor.random(2, 4, generator=rng)
        model = LatentGraphModel(graph, predictor, loss, estimator=estimator, num_graphs=4)
        settings = FitSettings(epochs=4, predictor_learning_rate=0.05)
        results.append(fit(model, pairs.train, pairs.validation, settings, seeds=SEEDS, compile=False))
    replayed, plain = results
    for name, value in plain.parameters.items():
        assert torch.allclose(value, replayed.parameters[name], atol=1e-10), name
    for epoch, again in zip(plain.history, replayed.history, strict=True):
        assert epoch.validation_loss == pytest.approx(again.validation_loss, abs=1e-10)
        assert epoch.train_loss == pytest.approx(again.train_loss, abs=1e-10)

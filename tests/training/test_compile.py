"""The compiled step equals the eager one; without a compiler everything works and says so once."""

import sys

import pytest
import torch

from tacit.estimators import Concrete, DisARM
from tacit.graph import BernoulliGraph, EdgePrior, SineSquared
from tacit.losses import MMD, EnergyScore, NodewiseExpectedError, PointMSE
from tacit.predictors import HopPredictor
from tacit.randomness import draw_uniforms
from tacit.systems import CommunitySystem
from tacit.training import FitSettings, LatentGraphModel, fit
from tacit.training.gradient import LiftedGradient
from tacit.training.state import initial_stacks

CASES = {
    "node": (EnergyScore(), None, {"num_graphs": 5}),
    "joint": (MMD(scope="joint", baseline="paper"), None, {"share_graphs": True}),
    "missing targets": (NodewiseExpectedError("mae"), None, {}),
    "antithetic": (EnergyScore(), SineSquared(), {"estimator": DisARM()}),
    "temperature": (PointMSE(), None, {"estimator": Concrete(), "prior": EdgePrior(0.1)}),
}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "name", ["node", *(pytest.param(name, marks=pytest.mark.slow) for name in CASES if name != "node")]
)
def test_compiled_equals_eager(rng, name):
    """Gradients, losses and what is carried; one case has missing targets."""
    loss, link, choices = CASES[name]
    system = CommunitySystem()
    pairs = system.generate(64, 0).to("cpu", torch.float64)
    model = LatentGraphModel(
        BernoulliGraph.uniform(12, generator=rng, high=0.6, link=link),
        HopPredictor.random(2, 4, generator=rng),
        loss,
        **{"num_graphs": 6} | choices,
    ).double()
    stacks = initial_stacks(model, (0, 1))
    shape = model.uniforms_shape(64)
    batches = [
        (pairs.inputs, pairs.targets, draw_uniforms(*shape, generator=rng, dtype=torch.float64)) for _ in range(2)
    ]
    if name == "missing targets":
        observed = (torch.rand(pairs.targets.shape, generator=rng) < 0.7).double()
        batches = [(*batch, observed) for batch in batches]
    results = {}
    for compiled in (False, True):
        gradient = LiftedGradient(model, compile=compiled)
        results[compiled] = gradient(*stacks, batches, (0, 1))
        if gradient.fallback is not None:
            pytest.skip(f"no compiler here: {gradient.fallback}")
    for name, value in results[True][0].items():
        assert torch.allclose(value, results[False][0][name], atol=1e-12)
    assert torch.allclose(results[True][1], results[False][1], atol=1e-12)
    assert torch.allclose(results[True][2], results[False][2], atol=1e-12)
    assert results[True].carried.keys() == results[False].carried.keys() == set(model.carried)
    for name, value in results[True].carried.items():
        assert torch.allclose(value, results[False].carried[name], atol=1e-12)


def test_without_a_compiler_training_runs_eagerly_and_says_so_once(monkeypatch, rng):
    def no_compiler(function, **options):
        def fails(*args):
            raise RuntimeError("InvalidCxxCompiler: no working C++ compiler found\nand more lines")

        return fails

    monkeypatch.setattr(torch, "compile", no_compiler)
    system = CommunitySystem()
    pairs = system.generate(100, 0).split()
    model = LatentGraphModel(
        BernoulliGraph.uniform(12, generator=rng), system.true_predictor(), EnergyScore(), num_graphs=3
    )
    result = fit(model, pairs.train, pairs.validation, FitSettings(epochs=2, batch_size=20), seeds=(0, 1))
    assert len(result.warnings) == 1
    assert result.warnings[0].startswith("torch.compile is not available, so training runs eagerly")
    assert "no working C++ compiler" in result.warnings[0]
    assert "\n" not in result.warnings[0]


@pytest.mark.gpu
def test_cuda_agrees_with_cpu(rng):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    system = CommunitySystem()
    pairs = system.generate(64, 0).to("cpu", torch.float64)
    model = LatentGraphModel(BernoulliGraph.uniform(12, generator=rng), system.true_predictor(), EnergyScore()).double()
    stacks = initial_stacks(model, (0, 1))
    batches = [
        (pairs.inputs, pairs.targets, draw_uniforms(64, 16, 12, 12, generator=rng, dtype=torch.float64))
        for _ in range(2)
    ]
    expected = LiftedGradient(model, compile=False)(*stacks, batches, (0, 1))
    gpu = model.to("cuda")
    on_gpu = lambda stack: {name: value.cuda() for name, value in stack.items()}  # noqa: E731
    found = LiftedGradient(gpu)(
        *(on_gpu(stack) for stack in stacks),
        [tuple(part.cuda() for part in batch) for batch in batches],
        (0, 1),
    )
    assert torch.allclose(found.losses.cpu(), expected.losses, atol=1e-10)
    for name, value in found.gradients.items():
        assert torch.allclose(value.cpu(), expected.gradients[name], atol=1e-10)
    assert "triton" in sys.modules

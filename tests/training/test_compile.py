"""The compiled step equals the eager one; without a compiler everything works and says so once."""

import os
import sys
from functools import partial

import pytest
import torch

from tacit.estimators import Concrete, DisARM
from tacit.graph import BernoulliGraph, EdgePrior, SineSquared
from tacit.losses import MMD, EnergyScore, NodewiseExpectedError, PointMSE
from tacit.predictors import HopPredictor
from tacit.randomness import draw_uniforms
from tacit.systems import CommunitySystem
from tacit.training import FitSettings, LatentGraphModel, fit
from tacit.training.gradient import VARIABLE, LiftedGradient, keep_compiled
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
    ("name", "backend"),
    [
        *((name, "aot_eager") for name in ("node", "joint", "missing targets")),
        *(pytest.param(name, "inductor", marks=pytest.mark.slow) for name in CASES),
    ],
)
def test_compiled_equals_eager(rng, name, backend, monkeypatch):
    """Gradients, losses and what is carried; one case has missing targets. C++ is made in the slow tier alone."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
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
        *(on_gpu(stack) for stack in stacks), [tuple(part.cuda() for part in batch) for batch in batches], (0, 1)
    )
    assert torch.allclose(found.losses.cpu(), expected.losses, atol=1e-10)
    for name, value in found.gradients.items():
        assert torch.allclose(value.cpu(), expected.gradients[name], atol=1e-10)
    assert "triton" in sys.modules


# ---------------------------------------------------------------- where compiled programs are kept


@pytest.fixture
def environment(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, "x")  # so that it is put back
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return monkeypatch


def test_compiled_programs_are_kept_in_the_cache_directory_of_the_user(environment, tmp_path):
    assert keep_compiled() is None
    assert os.environ[VARIABLE] == str(tmp_path / "tacit" / "compiled")
    assert (tmp_path / "tacit" / "compiled").is_dir()


def test_a_directory_that_the_user_named_stays(environment, tmp_path):
    environment.setenv(VARIABLE, str(tmp_path / "mine"))
    assert keep_compiled() is None
    assert os.environ[VARIABLE] == str(tmp_path / "mine")


def test_a_directory_that_cannot_be_written_is_left_out(environment, tmp_path):
    (tmp_path / "file").touch()
    environment.setenv(VARIABLE, str(tmp_path / "file" / "cache"))
    said = keep_compiled()
    assert said.startswith(
        f"compiled programs cannot be cached in {tmp_path}/file/cache, so every run compiles them again"
    )
    assert VARIABLE not in os.environ


def test_a_path_with_spaces_is_left_out_because_compilers_fail_there(environment, tmp_path):
    environment.setenv("XDG_CACHE_HOME", str(tmp_path / "my files"))
    said = keep_compiled()
    assert said.startswith(f"compiled programs cannot be cached in {tmp_path}/my files/tacit/compiled")
    assert said.endswith("whose path has no spaces")
    assert VARIABLE not in os.environ
    assert not (tmp_path / "my files").exists()

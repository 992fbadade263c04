import pytest
import torch

from tacit.config import METHODS, DemoConfig, load_config, override
from tacit.estimators import Concrete, DisARM, ScoreFunction, StraightThrough
from tacit.graph import BernoulliGraph, Sigmoid, SineSquared
from tacit.losses import (
    ELBO,
    MMD,
    EnergyScore,
    ExpectedError,
    Gaussian,
    KernelMean,
    Laplacian,
    NodewiseExpectedError,
    PointMSE,
    RationalQuadratic,
    median_distance,
)
from tacit.predictors import HopPredictor
from tacit.training import CosineDecay, StepDecay


def test_methods_build_what_they_say():
    ours, paper = METHODS["node"], METHODS["paper"]
    assert ours.model.build_loss() == EnergyScore(scope="node", baseline="leave_one_out")
    assert paper.model.build_loss() == MMD(scope="joint", baseline="paper")
    assert (paper.model.num_graphs, paper.model.share_graphs) == (64, True)
    assert ours.training.build().schedule == CosineDecay(0.1, 0.0)
    settings = paper.training.build()
    assert (settings.schedule, settings.epochs, settings.batch_size) == (StepDecay(0.05, 0.01, 5), 10, 128)
    assert settings.average_fraction == 0
    assert paper.system.build().true_edge_probs.shape == (12, 12)


def test_toml_overrides(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text('[model]\nloss = "mmd"\nkernel = "gaussian"\nkernel_scale = 0.5\n[training]\nepochs = 2\n')
    config = load_config(path, DemoConfig())
    assert config.model.build_loss() == MMD(Gaussian(0.5))
    assert config.training.epochs == 2
    assert config.training.build().halve_after == (1,)
    assert config.training.batch_size == 128


@pytest.mark.parametrize(
    "text",
    [
        "[training]\nnum_epoch = 3",
        "[trainin]\nepochs = 3",
        "training = 3",
        "[training]\nepochs = 0",
        "[training]\nepochs = 'many'",
        "[training]\nlearning_rate = nan",
        "[training]\nlearning_rate = inf",
        "[system]\nedge_prob = 1.5",
        "[model]\nloss = 'mdm'",
        "[model]\nestimator = 'reinforce'",
        "[model]\nkernel_scale = true",
        "[model]\nkernel_scale = -1.0",
        "[training\nepochs",
    ],
)
def test_bad_files_are_one_clear_line(tmp_path, text, refused):
    path = tmp_path / "c.toml"
    path.write_text(text)
    refused(load_config, path, DemoConfig())


@pytest.mark.parametrize("schedule", ["step", "cosine"])
def test_rates_that_do_not_fit_are_named_as_in_the_file(schedule, refused):
    for final in (0.0, 0.5) if schedule == "step" else (0.5,):
        config = override(DemoConfig(), {"training": {"schedule": schedule, "final_learning_rate": final}})
        refused(config.training.build)


def test_ragged_hop_weights(refused):
    refused(override(DemoConfig(), {"system": {"hop_weights": [[1.0], [1.0, 2.0]]}}).system.build)


LOSSES = {
    "mmd": MMD,
    "energy": EnergyScore,
    "point_mse": PointMSE,
    "literature_1_mae": ExpectedError,
    "literature_1_mse": ExpectedError,
    "literature_2_mae": NodewiseExpectedError,
    "literature_2_mse": NodewiseExpectedError,
    "elbo": ELBO,
}


def build(**model):
    graph = BernoulliGraph.uniform(4, generator=torch.Generator().manual_seed(0))
    config = override(DemoConfig(), {"model": model}).model
    return config.build(graph, HopPredictor(torch.ones(2, 3, 1)), torch.linspace(0, 1, 200).view(50, 4, 1))


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_has_a_name(name):
    model = build(loss=name, **({"prior": 0.2, "likelihood_sd": 0.7} if name == "elbo" else {}))
    assert type(model.loss) is LOSSES[name]
    assert model.loss.scope == "node"
    if name.startswith("literature"):
        assert model.loss.error == name[-3:]
    if name == "elbo":
        assert (model.loss.sd, model.prior.probs.item(), model.prior.weight) == (0.7, pytest.approx(0.2), 1.0)


def test_every_estimator_and_link_has_a_name():
    kinds = {"score_function": ScoreFunction, "disarm": DisARM, "straight_through": StraightThrough}
    for name, kind in kinds.items():
        assert type(build(estimator=name).estimator) is kind
    assert build(estimator="concrete", temperature=2.0, final_temperature=0.5).estimator == Concrete(2.0, 0.5)
    links = {"sigmoid": Sigmoid(), "sine_squared": SineSquared()}
    for name, link in links.items():
        assert override(DemoConfig(), {"model": {"link": name}}).model.build_link() == link


def test_kernel_scales(refused):
    assert build(loss="mmd", kernel="gaussian", kernel_scale=0.3).loss.kernel == Gaussian(0.3)
    several = build(loss="mmd", kernel="laplacian", kernel_scale=[0.1, 1.0]).loss.kernel
    assert several == KernelMean((Laplacian(0.1), Laplacian(1.0)))
    targets = torch.randn(50, 4, 1, generator=torch.Generator().manual_seed(3))
    config = override(DemoConfig(), {"model": {"loss": "mmd", "kernel_scale": "median"}}).model
    assert config.build_loss(targets).kernel == RationalQuadratic(median_distance(targets, "node"))
    refused(config.build_loss)
    default = override(DemoConfig(), {"model": {"loss": "mmd", "kernel": "gaussian"}}).model
    assert default.build_loss(targets).kernel == Gaussian(median_distance(targets, "node"))
    assert override(DemoConfig(), {"model": {"loss": "mmd"}}).model.build_loss().kernel == RationalQuadratic(0.04)


@pytest.mark.parametrize(
    "model",
    [
        {"kernel": "gaussian"},
        {"likelihood_sd": 0.5},
        {"temperature": 0.5},
        {"estimator": "disarm", "baseline": "paper"},
        {"loss": "mmd", "kernel_scale": []},
        {"prior_weight": 0.5},
        {"loss": "elbo"},
        {"prior": [[0.1, 0.2], [0.3]]},
        {"estimator": "concrete", "temperature": 0.05},
    ],
)
def test_choices_that_do_not_fit_are_refused(model, refused):
    refused(build, **model)

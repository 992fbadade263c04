"""Kinds by name: from this process, from an installed package, and what the config makes of them."""

import subprocess
import sys

import pytest
import torch

import tacit
from tacit.config import DemoConfig, ModelConfig, override, registered_names
from tacit.estimators import ScoreFunction
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore, LossPreset
from tacit.predictors import HopPredictor
from tacit.registry import ESTIMATORS, GRAPHS, LOSSES, OBSERVATIONS, REGISTRIES

pytestmark = pytest.mark.usefixtures("own_kinds")


def build(**model):
    return override(DemoConfig(), {"model": model}).model.build(
        BernoulliGraph(torch.full((3, 3), 0.5)), HopPredictor(torch.ones(1, 2, 1))
    )


class HalfGraph(BernoulliGraph):
    @classmethod
    def from_start(cls, start):
        return cls(start.edge_probs.detach() / 2)


def test_a_name_of_each_kind_reaches_the_model():
    class Mine(ScoreFunction):
        uses = ("temperature",)

    tacit.register("loss", "heavy", LossPreset(EnergyScore, {"weight": 2.0}))
    tacit.register("estimator", "mine", Mine)
    tacit.register("graph", "half", HalfGraph)
    model = build(loss="heavy", estimator="mine", graph="half", scope="joint", temperature=2.0)
    assert (model.loss.weight, model.loss.scope) == (2.0, "joint")
    assert isinstance(model.estimator, Mine)
    assert torch.allclose(model.graph.edge_probs, torch.full((3, 3), 0.25))
    assert "heavy" in registered_names(ModelConfig.model_fields["loss"])
    assert LOSSES["heavy"].learns_noise


def test_an_option_is_refused_by_what_kinds_say_they_use(refused):
    refused(build, kernel="gaussian")
    refused(build, temperature=2.0)
    refused(build, estimator="disarm", baseline="none")

    class Mine(EnergyScore):
        uses = ("scope", "likelihood_sd")

    tacit.register("loss", "mine", Mine)
    assert isinstance(build(loss="mine", likelihood_sd=0.3).loss, Mine)
    refused(build, loss="mine", baseline="none")
    refused(build, likelihood_sd=0.3)


def test_an_unknown_name_says_what_is_registered_and_how_to_register(refused):
    refused(build, loss="zzz")
    refused(build, graph="bernouli")
    refused(ModelConfig, loss="zzz")
    refused(tacit.register, "los", "x", EnergyScore)
    refused(tacit.register, "loss", "energy", ScoreFunction)


def test_everything_of_the_package_has_a_name():
    assert list(ESTIMATORS) == ["concrete", "disarm", "score_function", "straight_through"]
    assert list(GRAPHS) == ["bernoulli"]
    kinds = (
        "bernoulli gaussian gaussian_head gaussian_input log_normal negative_binomial none ordered poisson student_t"
    )
    assert list(OBSERVATIONS) == kinds.split()
    assert {"elbo", "energy", "literature_1_mae", "literature_2_mse", "mmd", "point_mse"} < set(LOSSES)


def test_an_installed_package_is_found_by_its_entry_point(tmp_path, monkeypatch, refused):
    """A folder with a module and the metadata that an installer writes; the module is imported when it is needed."""
    (tmp_path / "pack_of_kinds.py").write_text(
        "import tacit\nfrom tacit.losses import EnergyScore, LossPreset\n"
        'tacit.register("loss", "from_afar", LossPreset(EnergyScore, {"weight": 3.0}))\n'
    )
    metadata = tmp_path / "pack_of_kinds-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: pack-of-kinds\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[tacit.kinds]\nfar_pack = pack_of_kinds\n")
    assert "from_afar" not in LOSSES
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("tacit.registry._loaded", [])
    assert build(loss="from_afar").loss.weight == 3.0
    assert "pack_of_kinds" in sys.modules
    monkeypatch.delitem(sys.modules, "pack_of_kinds")
    (tmp_path / "pack_of_kinds.py").write_text("raise OSError('the disk is gone')\n")
    monkeypatch.setattr("tacit.registry._loaded", [])
    refused(lambda: "another" in REGISTRIES["loss"])


def test_a_broken_package_does_no_harm_until_a_name_is_looked_up(tmp_path):
    (tmp_path / "broken_kinds.py").write_text("from tacit.config import ModelConfig\nraise OSError('gone')\n")
    metadata = tmp_path / "broken_kinds-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-kinds\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[tacit.kinds]\nbroken = broken_kinds\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nimport tacit.config, tacit.sklearn\n"
    code += "assert 'broken_kinds' not in sys.modules\n"
    subprocess.run([sys.executable, "-c", code], check=True)

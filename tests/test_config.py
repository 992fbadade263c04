import pytest

from tacit.config import METHODS, DemoConfig, load_config, override
from tacit.errors import InputError
from tacit.losses import MMD, EnergyScore, Gaussian
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
    ("text", "message"),
    [
        ("[training]\nnum_epoch = 3", r"unknown key 'num_epoch' in \[training\]; did you mean 'epochs'\?"),
        ("[trainin]\nepochs = 3", r"unknown key 'trainin' in the config; did you mean 'training'\?"),
        ("training = 3", r"\[training\] needs to be a table, got 3"),
        ("[training]\nepochs = 0", r"epochs in \[training\] is not usable: .*greater than or equal to 1, got 0; the d"),
        ("[training]\nepochs = 'many'", r"epochs in \[training\] is not usable: .*integer.*, got 'many'"),
        ("[training]\nlearning_rate = nan", r"learning_rate in \[training\] is not usable"),
        ("[training]\nlearning_rate = inf", r"learning_rate in \[training\] is not usable"),
        ("[system]\nedge_prob = 1.5", r"edge_prob in \[system\] is not usable: .*less than or equal to 1, got 1.5"),
        ("[model]\nloss = 'mdm'", r"loss in \[model\] is not usable: input should be 'mmd', .*'elbo', got 'mdm'"),
        ("[model]\nestimator = 'reinforce'", r"estimator in \[model\] is not usable: input should be 'score_function'"),
        ("[model]\nkernel_scale = -1.0", r"kernel_scale in \[model\] is not usable: .*, got -1.0"),
        ("[training\nepochs", "config needs TOML, but .* is not"),
    ],
)
def test_bad_files_are_one_clear_line(tmp_path, text, message):
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        load_config(path, DemoConfig())
    assert "\n" not in str(caught.value).replace(str(path), "")


@pytest.mark.parametrize("schedule", ["step", "cosine"])
def test_rates_that_do_not_fit_are_named_as_in_the_file(schedule):
    for final in (0.0, 0.5) if schedule == "step" else (0.5,):
        config = override(DemoConfig(), {"training": {"schedule": schedule, "final_learning_rate": final}})
        with pytest.raises(
            InputError, match=r"final_learning_rate in \[training\] needs to be .* got 0.*pass for example"
        ):
            config.training.build()


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"config needs a readable file, got .*none.toml \(No such file"):
        load_config(tmp_path / "none.toml", DemoConfig())


def test_ragged_hop_weights():
    with pytest.raises(InputError, match=r"hop_weights needs rows of one length, got lengths \[1, 2\]"):
        override(DemoConfig(), {"system": {"hop_weights": [[1.0], [1.0, 2.0]]}}).system.build()

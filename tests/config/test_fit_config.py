"""The choices of ``tacit fit``: one name or several, fractions, and what would be ignored."""

import pytest

from tacit.config import DataOptions, FitConfig, PredictorOptions, override
from tacit.errors import InputError
from tacit.registry import PREDICTORS


def test_one_name_is_a_list_of_one(refused):
    config = override(FitConfig(), {"data": {"covariates": "hour", "targets": ["a", "b"]}})
    assert config.data.covariates == ("hour",)
    assert config.data.targets == ("a", "b")
    refused(override, FitConfig(), {"data": {"covariates": 3}})


def test_a_config_comes_back_from_its_own_json():
    config = override(FitConfig(), {"data": {"targets": ["a"]}, "graph": {"priors": [["a", "b", 0.5]], "k_nearest": 2}})
    assert FitConfig.model_validate(config.model_dump(mode="json")) == config


def test_fractions_leave_something_for_the_test():
    assert DataOptions(train_fraction=0.5, validation_fraction=0.25).fractions == (0.5, 0.25)
    with pytest.raises(InputError, match=r"must have a sum below 1, got 0.8 and 0.2; lower one"):
        _ = DataOptions(train_fraction=0.8, validation_fraction=0.2).fractions


def test_choices_that_would_be_ignored(refused):
    DataOptions(window=3).require_unset(("horizon", "time"), "x.npz", "which has no times")
    refused(DataOptions(window=3).require_unset, ("horizon", "window"), "x.npz", "which has no times")


@pytest.mark.parametrize(
    ("kind", "choices"),
    [
        ("filter", {"activation": "tanh", "residual": True, "warm_start": False}),
        ("filter", {"warm_start": True}),
        ("feedforward", {"hidden": 8, "layers": 2, "residual": True}),
        ("recurrent", {"hidden": 8, "layers": 2, "residual": True, "warm_start": False}),
        ("convolution", {"hidden": 8, "residual": False}),
        ("sage", {"hidden": 8, "residual": True}),
        ("hops", {"num_hops": 3}),
    ],
)
def test_choices_that_a_predictor_takes(kind, choices):
    PredictorOptions(kind=kind, **choices).require_used(PREDICTORS[kind])


@pytest.mark.parametrize(
    ("kind", "choices"),
    [
        ("filter", {"hidden": 8}),
        ("filter", {"layers": 2}),
        ("filter", {"activation": "tanh", "warm_start": True}),
        ("recurrent", {"warm_start": True}),
        ("recurrent", {"activation": "tanh"}),
        ("convolution", {"residual": True}),
        ("hops", {"hidden": 8}),
        ("filter", {"num_hops": 3}),
        ("gat", {"activation": "tanh"}),
    ],
)
def test_choices_that_a_predictor_has_no_use_for(kind, choices, refused):
    refused(PredictorOptions(kind=kind, **choices).require_used, PREDICTORS[kind])


def test_what_is_chosen_from_the_data_has_no_default_to_name(refused):
    refused(override, FitConfig(), {"training": {"epochs": 0}})
    refused(override, FitConfig(), {"predictor": {"hidden": 0}})


@pytest.mark.parametrize(("section", "key"), [("training", "epochs"), ("data", "window"), ("assessment", "fdr")])
def test_true_is_no_number(section, key):
    with pytest.raises(InputError, match=f"{key} in .{section}. is not usable: input should be a number"):
        override(FitConfig(), {section: {key: True}})

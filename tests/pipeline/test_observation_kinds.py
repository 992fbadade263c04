"""Observation kinds from the command: which are taken, which values are refused, forecasts of the right kind."""

import numpy as np
import pandas as pd
import pytest

from tacit import LatentGraphForecaster
from tacit.config import AssessmentOptions, ObservationOptions

QUICK = AssessmentOptions(enabled=False)


def table(rows=160):
    """Counts, answers, grades and numbers; each second node follows the first."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(3, size=rows)
    values = {"calls": counts, "more": rng.poisson(1 + 0.8 * np.roll(counts, 1))}
    values |= {"alarm": rng.integers(0, 2, rows), "grade": rng.integers(1, 4, rows), "level": rng.normal(size=rows)}
    return pd.DataFrame(values, index=pd.date_range("2020-01-01", periods=rows, name="time"))


KINDS = {"calls": "poisson", "more": "negative_binomial", "alarm": "bernoulli", "grade": "ordered", "*": "gaussian"}


@pytest.fixture(scope="module")
def mixed():
    return LatentGraphForecaster(observation=KINDS, window=1, assessment=QUICK).fit(table())


def test_each_node_has_its_kind_and_what_it_must_know(mixed):
    chosen = mixed.record_.config["observation"]
    assert chosen["kind"] == {**{node: KINDS[node] for node in list(KINDS)[:4]}, "level": "gaussian"}
    assert chosen["categories"] == [1.0, 2.0, 3.0]
    assert chosen["largest_count"] == int(np.ceil(1.5 * table()[["calls", "more"]][:112].max().max())) + 10


@pytest.mark.parametrize("steps", [None, 3])
def test_quantiles_and_samples_are_values_of_the_targets(mixed, steps):
    frame = mixed.forecast(table()[:40], num_samples=3, steps=steps).set_index("node")
    shown = [name for name in frame if name[0] == "q" or name in ("median", "sample_0", "sample_1", "sample_2")]
    for node in ("calls", "more"):
        values = frame.loc[node, shown].to_numpy()
        assert (values == np.rint(values)).all()
        assert not np.signbit(values.astype(float)).any()
    assert set(np.unique(frame.loc["alarm", shown])) <= {0.0, 1.0}
    assert set(np.unique(frame.loc["grade", shown])) <= {1.0, 2.0, 3.0}
    np.testing.assert_array_equal(frame.loc["alarm", "probability"], frame.loc["alarm", "mean"])
    assert frame.loc[["calls", "level"], ["probability", "P(1)"]].isna().all(axis=None)
    np.testing.assert_allclose(frame.loc["grade", ["P(1)", "P(2)", "P(3)"]].sum(axis=1), 1, atol=1e-5)


def test_a_saved_fit_forecasts_the_same(mixed, tmp_path):
    mixed.save(tmp_path / "model.safetensors")
    again = LatentGraphForecaster.load(tmp_path / "model.safetensors")
    pd.testing.assert_frame_equal(again.forecast(table()[:30]), mixed.forecast(table()[:30]))


def test_predict_proba_requires_classes_at_all_nodes(mixed):
    assert not hasattr(mixed, "predict_proba")
    answers = pd.DataFrame(np.random.default_rng(1).integers(0, 2, (120, 2)), columns=["a", "b"])
    model = LatentGraphForecaster(observation="bernoulli", window=1, assessment=QUICK).fit(answers)
    probs = model.predict_proba(answers)
    assert model.classes_.tolist() == [0.0, 1.0]
    assert probs.shape == (120, 2, 2)
    np.testing.assert_allclose(probs.sum(-1), 1, atol=1e-5)
    np.testing.assert_allclose(probs[..., 1], model.predict(answers), atol=1e-5)
    assert model.predict_proba(answers, steps=2).shape == (1, 2, 2, 2)
    assert set(np.unique(model.sample(answers, num_samples=4))) <= {0.0, 1.0}


@pytest.mark.parametrize(
    ("node", "value", "kind"),
    [
        ("calls", -1, "poisson"),
        ("calls", 1.5, "negative_binomial"),
        ("alarm", 2, "bernoulli"),
        ("level", 0, "log_normal"),
    ],
)
def test_values_that_a_kind_cannot_have_are_refused_with_their_row(node, value, kind, refused):
    bad = table().astype(float)
    bad.loc["2020-01-04", node] = value
    model = LatentGraphForecaster(observation={node: kind, "*": "gaussian"}, window=1, assessment=QUICK)
    refused(model.fit, bad)


def test_a_category_unseen_in_training_is_refused(refused):
    bad = table()
    bad.iloc[-2, 3] = 9
    kinds = {"grade": "ordered", "*": "gaussian"}
    refused(LatentGraphForecaster(observation=kinds, window=1, assessment=QUICK).fit, bad)


def test_new_data_is_checked_too(mixed, refused):
    bad = table()[:30].astype(float)
    bad.iloc[5, 0] = 0.5
    for call in (mixed.predict, mixed.evaluate, lambda data: mixed.forecast(data, steps=2), mixed.goodness_of_fit):
        refused(call, bad)


@pytest.mark.parametrize(
    "options",
    [
        {"kind": {"calls": "poisson"}},
        {"kind": {"call": "poisson", "*": "gaussian"}},
        {"kind": {"calls": "none", "*": "gaussian"}},
        {"kind": "gaussian", "categories": (1, 2)},
        {"kind": "gaussian", "largest_count": 9},
    ],
)
def test_options_that_do_not_fit_are_refused(options, refused):
    refused(LatentGraphForecaster(observation=ObservationOptions(**options), window=1, assessment=QUICK).fit, table())

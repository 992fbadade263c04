"""The observation model that data get: by their values, and by the likelihood with the graph in the model."""

import numpy as np
import pytest
import torch

from tacit import LatentGraphRegressor
from tacit.config import AssessmentOptions, DataOptions, FitConfig, ObservationOptions
from tacit.data import Series
from tacit.pipeline import Source, resolve
from tacit.pipeline.observation_choice import sorts_of

ROWS, NODES = 450, 4


def series_of(kind, rows=ROWS):
    """Node 0 leads to node 1, whose edge acts at half of the steps, and node 2 to node 3 at all of them."""
    rng = np.random.default_rng(1)
    values = np.zeros((rows + 50, NODES))
    for time in range(1, rows + 50):
        before = values[time - 1]
        sent = np.array([0.0, before[0] * (rng.random() < 0.5), 0.0, before[2]])
        if kind in ("poisson", "negative_binomial"):
            mean = np.log1p(np.exp(1.5 + 1.2 * sent))
            values[time] = rng.poisson(mean) if kind == "poisson" else rng.negative_binomial(1.5, 1.5 / (1.5 + mean))
        elif kind == "bernoulli":
            values[time] = rng.random(NODES) < 1 / (1 + np.exp(1 - 3 * sent))
        elif kind == "log_normal":
            values[time] = np.log1p(np.exp(1 + 0.5 * sent)) * np.exp(0.5 * rng.standard_normal(NODES))
        elif kind == "ordered":
            hidden = 0.8 * (sent - 3) + rng.logistic(size=NODES)
            values[time] = 1 + (hidden[:, None] > np.array([-1.0, 0.0, 1.0, 2.0])).sum(1)
        else:
            noise = rng.standard_t(3, NODES) if kind == "student_t" else rng.standard_normal(NODES)
            values[time] = 0.2 * before + 1.2 * sent + 0.5 * noise
    return Series(values[50:, :, None].copy(), tuple("abcd"))


def plan_of(series, **options):
    config = FitConfig(data=DataOptions(window=1), observation=ObservationOptions(**options))
    return resolve(Source("data", series), config, seed=0, device=torch.device("cpu"), command="test")


@pytest.mark.parametrize(
    "kind", ["gaussian", "student_t", "poisson", "negative_binomial", "bernoulli", "ordered", "log_normal"]
)
def test_the_kind_that_drew_the_data_is_chosen(kind):
    plan = plan_of(series_of(kind))
    assert plan.config.observation.kind == kind
    assert ("observation", kind) in {(one.option, one.value) for one in plan.choices}


def test_a_key_changes_the_kind():
    plan = plan_of(series_of("poisson"), kind="negative_binomial")
    assert plan.config.observation.kind == "negative_binomial"
    assert "observation" not in {one.option for one in plan.choices}


def test_nodes_of_different_values_have_kinds_of_their_own():
    counts, numbers = series_of("poisson"), series_of("gaussian")
    both = Series(np.concatenate([counts.values, numbers.values], 1), tuple("abcdefgh"))
    kinds = plan_of(both).config.observation.kind
    assert kinds == {**dict.fromkeys("abcd", "poisson"), **dict.fromkeys("efgh", "gaussian")}


def test_nodes_with_somewhat_heavier_tails_do_not_split_a_table():
    """Half of the nodes gain from heavy tails, none of them clearly: the table stays simple."""
    heavy, light = series_of("student_t"), series_of("gaussian")
    both = Series(np.concatenate([heavy.values, light.values], 1), tuple("abcdefgh"))
    assert plan_of(both).config.observation.kind == "gaussian"


def test_a_node_that_clearly_needs_another_kind_has_its_own():
    series, rng = series_of("gaussian", 900), np.random.default_rng(5)
    values = series.values.copy()
    values[:, 3, 0] += rng.normal(size=900) * np.where(rng.random(900) < 0.1, 12.0, 0.1)
    plan = plan_of(Series(values, series.nodes))
    assert plan.config.observation.kind == {**dict.fromkeys("abc", "gaussian"), "d": "student_t"}
    (reason,) = (one.sentence for one in plan.choices if one.option == "observation")
    assert reason.startswith("observation = student_t (1 of 4 nodes: d): ")
    assert "decided on each of these nodes alone" in reason


def test_positive_numbers_and_others_have_one_kind():
    series = series_of("student_t", 900)
    values = series.values + np.array([0.0, 0.0, 500.0, 500.0])[:, None]
    plan = plan_of(Series(values, series.nodes))
    assert plan.config.observation.kind == "student_t"
    assert any(one.values.get("decided", {}).get("nodes", 0) is None for one in plan.choices)


def test_several_variables_per_node_have_gaussian_noise():
    series = series_of("student_t")
    both = np.concatenate([series.values, np.random.default_rng(6).normal(size=series.values.shape)], 2)
    plan = plan_of(Series(both, series.nodes, channels=("x", "y")))
    assert plan.config.observation.kind == "gaussian"


def test_gated_counts_in_pairs_are_poisson_with_the_right_probability():
    """A gate switches the whole of a count: inputs are not centred."""
    rng = np.random.default_rng(2)
    x = rng.poisson(3, (4000, 2)).astype(float)
    acts = rng.random(4000) < 0.7
    y = rng.poisson(np.stack([1 + 0.5 * x[:, 0], 1 + 0.5 * x[:, 1] + 0.8 * acts * x[:, 0]], 1)).astype(float)
    model = LatentGraphRegressor(assessment=AssessmentOptions(enabled=False)).fit(x, y)
    assert ("observation", "poisson") in {(one.option, one.value) for one in model.record_.choices}
    assert model.edge_probs_[1, 0] == pytest.approx(0.7, abs=0.08)


@pytest.mark.parametrize("kind", ["rain", "temperature"])
def test_gaussian_noise_stays_where_no_other_kind_suits(kind):
    """Skewed values with zeros are no heavy tails; whole numbers that vary less than counts are no counts."""
    rng = np.random.default_rng(3)
    values = rng.normal(20, 2, (400, 3)).round()
    if kind == "rain":
        values = rng.gamma(0.8, 6, (400, 3)) * (rng.random((400, 3)) < 0.4)
    plan = plan_of(Series(values[:, :, None].copy(), tuple("abc")))
    assert plan.config.observation.kind == "gaussian"


def test_grades_and_counts_beside_each_other_are_told_apart():
    rng = np.random.default_rng(4)
    grades, calls = rng.integers(1, 6, (300, 5)), rng.negative_binomial(2, 0.1, (300, 5))
    values = np.stack([grades, calls], 2).reshape(300, 10).astype(float)
    kinds = plan_of(Series(values[:, :, None].copy(), tuple("abcdefghij"))).config.observation.kind
    assert kinds == {name: "negative_binomial" if place % 2 else "ordered" for place, name in enumerate("abcdefghij")}


@pytest.mark.parametrize(
    ("values", "sort"),
    [
        ([0.0, 1.0, 1.0], "bernoulli"),
        ([0.0, 3.0, 1.0], "grades"),
        ([float(value) for value in range(9)], "poisson"),
        ([100.0, 300.0, 120.0], "gaussian"),
        ([0.5, 3.0, 1.0], "positive"),
        ([-1.0, 3.0, 1.0], "gaussian"),
    ],
)
def test_what_values_are(values, sort):
    table = np.array(values)[:, None, None].repeat(2, 1)
    assert sorts_of(Source("data", Series(table, ("a", "b"))), FitConfig()) == (sort, sort)

"""Fits with effects within a step, given the edges: closed form, forecasts, fit test, storing; and what is refused."""

import copy
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from structural import LAGGED, WITHIN, know_edges, plan_of, structural_series, table_of
from tacit.assessment.fit_tests import goodness_of_fit
from tacit.config import AssessmentOptions, FitConfig, GraphOptions
from tacit.edges import OPEN
from tacit.errors import InputError
from tacit.observation import GaussianNoise
from tacit.pipeline import Plan, closed_form, fitting
from tacit.pipeline.fitted import Fitted
from tacit.pipeline.fitting import learn
from tacit.pipeline.inference import samples
from tacit.pipeline.job import run_fit
from tacit.pipeline.paths import path_samples
from tacit.pipeline.simultaneous import CHOICE
from tacit.pipeline.sources import read_source, read_table
from tacit.sklearn import LatentGraphForecaster

SHORT = {"assessment": {"bootstrap_replicas": 0, "controls": False}}


@pytest.fixture(scope="module")
def fitted():
    """A fit of 800 steps with the edges known, and its series."""
    values = structural_series(0, 800)
    with pytest.MonkeyPatch.context() as patch:
        know_edges(patch)
        plan = plan_of(values)
        return learn(plan).conclude(), values, plan


def in_units(fitted):
    """Return the weights within the step in the units of the data."""
    scaling = fitted.preparation.scaling
    spread = torch.from_numpy(scaling.deviation[:, 0]).float()
    return fitted.model.predictor.within.detach() * spread[:, None] / spread


def test_the_fit_is_that_of_regressions_and_says_so(fitted):
    found, _, plan = fitted
    assert plan.closed_form
    assert CHOICE in found.record.choices
    assert any(line.startswith("training = closed form") for line in found.record.choices)
    assert found.record.goodness["fits"] is True
    assert {"no graph", "full graph"} <= set(found.record.references)
    np.testing.assert_allclose(in_units(found).numpy(), WITHIN, atol=0.12)
    assert "probability" not in found.edges


def test_samples_have_the_correlation_of_the_step(fitted):
    found, values, _ = fitted
    source = read_table(table_of(values[:60]), found.config.data)
    drawn = samples(found, source, num_samples=500, seed=0)[..., 0]  # (pair, sample, node)
    deviations = (drawn - drawn.mean(1, keepdims=True)).reshape(-1, 3)
    reduced = np.linalg.inv(np.eye(3) - WITHIN)
    np.testing.assert_allclose(np.corrcoef(deviations.T), _correlation(reduced @ reduced.T), atol=0.1)
    paths = path_samples(found, source, 4, num_samples=400, seed=0)[..., 0]  # (origin, sample, step, node)
    first = paths[:, :, 0] - paths[:, :, 0].mean(1, keepdims=True)
    np.testing.assert_allclose(np.corrcoef(first.reshape(-1, 3).T), _correlation(reduced @ reduced.T), atol=0.15)


def _correlation(covariance):
    sizes = np.sqrt(np.diag(covariance))
    return covariance / np.outer(sizes, sizes)


def test_a_stored_run_gives_the_same_model(fitted, tmp_path):
    found, values, _ = fitted
    found.write(tmp_path / "run")
    again = Fitted.read(tmp_path / "run", torch.device("cpu"))
    source = read_table(table_of(values[:40]), found.config.data)
    np.testing.assert_array_equal(
        samples(found, source, num_samples=5, seed=1), samples(again, source, num_samples=5, seed=1)
    )


def test_gates_that_the_validation_part_refuses_are_always_open(monkeypatch):
    know_edges(monkeypatch)
    monkeypatch.setattr(closed_form, "adopt", lambda *_, **__: False)
    found = learn(plan_of(structural_series(0, 300), assessment={"enabled": False})).conclude()
    assert found.record.timings["steps"] == 0
    learned = found.graph.learned
    assert (found.graph.edge_probs[learned] > 0.999).all()


def test_how_often_an_edge_acts_is_left_open_with_its_direction(monkeypatch):
    know_edges(monkeypatch, direction=OPEN)
    probs = np.where(WITHIN != 0, 0.6, 1.0)
    found = learn(plan_of(structural_series(1, 600, probs=probs), **SHORT)).conclude()
    acts = torch.from_numpy(WITHIN != 0)
    assert found.graph.edge_probs[acts].tolist() == [1.0, 1.0]
    table = found.run.edges.frame().set_index(["source", "target"])
    assert (
        table.loc[[("n1", "n0"), ("n1", "n2")], ["probability", "std_error", "low", "high", "bagged"]]
        .isna()
        .all(axis=None)
    )
    assert not np.isnan(table.loc[("n0", "n2"), "probability"])
    said = "How often 2 edges act is not estimated: their direction within the step is open (n1 - n0, n1 - n2)."
    assert said in found.record.findings
    assert not any("nan" in line for line in (*found.record.answer, *found.record.findings))


def test_gates_within_the_step_are_found(monkeypatch):
    know_edges(monkeypatch, lagged=LAGGED)
    probs = np.where(WITHIN != 0, [[1, 0.4, 1], [1, 1, 1], [1, 0.7, 1]], 1.0)
    # effects of 2.0 and -1.75 beside noise of 1: with -1.05, growing noise explains one set of seven as well as a gate
    values = structural_series(2, 4000, within=2.5 * WITHIN, probs=probs)
    found = learn(plan_of(values, assessment={"enabled": False})).conclude().graph.edge_probs.detach()
    assert float(found[0, 1]) == pytest.approx(0.4, abs=0.06)
    assert float(found[2, 1]) == pytest.approx(0.7, abs=0.06)


def test_a_row_without_a_source_within_the_step_does_not_count(monkeypatch):
    know_edges(monkeypatch)
    values = structural_series(3, 800)
    values[::9, 1] = np.nan
    found = learn(plan_of(values, assessment={"enabled": False})).conclude()
    np.testing.assert_allclose(in_units(found).numpy(), WITHIN, atol=0.15)


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"predictor": {"kind": "feedforward"}}, r"kind in \[predictor\] is not possible with simultaneous"),
        ({"predictor": {"activation": "tanh"}}, r"activation in \[predictor\]"),
        ({"observation": {"kind": "gaussian_input"}}, r"kind in \[observation\]"),
        ({"training": {"epochs": 5}}, r"epochs in \[training\] .* got 5; leave it out"),
        ({"model": {"loss": "mmd"}}, r"loss in \[model\]"),
        ({"data": {"horizon": 2}}, r"horizon in \[data\] .* got 2; use horizon 1"),
        ({"graph": {"symmetric": True}}, r"symmetric in \[graph\]"),
        ({"graph": {"self_loops": True}}, r"self_loops in \[graph\]"),
        ({"graph": {"layout": "table"}}, r"layout in \[graph\]"),
        ({"graph": {"evidence": "none"}}, r"evidence in \[graph\]"),
    ],
)
def test_options_that_do_not_go_together_are_refused_before_a_file_is_read(sections, said):
    sections = {**sections, "graph": {"simultaneous": True, **sections.get("graph", {})}}
    config = FitConfig.model_validate(sections)
    with pytest.raises(InputError, match=said):
        run_fit("there is no such file.csv", config, Path("run"), device=torch.device("cpu"))


def test_pairs_and_several_variables_are_refused(tmp_path):
    rng, graph = np.random.default_rng(0), {"simultaneous": True}
    np.savez(tmp_path / "pairs.npz", x=rng.normal(size=(60, 3)), y=rng.normal(size=(60, 3)))
    two = pd.DataFrame(rng.normal(size=(60, 4)), columns=["a:x", "a:y", "b:x", "b:y"]).rename_axis("time")
    two.to_csv(tmp_path / "two.csv")
    for name, options, said in (
        ("pairs.npz", {}, "requires a series, got pairs without time; leave it out"),
        ("two.csv", {"separator": ":"}, r"requires one target variable, got 2 \(x, y\); name one with targets"),
    ):
        config = FitConfig.model_validate({"graph": graph, "data": options})
        with pytest.raises(InputError, match=said):
            Plan.make(
                read_source(str(tmp_path / name), config.data),
                config,
                seed=0,
                device=torch.device("cpu"),
                command="tacit fit",
            )


def test_stopped_after_the_fit_what_is_open_stays_open(monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    know_edges(monkeypatch, direction=OPEN)
    monkeypatch.setattr(fitting, "assess", stop)
    learned = learn(plan_of(structural_series(1, 200)))
    assert not learned.complete
    empty = np.isnan(learned.conclude().edges.matrix("probability"))
    assert empty[[0, 2], [1, 1]].all()
    assert not empty[2, 0]


def test_standard_errors_and_flags_of_a_loaded_forecaster_keep_what_is_open(monkeypatch, tmp_path):
    know_edges(monkeypatch, direction=OPEN)
    table = table_of(structural_series(1, 300))
    options = GraphOptions(simultaneous=True), AssessmentOptions(enabled=False)
    LatentGraphForecaster(graph=options[0], assessment=options[1]).fit(table).save(tmp_path / "fit.tacit")
    again = LatentGraphForecaster.load(tmp_path / "fit.tacit")
    again.estimate_std_errors(table)
    again.identify(table)
    edges = again.edges_.set_index(["source", "target"])
    assert edges.loc[("n1", "n0"), ["probability", "std_error", "low", "high", "bagged"]].isna().all()
    assert edges.loc[("n1", "n0"), "identifiable"] == "no"
    assert edges.loc[("n0", "n2"), "std_error"] > 0


@torch.no_grad()
def test_independent_noise_of_the_same_sizes_is_rejected(fitted):
    found, _, plan = fitted
    test, model = plan.dataset.split.test, found.model
    assert goodness_of_fit(model, test, generator=torch.Generator().manual_seed(0)).fits
    apart = copy.deepcopy(model)
    apart.observation.draw = partial(GaussianNoise.draw, apart.observation)
    assert goodness_of_fit(apart, test, generator=torch.Generator().manual_seed(0)).fits is False

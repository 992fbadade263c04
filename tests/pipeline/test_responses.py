"""What happens if: responses against powers of the matrix, paths of the same model, uncertain edges, and refusals."""

import copy
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from commands import call
from tacit import LatentGraphForecaster, LatentGraphRegressor, load
from tacit.cli.effect import _responding
from tacit.config import AssessmentOptions, DataOptions, GraphOptions
from tacit.local import MeanEquations
from tacit.local.equations import _without
from tacit.pipeline import effect_table

NODES = ("north", "east", "south")
MATRIX = np.array([[0.5, 0.0, 0.0], [0.6, 0.3, 0.0], [0.0, -0.4, 0.2]])  # north -> east -> south
UNITS = np.array([1.0, 10.0, 0.1])
ROWS, GATE = 500, 0.6
OFF = AssessmentOptions(enabled=False)


def made(gate=1.0, rows=ROWS):
    rng, values = np.random.default_rng(0), np.zeros((rows, 3))
    for row in range(1, rows):
        weights = MATRIX.copy()
        weights[2, 1] *= rng.random() < gate
        values[row] = weights @ values[row - 1] + [1.0, 0.5, 0.3] * rng.normal(size=3)
    times = pd.date_range("2026-01-01", periods=rows, freq="h", name="time")
    return pd.DataFrame(values * UNITS + [3, 0, 1], columns=NODES, index=times)


@pytest.fixture(scope="module")
def table():
    return made()


@pytest.fixture(scope="module")
def model(table):
    return LatentGraphForecaster(assessment=OFF).fit(table)


@pytest.fixture(scope="module")
def gated():
    return LatentGraphForecaster(assessment=OFF).fit(made(GATE, 2_000))


@pytest.fixture(scope="module")
def run(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("effects")
    table.to_csv(folder / "levels.csv")
    assert call("fit", folder / "levels.csv", "--quick", "--quiet", "--out", folder / "run") == 0
    return folder


def with_equations(fitted, matrix, exists=1.0, error=0.0):
    """The fit with other equations: scaled weights of the newest lag, and independent errors of all weights."""
    unit = fitted.preparation.scaling.deviation[:, 0]
    scaled = torch.from_numpy(matrix * unit / unit[:, None]).float()
    target, source = (scaled - torch.diag(scaled.diagonal())).nonzero().unbind(1)
    residual, lags = float(fitted.model.predictor.residual), fitted.model.predictor.layout.window
    own, edges = torch.zeros(3, lags), torch.zeros(len(target), lags)
    own[:, -1], edges[:, -1] = scaled.diagonal() - residual, scaled[target, source]
    sizes = [lags + lags * int((target == node).sum()) for node in range(3)]
    errors = [error**2 * torch.eye(size).flatten() for size in sizes]
    numbers = torch.full((len(target),), exists), own, edges, torch.tensor(lags), torch.full((3,), 300.0)
    changed = copy.copy(fitted)
    changed.equations = MeanEquations(source, target, *numbers, torch.cat(errors))
    return changed


def matrix_of(frame, column="response"):
    """(step, node)"""
    return frame[column].to_numpy().reshape(-1, 3)


def test_an_impulse_response_is_a_power_of_the_matrix(model):
    weights = MATRIX * UNITS[:, None] / UNITS
    fitted = with_equations(model._ready(), weights)
    found = effect_table(fitted, {"north": 2.0, "south": -0.1}, steps=24)
    powers = [np.linalg.matrix_power(weights, step) @ [2.0, 0.0, -0.1] for step in range(25)]
    assert found["step"].tolist() == np.repeat(np.arange(25), 3).tolist()
    assert found["node"].tolist() == [*NODES] * 25
    for column in ("response", "low", "high"):
        np.testing.assert_allclose(matrix_of(found, column), powers, rtol=1e-5, atol=1e-12)


def test_a_step_and_its_parts(model):
    """A node that is kept does not respond; what arrives by edges and own pasts adds up to the response."""
    weights = MATRIX * UNITS[:, None] / UNITS
    found = effect_table(with_equations(model._ready(), weights), {"east": 1.0}, steps=5, shape="step")
    expected, now = [], np.array([0.0, 1.0, 0.0])
    for _ in range(6):
        expected.append(now)
        now = weights @ now
        now[1] = 1.0
    np.testing.assert_allclose(matrix_of(found), expected, rtol=1e-5, atol=1e-12)
    parts = pd.DataFrame(found.attrs["edges"])
    assert set(zip(parts["source"], parts["target"], strict=True)) == {("east", "south"), ("south", "south")}
    sums = parts.groupby(["step", "target"])["part"].sum()
    later = found[(found["node"] == "south") & (found["step"] > 0)].set_index("step")["response"]
    np.testing.assert_allclose(sums.to_numpy(), later.to_numpy(), rtol=1e-9)


def test_intervals_of_a_fit_hold_the_powers(model):
    weights = MATRIX * UNITS[:, None] / UNITS
    found = model.effect({"north": 1.0}, steps=6)
    powers = np.array([np.linalg.matrix_power(weights, step)[:, 0] for step in range(7)])
    low, high = matrix_of(found, "low"), matrix_of(found, "high")
    assert ((low - 1e-9 <= powers) & (powers <= high + 1e-9)).mean() > 0.8
    wide = model.effect({"north": 1.0}, steps=6, level=0.99)
    assert (matrix_of(wide, "high") >= high).all()
    assert (matrix_of(found, "low") <= matrix_of(found)).all()


def test_edges_that_act_at_times_respond_by_their_mean(gated):
    """The response to a gate is theta times the weight: that of the paths of the model, with the same noise."""
    fitted, source = gated._ready(), gated._source(made(GATE, 2_000), reset=False)
    exact = effect_table(fitted, {"east": 10.0}, source, steps=4)
    found = exact[(exact["step"] == 1) & (exact["node"] == "south")]
    assert float(found["response"].iloc[0]) == pytest.approx(GATE * -0.4 * 0.1, rel=0.2)
    sampled = copy.copy(fitted)
    sampled.equations = None
    paths = effect_table(sampled, {"east": 10.0}, source, steps=4)
    np.testing.assert_allclose(matrix_of(paths) / UNITS, matrix_of(exact) / UNITS, atol=0.05)


@pytest.mark.parametrize("shape", ["pulse", "step", "value"])
def test_paths_and_equations_agree_on_every_shape(model, table, shape):
    """Without gates, paths with the same noise differ by the response of the same weights."""
    fitted, source = copy.copy(model._ready()), model._source(table, reset=False)
    fitted.equations = replace(fitted.equations, covariance=1e-6 * fitted.equations.covariance)
    options = {"steps": 4, "shape": shape, "at": "2026-01-15"}
    exact = effect_table(fitted, {"east": 7.0}, source, **options)
    fitted = copy.copy(fitted)
    fitted.equations = None
    paths = effect_table(fitted, {"east": 7.0}, source, **options)
    np.testing.assert_allclose(matrix_of(paths) / UNITS, matrix_of(exact) / UNITS, atol=0.08)
    if shape == "value":
        np.testing.assert_allclose(matrix_of(exact, "with")[:, 1], 7.0, rtol=1e-6)
    np.testing.assert_allclose(
        matrix_of(exact, "with") - matrix_of(exact, "without"), matrix_of(exact), rtol=1e-6, atol=1e-9
    )
    assert exact["time"].iloc[0] == pd.Timestamp("2026-01-15")
    assert matrix_of(exact, "without")[0] == pytest.approx(table.loc["2026-01-15"].iloc[0].to_numpy(), rel=1e-4)


def test_uncertain_edges_widen_the_interval(model):
    fitted = with_equations(model._ready(), MATRIX * UNITS[:, None] / UNITS, exists=0.6, error=0.02)
    best = copy.copy(fitted)
    best.equations = fitted.equations.best
    found, alone = (effect_table(one, {"north": 1.0}, steps=3) for one in (fitted, best))
    rows = (found["node"] != "north") & ((found["step"] > 1) | ((found["step"] > 0) & (found["node"] == "east")))
    widths = [(one["high"] - one["low"])[rows].to_numpy() for one in (found, alone)]
    assert (widths[0] > widths[1]).all()
    once = (found["step"] == 1) & (found["node"] == "east")
    assert float((found["response"] / alone["response"])[once].iloc[0]) == pytest.approx(0.6, abs=0.08)
    assert "2 uncertain" in found.attrs["interval"]


def test_a_sampled_model_draws_its_uncertain_edges(model, table):
    fitted, source = copy.copy(model._ready()), model._source(table, reset=False)
    fitted.equations = None
    certain = effect_table(fitted, {"north": 1.0}, source, steps=2)
    assert certain["low"].isna().all()
    place = fitted.edges.index.find(np.array([0]), np.array([1]))
    exists = fitted.edges["exists"].copy()
    exists[place] = 0.5
    fitted.edges = fitted.edges.updated(exists=exists)
    found = effect_table(fitted, {"north": 1.0}, source, steps=2)
    east = (found["node"] == "east") & (found["step"] == 1)
    assert float(found["low"][east].iloc[0]) == pytest.approx(0, abs=1e-6)
    assert float(found["high"][east].iloc[0]) == pytest.approx(float(certain["response"][east].iloc[0]), rel=0.1)


def test_a_longer_horizon_is_refused(table, refused):
    model = LatentGraphForecaster(horizon=2, assessment=OFF).fit(table)
    refused(model.effect, {"north": 1.0}, steps=4)


def test_the_command_gives_the_table_of_the_estimator(run, model, table, capsys):
    shown = ("effect", run / "run", run / "levels.csv", "--set", "north=+1", "--steps", "3", "--json")
    assert call(*shown) == 0
    found = json.loads(capsys.readouterr().out)
    stored = load(run / "run")
    for one in (model, stored):
        expected = one.effect({"north": 1.0}, table, steps=3)
        np.testing.assert_allclose(
            [line["response"] for line in found["effects"]], expected["response"], rtol=1e-4, atol=1e-7
        )
        assert found["condition"] == expected.attrs["condition"]
        assert found["interval"] == expected.attrs["interval"]
    assert found["edges"] == stored.effect({"north": 1.0}, table, steps=3).attrs["edges"]
    without = stored.effect({"north": 1.0}, steps=3)
    assert list(without.columns) == ["step", "node", "response", "low", "high"]


def test_the_first_line_is_the_condition(run, capsys, said, tmp_path):
    assert call("effect", run / "run", "--set", "north=+1", "--steps", "4", "--out", tmp_path / "effect.csv") == 0
    lines = capsys.readouterr().out.splitlines()
    said([lines[0], next(line for line in lines if "intervals contain" in line)])
    assert lines[-1] == str(tmp_path / "effect.csv")
    assert pd.read_csv(tmp_path / "effect.csv").shape == (15, 5)
    assert call("effect", run / "run", "--set", "north=+1", "--quiet") == 0
    assert capsys.readouterr().out.split()[0] == "node"


def test_a_saved_estimator_gives_the_same_effects(model, tmp_path):
    model.save(tmp_path / "model.st")
    again = LatentGraphForecaster.load(tmp_path / "model.st")
    pd.testing.assert_frame_equal(again.effect({"east": 1.0}), model.effect({"east": 1.0}))


WRONG = {
    "no change": (),
    "no number": ("--set", "north"),
    "a word": ("--set", "north=much"),
    "an unknown node": ("--set", "nroth=+1"),
    "twice": ("--set", "north=+1", "--set", "north=+2"),
    "both": ("--set", "north=+1", "--set", "east=2"),
    "no step": ("--set", "north=+1", "--steps", "0"),
    "another shape": ("--set", "north=+1", "--shape", "ramp"),
    "a value without data": ("--set", "north=3.5"),
    "a time without data": ("--set", "north=+1", "--at", "2026-01-02"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls(name, run, wrong_call):
    wrong_call("effect", run / "run", *WRONG[name], "--quiet")


@pytest.mark.parametrize("when", ["2027-01-01", "noon"])
def test_a_time_outside_of_the_data(when, run, wrong_call):
    wrong_call("effect", run / "run", run / "levels.csv", "--set", "north=+1", "--at", when, "--quiet")


def test_refusals_in_python(model, table, refused):
    refused(model.effect, {})
    refused(model.effect, {"north": np.nan})
    refused(model.effect, {"north": 1.0}, steps=2.5)
    refused(model.effect, {"north": 1.0}, level=90)
    refused(model.effect, {"north": 1.0}, level="a")
    refused(model.effect, "north")
    refused(model.effect, ["north"])
    refused(model.effect, {"north": 0.0})
    refused(model.effect, {"north": 1e308}, shape="step")
    refused(model.effect, {"north": 1.0}, steps=10**8)
    fitted = copy.copy(model._ready())
    fitted.equations = None
    refused(effect_table, fitted, {"north": 1.0})
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    pairs = LatentGraphRegressor(assessment=OFF).fit(x, x + 0.1 * rng.normal(size=x.shape))
    refused(effect_table, pairs._ready(), {"0": 1.0})
    two = pd.concat({"a": table, "b": table + 0.1 * rng.normal(size=table.shape)}, axis=1).swaplevel(axis=1)
    both = LatentGraphForecaster(assessment=OFF, graph=GraphOptions(evidence="none")).fit(two[:120].sort_index(axis=1))
    refused(both.effect, {"north": 1.0})


def test_an_open_direction_is_refused(refused):
    """Gaussian noise and no lagged parent: both directions within the step fit."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(400, 2))
    values[:, 1] += 0.8 * values[:, 0]
    options = GraphOptions(simultaneous=True)
    model = LatentGraphForecaster(assessment=OFF, graph=options).fit(pd.DataFrame(values, columns=["a", "b"]))
    refused(model.effect, {"a": 1.0})


def test_effects_within_the_step(table):
    """With lag 0 the other nodes respond in the row of the change, and a node that is set does not respond."""
    rng, values = np.random.default_rng(0), np.zeros((500, 2))
    for row in range(1, 500):
        values[row] = 0.4 * values[row - 1] + rng.laplace(size=2)
        values[row, 1] += 0.7 * values[row, 0]
    frame = pd.DataFrame(values, columns=["a", "b"])
    model = LatentGraphForecaster(assessment=OFF, graph=GraphOptions(simultaneous=True)).fit(frame)
    found = model.effect({"a": 1.0}, steps=2)
    first = found[found["step"] == 0].set_index("node")
    assert first.loc["a", "response"] == 1
    assert first.loc["b", "low"] < 0.7 < first.loc["b", "high"]
    assert not found[(found["step"] == 0) & (found["node"] == "b")]["response"].isna().any()
    back = model.effect({"b": 1.0}, steps=2, shape="step")
    assert back[back["node"] == "a"]["response"].abs().max() < 0.1
    np.testing.assert_allclose(back[back["node"] == "b"]["response"], 1.0, rtol=1e-12)


def test_series_with_units_of_their_own_need_data(table, refused):
    options = DataOptions(scale_by="series")
    tables = [table[:250], table[250:] * [3, 1, 1]]
    model = LatentGraphForecaster(assessment=OFF, data=options).fit(tables)
    refused(model.effect, {"north": 1.0})
    found = model.effect({"north": 1.0}, tables, steps=1)
    first, second = (part["response"].to_numpy() for _, part in found.groupby("series"))
    np.testing.assert_allclose([first[:3], second[:3]], [[1, 0, 0]] * 2, rtol=1e-12)
    np.testing.assert_allclose(second[3:5] / first[3:5], [1.0, 1 / 3], rtol=0.2)


def test_only_the_kept_columns_are_decomposed(monkeypatch):
    """The decomposition of a matrix with many rows of 0 may fail to converge."""
    generator = torch.Generator().manual_seed(0)
    factor, left_out = torch.randn(110, 220, generator=generator, dtype=torch.float64), torch.ones(110).bool()
    kept = torch.tensor([9, 68, 70, 81, 109])
    left_out[kept] = False
    covariance, seen, eigh = factor @ factor.mT / 220, [], torch.linalg.eigh
    monkeypatch.setattr(torch.linalg, "eigh", lambda matrix: (seen.append(len(matrix)), eigh(matrix))[1])
    _, root = _without(torch.ones(110).double(), covariance, left_out)
    expected = covariance[kept][:, kept] - covariance[kept][:, left_out] @ torch.linalg.solve(
        covariance[left_out][:, left_out], covariance[left_out][:, kept]
    )
    assert seen[-1] == len(kept)
    torch.testing.assert_close((root @ root.mT)[kept][:, kept], expected)
    assert not root[left_out].any()


def test_the_table_has_responses_within_the_step():
    frame = pd.DataFrame({"step": [0, 0, 1, 1], "node": ["a", "b", "a", "b"], "response": [1.0, 0.7, 0.0, 0.0]})
    assert _responding(frame, ["a"])["node"].tolist() == ["b"]

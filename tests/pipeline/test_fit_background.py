"""Backgrounds in fits: the option, what is printed and stored, forecasts, and other options beside them."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

from commands import call
from tacit.config import FitConfig, override
from tacit.data import DAY, Category, Level, Wave
from tacit.pipeline import (
    Fitted,
    conclude,
    learn,
    path_table,
    read_new,
    read_source,
    read_table,
    resolve,
    settle_situations,
)

CPU = torch.device("cpu")
NODES = list("abcde")
ROWS = 800
HOURLY = pd.date_range("2024-01-01", periods=ROWS, freq="h", name="time")


def own_past(seed, rows=ROWS, nodes=5):
    noise = np.random.default_rng(seed).normal(size=(rows, nodes))
    values = np.zeros_like(noise)
    for row in range(1, rows):
        values[row] = 0.4 * values[row - 1] + noise[row]
    return values


def daily(size=1.5, seed=0):
    """No edges; all nodes have a daily cycle."""
    cycle = np.sin(2 * np.pi * np.arange(ROWS)[:, None] / 24 + 1.3 * np.arange(5))
    return pd.DataFrame(own_past(seed) + size * cycle, columns=NODES, index=HOURLY)


def trending():
    """No edges; all nodes have a slow curve."""
    rng = np.random.default_rng(7)
    turns, phase = rng.uniform(0.5, 1.5, 5), rng.uniform(0, 6, 5)
    curve = np.sin(2 * np.pi * np.linspace(0, 1, ROWS)[:, None] * turns + phase)
    return pd.DataFrame(own_past(1) + 3 * curve, columns=NODES, index=HOURLY)


def counts():
    """No edges; counts of all nodes are lower on weekends."""
    days = pd.date_range("2022-01-01", periods=500, freq="D", name="time")
    mean = np.exp(2.0 - 0.8 * (days.day_of_week >= 5))[:, None] * np.ones(5)
    return pd.DataFrame(np.random.default_rng(3).poisson(mean), columns=NODES, index=days)


def undated():
    return daily().reset_index(drop=True).rename_axis("time")


def plan_of(table, **sections):
    config = override(override(FitConfig(), {"assessment": {"bootstrap_replicas": 0, "controls": False}}), sections)
    config = settle_situations(config)
    return resolve(read_table(table, config.data), config, seed=0, device=CPU, command="tests")


def said(plan):
    """The line of the choices on the background."""
    (line,) = [one.sentence for one in plan.choices if one.option == "background"] or [""]
    return line


def num_listed(plan):
    return int(plan.evidence.listed(0.1).sum())


TABLES = {
    "cycle": (daily, "background = daily cycle (all nodes): edges into", {Wave}),
    "cycle without dates": (undated, "background = cycle of 2", {Wave}),
    "trend": (trending, "background = slow trend (all nodes)", {Level}),
    "weekend": (counts, "background = weekends (all nodes): edges into", {Category}),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_background_is_chosen_said_and_used(name):
    make, words, kinds = TABLES[name]
    plan = plan_of(make())
    assert said(plan).startswith(words)
    assert kinds <= {type(term) for term in plan.dataset.preparation.background.terms}
    assert num_listed(plan) == 0
    assert any(note.startswith("Edges were tested beside the background") for note in plan.evidence.notes)


@pytest.mark.parametrize("name", ["cycle", "trend"])
def test_without_a_background_false_edges_are_listed(name):
    plan = plan_of(TABLES[name][0](), data={"background": "none"})
    assert said(plan) == ""
    assert not plan.dataset.preparation.background.terms
    assert num_listed(plan) > 0


BESIDE = {
    "within a step": {"graph": {"simultaneous": True}},
    "three ahead": {"data": {"horizon": 3}},
    "symmetric": {"graph": {"symmetric": True}},
    "regimes": {"graph": {"regimes": 2}},
    "by hour": {"data": {"calendar": ["hour"]}, "graph": {"depends_on": ["hour"]}},
    "calendar": {"data": {"calendar": ["hour"]}},
}


@pytest.mark.parametrize("name", ["cycle", "trend"])
@pytest.mark.parametrize("option", BESIDE)
def test_other_options_beside_a_background(name, option):
    plan = plan_of(TABLES[name][0](), **BESIDE[option])
    assert num_listed(plan) == 0
    if option == "within a step":
        assert float(plan.evidence.within.either.max()) < 0.5
    hour_is_given = option in ("by hour", "calendar")
    assert ("daily cycle" in said(plan)) == (name == "cycle" and not hour_is_given)
    assert ("slow trend" in said(plan)) == (name == "trend")


def switching(by, rows=1000, seed=0):
    """Daily cycles of all nodes and two edges: a -> b by the season and c -> d, or a -> c and b -> c by turns."""
    rng, season = np.random.default_rng(seed), np.where(np.arange(rows) // 20 % 2 == 0, "dry", "wet")
    turn = np.repeat(rng.random(rows // 25) < 0.5, 25)
    cycle, values = daily_cycle(np.arange(rows)), np.zeros((rows, 5))
    for row in range(1, rows):
        before = values[row - 1]
        values[row] = 0.3 * before + cycle[row] + 0.7 * rng.normal(size=5)
        if by == "season":
            values[row, 1] += 0.8 * (rng.random() < (0.9 if season[row - 1] == "wet" else 0.1)) * before[0]
            values[row, 3] += 0.6 * before[2]
        else:
            values[row, 2] += 0.9 * (rng.random(2) < (0.95, 0.05)[:: 1 if turn[row] else -1]) @ before[:2]
    table = pd.DataFrame(values, columns=NODES, index=pd.date_range("2024-01-01", periods=rows, freq="h", name="time"))
    return table.assign(season=season) if by == "season" else table


def daily_cycle(rows):
    return np.sin(2 * np.pi * rows[:, None] / 24 + 1.3 * np.arange(5))


def listed_by(fitted):
    edges = fitted.run.edges
    return set(zip(*edges.at(edges["exists"] > 0.5).index.ends(), strict=True))


def test_edges_by_situation_beside_a_cycle():
    table, controls = switching("season"), {"assessment": {"bootstrap_replicas": 0, "controls": True}}
    fitted = conclude(learn(plan_of(table, graph={"depends_on": ["season"]}, **controls)))
    assert listed_by(fitted) == {("a", "b"), ("c", "d")}
    situations = fitted.record.situations
    assert [(one["source"], one["target"]) for one in situations["tests"] if one["varies"]] == [(0, 1)]
    dry, wet = fitted.edges.by.probability
    assert dry < 0.3
    assert wet > 0.7
    used = fitted.preparation.background.size
    assert used == 2  # a sine and a cosine
    assert fitted.model.predictor.own[1, -used:].abs().max() > 0.05  # of the node that was fitted again
    scores = fitted.record.references
    assert scores["full graph"]["crps"] == pytest.approx(scores["ridge regression"]["crps"], rel=0.01)
    assert fitted.record.metrics["crps"] < 0.99 * scores["constant graph"]["crps"]


def test_regimes_beside_a_cycle():
    table = switching("turns")
    fitted = conclude(learn(plan_of(table, graph={"regimes": 2})))
    assert listed_by(fitted) == {("a", "c"), ("b", "c")}
    assert fitted.record.situations["kind"] == "mixture"
    probs = np.reshape(fitted.edges.by.probability, (2, 2))  # (edge, regime)
    assert (np.diff(probs[0]) * np.diff(probs[1]) < 0).all()
    assert fitted.preparation.background.size >= 2
    found = path_table(fitted, read_table(table, fitted.config.data), 60)
    mean = found["mean"].to_numpy().reshape(60, 5)  # (step, node)
    expected, value = np.zeros((60, 5)), table.to_numpy()[-1]
    for step, forced in enumerate(daily_cycle(len(table) + np.arange(60))):
        value = 0.3 * value + forced
        expected[step] = value
    assert np.abs(mean - expected)[10:, [0, 1, 3, 4]].max() < 0.35


READERS = {"feedforward": True, "recurrent": True, "convolution": False}


@pytest.mark.parametrize("kind", READERS)
def test_which_networks_use_the_background(kind):
    plan = plan_of(daily(), predictor={"kind": kind}, graph={"evidence": "regression"})
    assert said(plan).endswith("the network does not") != READERS[kind]
    assert bool(plan.dataset.preparation.background.terms) == READERS[kind]
    assert num_listed(plan) == 0


def test_a_network_forecasts_a_cycle_of_each_node(tmp_path):
    settings = {"predictor": {"kind": "feedforward"}, "training": {"epochs": 12, "compile": False}}
    fits = {}
    for background in ("auto", "none"):
        plan = plan_of(daily(size=2.0), data={"background": background}, assessment={"enabled": False}, **settings)
        fits[background] = conclude(learn(plan))
    auto, none = (fits[name].record.metrics["crps"] for name in ("auto", "none"))
    assert auto < 0.95 * none
    fits["auto"].write(tmp_path / "run")
    stored = Fitted.read(tmp_path / "run", CPU).model.predictor.background
    assert torch.equal(stored, fits["auto"].model.predictor.background)
    assert stored.abs().amax((1, 2)).min() > 0.1


def test_edges_that_rules_require_of_some_nodes(tmp_path):
    (tmp_path / "rules.csv").write_text("source,target,kind\na,b,required\n")
    plan = plan_of(daily(), graph={"edges": str(tmp_path / "rules.csv")})
    assert "daily cycle (all nodes)" in said(plan)


def test_terms_that_are_named():
    plan = plan_of(daily(), data={"background": "daily,trend"})
    assert said(plan) == "background = slow trend (all nodes), daily cycle (all nodes): set by the option"
    assert {type(term) for term in plan.dataset.preparation.background.terms} == {Wave, Level}
    assert said(plan_of(daily(), data={"background": ["shift"]})) == "background = none: no node needs a shift"
    plain = pd.DataFrame(own_past(5), columns=NODES, index=HOURLY)
    assert said(plan_of(plain)) == "background = none: no node needs a trend, a shift or a cycle"
    assert said(plan_of(plain[:40])).startswith("background = none: fewer than 100 rows")


REFUSED = {
    "misspelt": (daily, "dayly"),
    "auto and a name": (daily, "auto,daily"),
    "twice": (daily, "daily,daily"),
    "a year in five weeks": (daily, "yearly"),
    "an hour in hourly rows": (daily, "hourly"),
    "a day without dates": (undated, "daily"),
    "a weekend without dates": (undated, "daily,weekend"),
    "a trend in 40 rows": (lambda: daily()[:40], "trend"),
    "a trend in 90 rows": (lambda: daily()[:90], "trend"),
    "a shift in 90 rows": (lambda: daily()[:90], "shift"),
    "a cycle in 90 rows": (lambda: daily()[:90], "cycle"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_background_that_a_table_cannot_carry_is_refused(name, tmp_path, refused, wrong_call):
    make, background = REFUSED[name]
    make().to_csv(tmp_path / "table.csv")
    options = ("--background", background, "--out", tmp_path / "run", "--quick")
    line = wrong_call("fit", tmp_path / "table.csv", *options)
    assert "background" in line
    assert not (tmp_path / "run").exists()
    refused(plan_of, make(), data={"background": background})


@pytest.mark.parametrize("evidence", ["none", "model"])
def test_a_named_background_requires_regressions(evidence, refused):
    refused(plan_of, daily(), data={"background": "daily"}, graph={"evidence": evidence})


def test_pairs_without_time_have_no_background(folder, refused):
    config = override(FitConfig(), {"assessment": {"bootstrap_replicas": 0, "controls": False}})
    pairs = read_source(str(folder / "pairs.npz"), config.data)
    assert said(resolve(pairs, config, seed=0, device=CPU, command="tests")) == ""
    asked = override(config, {"data": {"background": "trend"}})
    refused(resolve, pairs, asked, seed=0, device=CPU, command="tests")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a run on a table with a large daily cycle, with its output."""
    folder = tmp_path_factory.mktemp("daily")
    daily(size=6.0).to_csv(folder / "daily.csv")
    assert call("fit", folder / "daily.csv", "--out", folder / "run", "--quick", "--quiet") == 0
    return folder


def test_cycles_go_on_in_forecasts(finished):
    fitted = Fitted.read(finished / "run", CPU)
    assert fitted.preparation.background.terms == (Wave(DAY, 1),)
    assert fitted.preparation.background.used.all()
    found = path_table(fitted, read_new(fitted, [str(finished / "daily.csv")]), 60)
    mean = found["mean"].to_numpy().reshape(60, 5)  # (step, node)
    coming = np.arange(ROWS, ROWS + 60)[:, None]
    cycle = 6.0 * np.sin(2 * np.pi * coming / 24 + 1.3 * np.arange(5))
    assert np.abs(mean - cycle)[10:].max() < 0.6  # the own past is forgotten after some steps


def test_the_record_names_the_background(finished):
    record = json.loads((finished / "run" / "record.json").read_text())
    assert [one for one in record["choices"] if one["value"] == ["daily cycle (all nodes)"]]


def test_a_check_names_the_background(finished, capsys):
    for options, expected in ((), ["daily cycle (all nodes)"]), (("--background", "none"), []):
        assert call("check", finished / "daily.csv", "--json", *options) == 0
        assert json.loads(capsys.readouterr().out)["background"] == expected

"""Edges that depend on the situation: from a table to a run, forecasts by the situation of each row, and messages."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

from gated_tables import gated, options
from tacit.config import DataOptions
from tacit.edges import VARIES
from tacit.graph import ConditionalBernoulliGraph, Context
from tacit.pipeline import (
    Dataset,
    Fitted,
    about_depends_on,
    conclude,
    evaluate,
    forecast_table,
    learn,
    new_pairs,
    path_table,
    read_new,
    read_source,
    read_table,
    require_constant,
    resolve,
    settle_situations,
)
from tacit.pipeline.situations import context_variables
from tacit.records import read_run

CPU = torch.device("cpu")


def plan_of(table, **sections):
    config = settle_situations(options(**sections))
    with about_depends_on(config):
        source = read_table(table, config.data)
    return resolve(source, config, seed=0, device=CPU, command="tests")


def fit(table, **sections):
    return conclude(learn(plan_of(table, **sections)))


def variables_of(table, *names, **data):
    config = settle_situations(options(graph={"depends_on": names}, data={"window": 2, **data}))
    source = read_table(table, config.data)
    config = source.settled(config)
    return context_variables(Dataset.prepare(source, config.data, seed=0, scaled=True), config)


@pytest.fixture(scope="module")
def table():
    return gated()


@pytest.fixture(scope="module")
def by_hour(table, tmp_path_factory):
    """A fit, and the same read from its directory."""
    fitted = fit(table.drop(columns=["season", "level"]), graph={"depends_on": ["hour"]})
    directory = tmp_path_factory.mktemp("hour") / "run"
    fitted.write(directory)
    return fitted, directory


@pytest.fixture(scope="module")
def by_season(tmp_path_factory):
    """A table, and the directory of a run whose edges depend on its words."""
    table = gated(by="season").drop(columns="level")
    directory = tmp_path_factory.mktemp("season") / "run"
    fit(table, graph={"depends_on": ["season"]}).write(directory)
    return table, directory


@pytest.fixture(scope="module")
def several():
    parts = [
        gated(500, seed=seed, constant=chance).assign(site=site)
        for seed, (site, chance) in enumerate({"A": 0.9, "B": 0.5, "C": 0.1}.items())
    ]
    return pd.concat(parts).drop(columns=["season", "level"])


@pytest.fixture(scope="module")
def by_series(several):
    return fit(several, data={"series": "site", "window": 1}, graph={"depends_on": ["series"]})


def test_edges_that_vary_are_found_and_written(by_hour):
    fitted, directory = by_hour
    run = read_run(directory)
    varies = run.edges.matrix("varies")
    assert np.argwhere(varies == "yes").tolist() == [[1, 0]]  # target, source
    assert np.argwhere(varies == "no").tolist() == [[2, 1]]
    rows = run.edges.by
    assert rows is not None
    assert rows.by == ["hour"] * 24
    assert rows.value == [str(hour) for hour in range(24)]
    assert max(range(24), key=lambda hour: rows.probability[hour]) in range(11, 18)
    assert all(low < value < high for low, value, high in zip(rows.low, rows.probability, rows.high, strict=True))
    found = run.record.situations
    assert (found["kind"], found["tested"], found["varying"]) == ("conditional", 2, 1)
    assert found["variables"] == [{"name": "hour", "kind": "periodic", "values": rows.value}]
    assert any("river -> lake acts with probability" in line for line in run.record.answer)
    assert run.record.references["constant graph"]["gain"] > 0
    assert any("lower than with a constant graph" in line for line in run.record.answer)
    assert fitted.config.data.calendar == ("hour",)


def test_a_stored_run_forecasts_as_the_fit_did(by_hour, table):
    fitted, directory = by_hour
    read = Fitted.read(directory, CPU)
    assert isinstance(read.graph, ConditionalBernoulliGraph)
    nodes = table.drop(columns=["season", "level"])
    tables = [forecast_table(one, read_table(nodes, one.config.data, piece=True)) for one in (fitted, read)]
    pd.testing.assert_frame_equal(*tables)
    scores = [evaluate(one, read_table(nodes, one.config.data, piece=True))["metrics"] for one in (fitted, read)]
    assert scores[0] == scores[1]
    text, tensors = fitted.to_parts()
    copied = Fitted.from_parts(json.loads(json.dumps(text)), tensors, CPU)
    assert torch.equal(copied.graph.edge_probs, fitted.graph.edge_probs)
    assert copied.edges.by == fitted.edges.by


def test_an_altered_table_of_situations_is_refused(by_hour, tmp_path, refused):
    import shutil

    copy = shutil.copytree(by_hour[1], tmp_path / "copy")
    (copy / "edges_by.csv").write_text((copy / "edges_by.csv").read_text() + "\n")
    refused(read_run, copy)


def test_a_forecast_uses_the_hour_of_its_newest_row(by_hour, table):
    """The same values at other hours have other forecasts of lake, which reads the edge that varies."""
    fitted, _ = by_hour
    nodes = table.drop(columns=["season", "level"])
    later = nodes.assign(time=nodes.time + pd.Timedelta(hours=9))
    means = [
        forecast_table(fitted, read_table(one, fitted.config.data, piece=True)).pivot(
            index="time", columns="node", values="q97.5"
        )
        for one in (nodes, later)
    ]
    differences = np.abs(means[0].to_numpy() - means[1].to_numpy()).mean(0)
    by_node = dict(zip(means[0].columns, differences, strict=True))
    assert by_node["lake"] > 5 * by_node["sea"]


def test_the_hour_moves_along_a_path(by_hour, table, monkeypatch):
    fitted, _ = by_hour
    (hour,) = fitted.graph.variables
    seen = []

    def condition(self, context):
        seen.append(hour.reading(context).mul(24).round().remainder(24).unique().tolist())
        return original(self, context)

    original = ConditionalBernoulliGraph.condition
    monkeypatch.setattr(ConditionalBernoulliGraph, "condition", condition)
    nodes = table.drop(columns=["season", "level"])
    path_table(fitted, read_table(nodes, fitted.config.data, piece=True), 4, origin="2024-03-05 21:00")
    assert seen == [[21.0], [22.0], [23.0], [0.0]]


def test_a_constant_edge_leaves_the_constant_fit():
    nodes = gated(constant=0.5).drop(columns=["season", "level"])
    asked = learn(plan_of(nodes, graph={"depends_on": ["hour"]}))
    plain = learn(plan_of(nodes, data={"window": 1, "calendar": ["hour"]}))
    fitted = conclude(asked)
    assert asked.model is asked.result.model
    assert torch.equal(fitted.graph.edge_probs, conclude(plain).graph.edge_probs)
    assert fitted.record.situations["kind"] == "constant"
    assert fitted.edges.by is None
    assert set(np.unique(fitted.edges["varies"])) <= {VARIES.index(""), VARIES.index("no")}
    assert any(line.startswith("No edge depends on hour: 2 edges were tested") for line in fitted.record.answer)


def test_errors_of_the_average_replace_those_of_the_constant_edge():
    """The interval of an edge that varies is around the average that the table has."""
    nodes = gated(by="season").drop(columns=["level"])
    graph = {"depends_on": ["season"]}
    fitted = fit(nodes, graph=graph, assessment={"enabled": True, "controls": False, "bootstrap_replicas": 8})
    place = 1, 0  # lake reads river
    assert fitted.edges.matrix("varies")[place] == "yes"
    average, error = float(fitted.graph.edge_probs.detach()[place]), fitted.edges.matrix("std_error")[place]
    assert fitted.edges.matrix("low")[place] < average < fitted.edges.matrix("high")[place]
    assert 0 < error < 0.05
    by = dict(zip(fitted.edges.by.value, fitted.edges.by.probability, strict=True))
    assert by["wet"] > 0.8 > 0.2 > by["dry"]


def test_series_are_found_by_their_names(by_series, several, refused):
    """New data has its own numbers of series: a forecast does not depend on which others are there."""
    by = dict(zip(by_series.edges.by.value, by_series.edges.by.probability, strict=True))
    assert by["A"] > 0.75 > by["B"] > 0.25 > by["C"]
    data, completed = by_series.config.data, by_series.preparation.completed
    assert data.cut_series
    parts = several, several[several.site == "C"], several[several.site == "C"].assign(site="D")
    whole, last, new = (completed(read_table(one, data, piece=True)) for one in parts)
    tables = [forecast_table(by_series, one) for one in (whole, last)]
    pd.testing.assert_frame_equal(tables[0][tables[0].series == "C"].reset_index(drop=True), tables[1])
    assert set(new_pairs(by_series, last).pairs.series.tolist()) == {2}
    paths = [path_table(by_series, one, 3) for one in (whole, last)]
    pd.testing.assert_frame_equal(paths[0][paths[0].series == "C"].reset_index(drop=True), paths[1])
    scores = [evaluate(by_series, one)["by_series"]["crps"] for one in (whole, last)]
    assert scores[0]["C"] == pytest.approx(scores[1]["C"], rel=0.02)  # graphs are drawn anew
    refused(forecast_table, by_series, new)


def test_labels_are_in_the_units_of_the_data(table):
    hour, season, level, time, weekday = variables_of(table, "hour", "season", "level", "time", "weekday")
    assert hour.labels == tuple(str(number) for number in range(24))
    assert season.labels == ("dry", "wet")
    train = table.level[: round(0.7 * len(table))]
    assert float(level.labels[0]) == pytest.approx(train.min(), rel=0.01)
    assert float(level.labels[4]) == pytest.approx(train.median(), rel=0.01)
    assert time.labels[0].startswith("2024-03-01")
    assert pd.Timestamp(time.labels[-1]) < table.time.iloc[-1]
    assert weekday.labels[0] == "Monday"


def test_only_hours_that_occur_are_shown(table):
    (hour,) = variables_of(table[table.time.dt.hour % 6 == 0], "hour")
    assert hour.labels == ("0", "6", "12", "18")


def test_readings_are_those_of_the_table(table):
    """What a graph reads of a pair is what the newest input row of the table has."""
    config = settle_situations(options(graph={"depends_on": ["hour", "season", "level", "source"]}, data={"window": 2}))
    source = read_table(table, config.data)
    config = source.settled(config)
    dataset = Dataset.prepare(source, config.data, seed=0, scaled=True)
    hour, season, level, own = context_variables(dataset, config)
    context = Context.of(dataset.split.train)
    rows = table.iloc[1 : 1 + len(context.inputs)]  # windows of two rows end here
    assert np.allclose(hour.reading(context) * 24 % 24, rows.time.dt.hour, atol=1e-3)
    assert season.reading(context).tolist() == (rows.season == "wet").astype(float).tolist()
    assert np.allclose(level.reading(context), rows.level, atol=1e-3)
    scaled = (rows.river - dataset.preparation.scaling.mean[0, 0]) / dataset.preparation.scaling.deviation[0, 0]
    assert np.allclose(own.reading(context)[:, 0], scaled, atol=1e-4)


@pytest.mark.parametrize(
    ("names", "change"),
    [
        (["season"], lambda t: t.assign(season="dry")),
        (["level"], lambda t: t.assign(level=4.0)),
        (["hour"], lambda t: t.assign(time=range(len(t)))),
        (["month"], lambda t: t[:400]),
        (["season"], lambda t: t.assign(season=np.where(np.arange(len(t)) > 1000, "flood", t.season))),
        (["season"], lambda t: t.assign(season=np.where(np.arange(len(t)) < 15, "flood", t.season))),
        (["series"], lambda t: t),
        (["seson"], lambda t: t),
        (["weekdey"], lambda t: t),
        (["hour", "level"], lambda t: t[:150]),
    ],
)
def test_a_variable_that_cannot_be_is_refused(table, names, change, refused):
    refused(plan_of, change(table), graph={"depends_on": names})


@pytest.mark.parametrize(
    "sections",
    [
        {"graph": {"depends_on": ["hour"], "regimes": 2}},
        {"graph": {"depends_on": ["hour"], "simultaneous": True}},
        {"graph": {"regimes": "auto", "simultaneous": True}},
        {"graph": {"depends_on": ["hour", "hour"]}},
        {"graph": {"blocks": "all"}},
        {"graph": {"regimes": 2, "symmetric": True}},
        {"graph": {"depends_on": ["source"]}, "predictor": {"kind": "feedforward"}},
        {"graph": {"depends_on": ["hour"]}, "model": {"link": "sine_squared"}},
    ],
)
def test_options_that_do_not_go_together_are_refused(sections, refused):
    refused(settle_situations, options(**sections))


def test_series_without_names_cannot_be_found_again(several, refused):
    parts = [part.drop(columns="site") for _, part in several.groupby("site")]
    refused(plan_of, parts, graph={"depends_on": ["series"]})


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.drop(columns="season"),
        lambda t: t.assign(season=t.season.where(t.index != 7)),
        lambda t: t.assign(season=t.season.where(t.index != 7, "flood")),
    ],
)
def test_a_situation_that_is_missing_or_new_in_new_data_is_refused(change, by_season, tmp_path, wrong_call):
    table, run = by_season
    change(table).to_csv(tmp_path / "new.csv", index=False)
    wrong_call("predict", run, tmp_path / "new.csv", "--out", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_the_command_refuses_before_it_writes(table, tmp_path, wrong_call):
    file = tmp_path / "gates.csv"
    table.to_csv(file, index=False)
    for words in (
        ["--depends-on", "sesaon"],
        ["--regimes", "9"],
        ["--regimes", "two"],
        ["--depends-on", "hour", "--regimes", "2"],
    ):
        wrong_call("fit", file, "--out", tmp_path / "run", *words)
        assert not (tmp_path / "run").exists()


def test_pairs_have_covariates_in_files_and_in_memory(tmp_path, refused):
    """The same pairs from an .npz file and from a table give the same answer; new pairs need the covariate."""
    rng = np.random.default_rng(0)
    x, gate = rng.normal(size=(900, 2)), rng.choice(["open", "shut"], size=900)
    acts = rng.random(900) < np.where(gate == "open", 0.9, 0.2)
    y = 0.2 * rng.normal(size=(900, 2)) + np.stack([0.9 * acts * x[:, 1], np.zeros(900)], 1)
    np.savez(tmp_path / "pairs.npz", x=x, y=y, nodes=["a", "b"], covariates=gate[:, None], covariate_names=["gate"])
    columns = {f"{side}:{node}": values[:, at] for side, values in (("x", x), ("y", y)) for at, node in enumerate("ab")}
    pd.DataFrame({**columns, "gate": gate}).to_csv(tmp_path / "pairs.csv", index=False, float_format="%.17g")
    fitted = []
    for name in ("pairs.npz", "pairs.csv"):
        config = settle_situations(override_pairs())
        plan = resolve(read_source(str(tmp_path / name), config.data), config, seed=0, device=CPU, command="tests")
        fitted.append(conclude(learn(plan)))
    assert fitted[0].edges.by == fitted[1].edges.by
    by = dict(zip(fitted[0].edges.by.value, fitted[0].edges.by.probability, strict=True))
    assert by["open"] > 0.8 > 0.3 > by["shut"]
    fitted[1].write(tmp_path / "run")
    read = Fitted.read(tmp_path / "run", CPU)
    source = read_new(read, [str(tmp_path / "pairs.csv")])
    pd.testing.assert_frame_equal(forecast_table(fitted[1], source), forecast_table(read, source))
    pd.DataFrame(columns).to_csv(tmp_path / "without.csv", index=False)
    refused(read_new, read, [str(tmp_path / "without.csv")])
    unused = override_pairs(names=[]).model_copy(update={"data": DataOptions(covariates=["gate"])})
    source = read_source(str(tmp_path / "pairs.npz"), unused.data)
    refused(resolve, source, unused, seed=0, device=CPU, command="tests")
    config = settle_situations(override_pairs(names=["hour"]))
    source = read_source(str(tmp_path / "pairs.npz"), override_pairs(names=[]).data)
    refused(resolve, source, config, seed=0, device=CPU, command="tests")


def override_pairs(names=("gate",)):
    """Choices for pairs, which have no window."""
    return options(graph={"depends_on": list(names)}, data={"window": None})


def test_later_assessments_refuse_edges_that_depend_on_the_situation(by_hour, refused):
    refused(require_constant, by_hour[0], "identify")

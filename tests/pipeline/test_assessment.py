"""How far a fit of a person's data can be trusted, as the job finds out and says it."""

import csv
import json
from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from commands import call
from own_files import NODES, learn, quick, series
from tacit.assessment.identification import CERTAIN, Representation
from tacit.cli.answers import print_fit
from tacit.config import AssessmentOptions
from tacit.edges import EdgeTable
from tacit.errors import TrainingError
from tacit.local import Difference
from tacit.pipeline import Fitted, assessment, comparisons, fitting, run_fit, std_errors
from tacit.pipeline.assessment import widened
from tacit.pipeline.preparation import block_length
from tacit.pipeline.state import Fit, as_done
from tacit.records import read_run
from tacit.training import FitSettings
from tacit.words import FindingKind


@pytest.fixture(scope="module")
def whole(folder, tmp_path_factory):
    """A run with everything that can be found out."""
    settings = {"bootstrap_replicas": 6, "controls": True}
    return learn(folder / "wide.csv", tmp_path_factory.mktemp("whole") / "run", assessment=settings)[0]


def test_edges_carry_errors_intervals_flags_and_the_bagged_estimate(whole):
    with (whole.directory / "edges.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(NODES) ** 2
    for row in rows:
        if row["source"] == row["target"]:  # no edge is learned there
            assert row["identifiable"] == ""
            assert float(row["std_error"]) == 0
        else:
            low, high, bagged = (float(row[name]) for name in ("low", "high", "bagged"))
            assert 0 <= low <= bagged <= high <= 1
            assert float(row["std_error"]) > 0
            assert row["identifiable"] in ("yes", "no")


def test_the_answer_is_the_mean_over_replicas_unless_it_predicts_worse(whole):
    run = read_run(whole.directory)
    adopted = run.record.uncertainty["adopted"]
    same = np.allclose(run.edges.matrix("probability"), run.edges.matrix("bagged"), atol=1e-5)
    assert same == bool(adopted)
    said = "the estimate is the mean over them" if adopted else "the estimate is the fit"
    assert any(said in one.sentence for one in run.record.findings)


def test_controls_stand_beside_the_references(whole):
    assert {"the last value", "ridge regression", "no graph", "full graph"} == set(whole.run.record.references)
    record = whole.run.record
    for name in ("no graph", "full graph", "ridge regression"):
        assert -10 < record.references[name]["gain"] < 1
        assert record.references[name]["gain_std_error"] > 0
    assert set(record.node_gains) == set(NODES)
    assert "gain" not in record.references["the last value"]


def test_gains_do_not_depend_on_units(folder, tmp_path, whole):
    """The third node is measured in units a hundred times as small: on scaled errors that changes nothing."""
    table = pd.read_csv(folder / "wide.csv")
    table["south"] *= 1000
    table.to_csv(tmp_path / "other.csv", index=False)
    settings = {"bootstrap_replicas": 0, "controls": True}
    gains = [
        learn(source, tmp_path / name, assessment=settings)[0].run.record.references["no graph"]["gain"]
        for source, name in ((folder / "wide.csv", "a"), (tmp_path / "other.csv", "b"))
    ]
    assert gains[0] == pytest.approx(gains[1], abs=1e-3)


def test_the_test_part_is_scored_once_and_alike_with_controls_and_without(folder, tmp_path, monkeypatch):
    calls = []
    for module in (comparisons, fitting):
        score = module.forecast_scores
        monkeypatch.setattr(module, "forecast_scores", lambda *g, s=score, **m: calls.append(1) or s(*g, **m))
    runs = [
        learn(folder / "wide.csv", tmp_path / str(wanted), assessment={"bootstrap_replicas": 0, "controls": wanted})[
            0
        ].run.record
        for wanted in (False, True)
    ]
    assert len(calls) == 1 + 3  # the model; the model and two controls
    assert runs[0].metrics == runs[1].metrics


def test_evaluate_repeats_the_verdict_and_tests_new_data(whole, folder, capsys):
    assert call("evaluate", whole.directory, "--json") == 0
    stored = json.loads(capsys.readouterr().out)
    assert stored["findings"] == [one.sentence for one in whole.run.record.findings]
    assert stored["goodness"]["fits"] in (True, False)
    assert call("evaluate", whole.directory, folder / "wide.csv") == 0
    printed = capsys.readouterr().out
    assert "fit" in printed.split("interval\n")[1]


def test_one_new_pair_is_too_few_for_a_test(whole, folder, tmp_path, capsys):
    window = read_run(whole.directory).record.config["data"]["window"]
    pd.read_csv(folder / "wide.csv").head(window + 1).to_csv(tmp_path / "few.csv", index=False)
    assert call("evaluate", whole.directory, tmp_path / "few.csv") == 0
    assert "too few for a fit test" in capsys.readouterr().out


def test_stopped_meanwhile_the_fit_is_kept(folder, tmp_path, monkeypatch):
    def stopped(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(assessment, "goodness_of_fit", stopped)
    job, _ = learn(folder / "wide.csv", tmp_path / "run")
    assert not job.complete
    run = read_run(tmp_path / "run")
    assert "identifiable" in run.edges  # was found before
    assert run.record.goodness == {}


@pytest.mark.parametrize("stage", ["controls", "the simplest forecasts", "the page"])
def test_stopped_in_a_late_stage_the_run_is_written_and_no_page_is_drawn(stage, folder, tmp_path, monkeypatch, capsys):
    def stopped(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "STOPPED_VALUES", 8)
    if stage == "controls":
        monkeypatch.setattr(assessment, "graph_controls", stopped)
    elif stage == "the page":
        monkeypatch.setattr("tacit.report.draw_run", stopped)
    else:
        real = fitting.references
        monkeypatch.setattr(
            fitting, "references", lambda *given, ridge: (stopped if ridge else real)(*given, ridge=ridge)
        )
    controls = {"bootstrap_replicas": 0, "controls": stage == "controls"}
    source = folder / "wide.csv"
    job = run_fit(str(source), quick(source, assessment=controls), tmp_path / "run", device=torch.device("cpu"))
    assert job.complete is (stage == "the page")
    assert job.report is None
    run = read_run(tmp_path / "run")
    assert not (tmp_path / "run" / "report.html").exists()
    few = "the run was stopped: the scores use 2 of"
    assert any(line.startswith(few) for line in run.record.warnings) is (stage != "the page")
    print_fit(job, 1.0)
    assert f"tacit report {tmp_path / 'run'}" in capsys.readouterr().out.replace("\n", "")
    monkeypatch.undo()
    assert call("report", tmp_path / "run") == 0
    assert (tmp_path / "run" / "report.html").exists()


def test_a_stage_that_fails_says_so_and_the_fit_is_kept(folder, tmp_path, monkeypatch):
    def fails(*arguments, **options):
        raise TrainingError("the loss became inf at epoch 1, step 1 (replica 0, seed 0); lower the learning rate")

    monkeypatch.setattr(assessment, "graph_controls", fails)
    monkeypatch.setattr(std_errors, "bootstrap", fails)
    job, _ = learn(folder / "wide.csv", tmp_path / "run", assessment={"bootstrap_replicas": 4, "controls": True})
    assert job.complete
    said = [one.values for one in job.run.record.findings if one.kind == FindingKind.NOT_COMPUTED]
    assert [one["stage"] for one in said] == ["standard errors", "controls"]
    assert job.run.record.goodness["fits"] in (True, False)


@pytest.mark.parametrize(
    "folder_name", ["tacit.assessment.fit_tests.controls", "tacit.assessment.identification.representations"]
)
def test_stopped_in_a_further_training_the_run_is_not_complete(folder_name, folder, tmp_path, monkeypatch):
    inner = import_module(folder_name)
    train = inner.fit
    monkeypatch.setattr(inner, "fit", lambda *given, **more: replace(train(*given, **more), interrupted=True))
    job, _ = learn(folder / "wide.csv", tmp_path / "run", assessment={"bootstrap_replicas": 0, "controls": True})
    assert not job.complete
    assert "no graph" not in job.run.record.references


def test_intervals_are_widened_to_hold_an_equivalent_graph():
    edges = EdgeTable.of_matrices("ab", low=[[0.0, 0.7], [0.1, 0.0]], high=[[0.0, 0.8], [0.2, 0.0]])
    certain = torch.tensor([[0.0, 1.0], [0.0, 0.0]])
    edges, findings = widened(edges, [Representation(CERTAIN, certain, {}, Difference(0.0, 1.0), 0.1)])
    assert np.allclose(edges.matrix("low"), [[0.0, 0.7], [0.0, 0.0]])
    assert np.allclose(edges.matrix("high"), [[0.0, 1.0], [0.2, 0.0]])
    assert [one.kind for one in findings[-2:]] == [FindingKind.RANKING, FindingKind.WIDENED]


def test_blocks_reach_over_window_and_horizon_in_a_series_only(certain):
    preparation = Fitted.read(certain[0].directory, torch.device("cpu")).preparation
    assert block_length(AssessmentOptions(), preparation, 1000) == 10  # n^(1/3)
    assert block_length(AssessmentOptions(), preparation, 8) == preparation.windows.window + preparation.windows.horizon
    assert block_length(AssessmentOptions(block=7), preparation, 1000) == 7


def test_settings_as_done():
    settings = as_done(FitSettings(epochs=50, halve_after=(5, 10), patience=3), 8)
    assert (settings.epochs, settings.halve_after, settings.patience) == (8, (5,), None)


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"bootstrap_replicas": 2}, 120),
        ({"bootstrap_replicas": 8, "block": 40}, 120),
        ({"bootstrap_replicas": 8}, 26),
        ({"bootstrap_replicas": None, "block": 40}, 120),
        ({"bootstrap_replicas": 0, "block": 3}, 120),
    ],
)
def test_bad_input_is_refused_before_any_work(options, rows, tmp_path, refused):
    table = pd.DataFrame(series(rows), columns=NODES).assign(time=pd.date_range("2024-01-01", periods=rows, freq="h"))
    table.to_csv(tmp_path / "data.csv", index=False)
    refused(learn, tmp_path / "data.csv", tmp_path / "run", assessment=options)
    assert not (tmp_path / "run").exists()


def test_standard_errors_are_left_out_by_themselves_where_data_is_short(tmp_path):
    table = pd.DataFrame(series(26), columns=NODES).assign(time=pd.date_range("2024-01-01", periods=26, freq="h"))
    table.to_csv(tmp_path / "data.csv", index=False)
    job, _ = learn(tmp_path / "data.csv", tmp_path / "run", assessment={"bootstrap_replicas": None})
    assert "few pairs" in {choice.reason for choice in job.run.record.choices}
    assert "std_error" not in job.run.edges


def test_the_option_asks_for_them(folder, tmp_path):
    choices = ("--window", 2, "--set", "training.epochs=1", "--set", "training.compile=false")
    fewer = ("--set", "model.num_graphs=4", "--set", "training.replicas=1", "--set", "assessment.controls=false")
    assert (
        call("fit", folder / "wide.csv", *choices, *fewer, "--std-errors", 4, "--out", tmp_path / "run", "--quiet") == 0
    )
    assert "std_error" in read_run(tmp_path / "run").edges


def test_edges_that_were_chosen_first_act_always_or_at_times(folder, tmp_path, monkeypatch):
    """With a choice of edges, mean and variance of the targets tell how often they act; no replica is trained."""
    keep_all = torch.ones(len(NODES), len(NODES), dtype=torch.bool)

    def never(*arguments, **options):
        raise AssertionError("a replica was trained")

    monkeypatch.setattr(Fit, "kept", property(lambda _: lambda rows: keep_all.repeat(len(rows), 1, 1)))
    monkeypatch.setattr(std_errors, "bootstrap", never)
    settings = {"bootstrap_replicas": 6, "controls": False}
    job, _ = learn(folder / "wide.csv", tmp_path / "run", assessment=settings)
    run = read_run(job.directory)
    probs, low, high = (
        np.array(part) for part in (run.edges.matrix("probability"), run.edges.matrix("low"), run.edges.matrix("high"))
    )
    assert ((low <= probs) & (probs <= high)).all()
    assert run.record.uncertainty["always"] == (probs == 1).sum() > 0
    assert run.record.uncertainty["method"] == "regressions"
    again = Fitted.read(job.directory, torch.device("cpu"))
    assert np.array_equal(again.model.graph.edge_probs.detach().numpy(), probs)


class SizedPairs:
    """Pairs that only know their sizes."""

    def __init__(self, nodes):
        self.targets, self.inputs = torch.zeros(1, 1, 1).expand(4000, nodes, 1), torch.zeros(1)

    def __len__(self):
        return len(self.targets)

    def with_targets(self):
        return self


@pytest.mark.parametrize(("nodes", "tested"), [(3, 2000), (1000, 1000), (20_000, 100)])
def test_the_fit_test_of_many_nodes_takes_fewer_pairs(nodes, tested, monkeypatch):
    strides = []
    monkeypatch.setattr(assessment, "goodness_of_fit", lambda *_, stride, **__: strides.append(stride))
    assessment.fit_test(None, SizedPairs(nodes), SimpleNamespace(horizon=1, nodes=()), seed=0)
    assert 4000 // strides[0] == tested

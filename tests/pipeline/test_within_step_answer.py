"""What a user sees of effects within a step: files, list, sentences, graphs; the effects are written by hand."""

import numpy as np
import pandas as pd
import pytest
import torch

import tacit
from commands import call
from own_files import write_files
from tacit.assessment.evidence import LAGGED_PARENTS, LEARNED, TIME
from tacit.config import AssessmentOptions, FitConfig, override
from tacit.edges import OPEN, EdgeIndex, EdgeTable, schema
from tacit.graph import BernoulliGraph
from tacit.pipeline import Dataset, read_source
from tacit.pipeline.simultaneous import may_suggest, within_columns
from tacit.records import read_run
from tacit.report import strongest_edges
from tacit.sklearn import LatentGraphForecaster
from tacit.words.answer import DRIVER, answer_sentences, within_sentences
from within_step_runs import EDGES, NODES, made_within, simultaneous, use_made_within

COLUMNS = list(schema.names(schema.file_columns()))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("within")
    simultaneous().to_csv(folder / "table.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        use_made_within(patch)
        assert call("fit", folder / "table.csv", "--simultaneous", "--quick", "--quiet", "--out", folder / "run") == 0
    return folder / "run"


def test_edges_csv_has_three_columns(finished):
    table = pd.read_csv(finished / "edges.csv", keep_default_na=False)
    first = COLUMNS.index("within_step")
    assert list(table.columns) == COLUMNS
    assert tuple(COLUMNS[first : first + 3]) == ("within_step", "direction", "exists_either")
    cells = table.set_index(["source", "target"])[["within_step", "direction", "exists_either"]]
    for source, target, _, acts, how in EDGES:
        within, direction, either = cells.loc[source, target]
        assert (float(within), direction) == (pytest.approx(acts), how)
        assert float(either) == float(cells.loc[target, source]["exists_either"])
    assert cells.loc["a", "a"].tolist() == ["", "", ""]


def test_lags_begin_at_0_for_edges_within_the_step(finished):
    lags = pd.read_csv(finished / "lags.csv").set_index(["source", "target", "lag"])["effect"]
    at_0 = {key[:2] for key in lags.index if key[2] == 0}
    assert at_0 == {("a", "b"), ("b", "c"), ("c", "d")}  # those of the model; no other edge has a number there
    for source, target in at_0:
        assert abs(lags[source, target, 0]) > 5 * abs(lags[source, target, 1])
    edges = read_run(finished).edges
    lag = dict(zip(zip(*edges.index.ends(), strict=True), edges["lag"], strict=True))
    assert (lag["a", "b"], lag["b", "c"], lag["d", "e"]) == (0, 0, 1)


def test_the_effect_at_lag_0_is_that_of_a_regression_on_the_past_and_the_parents(finished):
    """c is regressed on its own past, on the lags of b, and on b of the same step."""
    lags, values = pd.read_csv(finished / "lags.csv"), simultaneous()[list(NODES)].to_numpy()
    profile = lags[(lags.source == "b") & (lags.target == "c")].sort_values("lag")
    depth = int(profile["lag"].max())
    rows = np.arange(depth, len(values))
    design = [values[rows - lag, 1] for lag in range(depth + 1)] + [
        values[rows - lag, 2] for lag in range(1, depth + 1)
    ]
    design = np.stack([np.ones(len(rows)), *((one - one.mean()) / one.std() for one in design)], 1)
    target = (values[rows, 2] - values[rows, 2].mean()) / values[rows, 2].std()
    weights = np.linalg.lstsq(design, target, rcond=None)[0][1 : depth + 2]
    assert profile["effect"].to_numpy() == pytest.approx(weights, abs=0.03)


def test_the_answer_says_how_directions_are_known(finished):
    said = read_run(finished).record.answer
    assert (
        "3 edges act within the step. Their directions: 1 learned from non-Gaussian noise, 1 from lagged parents, "
        f"1 open (shown without an arrow). {DRIVER}"
    ) in said
    assert (
        "The noise is compatible with a Gaussian distribution (p = .41): directions within the step are known only "
        "where lagged parents or rules give them."
    ) in said
    assert "A note about the step." in said
    assert any(line.startswith("4 edges are listed;") for line in said)  # a - b counts once
    assert not any("Residuals are correlated" in line for line in said)


def test_the_page_and_the_terminal_show_a_pair_once_without_an_arrow(finished, capsys):
    run = read_run(finished)
    columns = run.edges.each_once()
    assert len(columns) == 24
    assert columns.listed().sum() == 4
    named = {(row["source"], row["target"]): row for row in strongest_edges(run, 4, columns, columns.listed())}
    assert set(named) == {("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")}
    assert named["a", "b"]["undirected"]
    assert named["a", "b"]["exists"] == named["a", "b"]["within_step"] == pytest.approx(0.99)
    assert not named["b", "c"]["undirected"]
    assert (finished / "report.html").read_text().count("without an arrow") >= 1


def test_the_estimator_has_the_same_list(finished):
    model = tacit.load(finished)
    listed = model.listed_edges()
    pairs = list(zip(listed["source"], listed["target"], listed["direction"], strict=True))
    assert set(pairs) == {("a", "b", "open"), ("b", "c", "learned"), ("c", "d", "lagged parents"), ("d", "e", "time")}
    assert listed.set_index("source")["exists"]["a"] == pytest.approx(0.99)
    assert model.edges_.set_index(["source", "target"])["exists"]["a", "b"] == pytest.approx(0.52)
    assert model.within_step_[1, 0] == pytest.approx(0.52)
    assert np.isnan(model.within_step_[0, 0])
    assert (model.direction_[1, 0], model.direction_[0, 0]) == ("open", "")
    assert model.answer_[1] == read_run(finished).record.answer[1]


def test_without_the_option_the_columns_are_empty_and_attributes_say_how_to_get_them():
    fitted = LatentGraphForecaster(assessment=AssessmentOptions(enabled=False)).fit(simultaneous(120)[list(NODES)])
    assert "direction" not in fitted.edges_
    for name in ("within_step_", "direction_"):
        with pytest.raises(AttributeError, match="simultaneous=True"):
            getattr(fitted, name)


def test_a_run_of_before_the_columns_is_read(finished, tmp_path):
    from tacit.records import Run

    run = read_run(finished)
    table = pd.read_csv(finished / "edges.csv", keep_default_na=False)[COLUMNS[: COLUMNS.index("direction")]]
    table = table.replace({"probability": {"": "1"}})
    old = Run.of(run.record, [], {"edges.csv": table.to_csv(index=False)})
    assert "direction" not in old.edges
    assert len(old.edges.each_once()) == 25


# the list of units against a loop over pairs
def test_units_against_a_loop_over_pairs():
    generator = torch.Generator().manual_seed(0)
    exists = torch.rand(6, 6, generator=generator)
    either = (exists + exists.mT).clamp(max=1)
    directions = torch.randint(1, 5, (6, 6), generator=generator)
    directions = directions.triu(1) + directions.triu(1).mT
    edges = EdgeTable.of_matrices("abcdef", exists=exists, exists_either=either, direction=directions)
    undirected, other, values = (edges.index.dense(one) for one in (edges.undirected, edges.others, edges.values))
    expected, count = exists.clone(), 0
    for i in range(6):
        for j in range(i):
            if directions[i, j] == OPEN:
                first, second = ((i, j), (j, i)) if exists[i, j] > exists[j, i] else ((j, i), (i, j))
                expected[first], expected[second] = either[i, j], 0
                assert undirected[first]
                assert other[second]
                count += 1
    assert np.array_equal(values, expected)
    assert undirected.sum() == other.sum() == count > 0
    lag = torch.full((6, 6), 1.0).tril()  # entries above the diagonal act at lag 0
    later = edges.updated(lag=edges.index.vector(lag.numpy()))
    assert not np.tril(later.index.dense(later.undirected)).any()


def test_a_pair_counts_once_at_the_false_discovery_rate():
    """Two directions of probability 0.48 each are one edge of 0.96, and are not listed as directions."""
    exists, within = made_within()
    graph = BernoulliGraph(torch.full((5, 5), 0.5).fill_diagonal_(0), fixed=torch.eye(5, dtype=torch.bool))
    found = graph.described(EdgeTable.of_matrices(NODES, exists=exists.double(), **within_columns(within)))
    listed = np.flatnonzero(found.listed())
    assert len(listed) == 4
    assert "a - b" in {found.named(place) for place in listed}
    assert found.index.dense(found.values)[1, 0] == pytest.approx(0.99)
    said = answer_sentences(found, {}, gaussian=0.0001)
    assert "The noise is not Gaussian (p < .001): it helps to find directions within the step." in said


def sentence_of(*rows, gaussian=None):
    """The sentences of listed edges, each as (undirected, within the step, how the direction is known)."""
    undirected, acts, codes = (np.array(one) for one in zip(*rows, strict=True))
    index = EdgeIndex(np.arange(len(rows)), np.zeros(len(rows), int), ("a",) * len(rows), ("b",))
    edges = EdgeTable(index, {"undirected": undirected, "within_step": acts, "direction": codes})
    return within_sentences(edges, np.ones(len(rows), bool), gaussian)


def test_sentences_of_few_edges(said):
    said(sentence_of((False, 0.9, LEARNED)))
    said(sentence_of((False, 0.9, OPEN), (False, 0.8, LAGGED_PARENTS)))
    assert len(said(sentence_of((False, 0.1, TIME), gaussian=0.004))) == 2
    assert within_sentences(EdgeTable.of_matrices("a", exists=[[1.0]]), np.ones(1, bool), None) == []


def test_wrong_calls_end_in_one_line(tmp_path, wrong_call):
    """Lags that a step cannot have, and rules that form a cycle within it; tests/graph has all others."""
    simultaneous(60).to_csv(tmp_path / "table.csv", index=False)
    rules = "a,b,required,,0,0\nb,c,required,,0,0\nc,a,required,,0,0\n"
    (tmp_path / "rules.csv").write_text("source,target,kind,probability,min_lag,max_lag\n" + rules)
    for options in (
        ["--set", "graph.min_lag=1"],
        ["--set", "graph.min_lag=-1"],
        ["--edges", tmp_path / "rules.csv"],
    ):
        wrong_call("fit", tmp_path / "table.csv", "--simultaneous", *options, "--quiet", "--out", tmp_path / "run")


def test_correlated_residuals_suggest_the_option():
    fitted = LatentGraphForecaster(assessment=AssessmentOptions(enabled=False)).fit(simultaneous()[list(NODES)])
    said = next(line for line in fitted.answer_ if line.startswith("Residuals are correlated"))
    assert "b and c (0." in said
    assert said.endswith("Use --simultaneous to let edges act within a step.")


def test_the_option_is_not_suggested_where_it_cannot_be_used(tmp_path):
    def suggested(path, **sections):
        config = override(FitConfig(), sections)
        data = Dataset.prepare(read_source(str(path), config.data), config.data, seed=0, scaled=True)
        return may_suggest(config, data.preparation)

    write_files(tmp_path)
    assert suggested(tmp_path / "wide.csv")
    assert not suggested(tmp_path / "wide.csv", graph={"symmetric": True})
    assert not suggested(tmp_path / "wide.csv", graph={"min_lag": 1})
    assert not suggested(tmp_path / "wide.csv", data={"horizon": 2})
    assert not suggested(tmp_path / "wide.csv", predictor={"kind": "recurrent"})
    assert not suggested(tmp_path / "two.csv", data={"separator": ":", "covariates": ["hour"]})
    assert suggested(tmp_path / "two.csv", data={"separator": ":", "covariates": ["hour"], "targets": ["a"]})
    assert not suggested(tmp_path / "pairs.npz")

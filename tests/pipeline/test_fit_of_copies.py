"""A fit of a table with a copied column: the group in the answer, the tables, exports, the page and a saved run."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import tacit
from commands import call
from parent_sets import var_series
from tacit.config import AssessmentOptions, GraphOptions, TrainingOptions
from tacit.edges import EdgeTable, edges_text, schema
from tacit.sklearn import LatentGraphForecaster

NAMES = ["inlet", "inlet_copy", "tank", "outlet"]
GROUP = "inlet or inlet_copy"


def table(rows=600):
    weights = np.diag([0.4, 0.4, 0.4])
    weights[1, 0] = weights[2, 1] = 0.4
    series = var_series(0, weights, rows)
    return pd.DataFrame(series[:, [0, 0, 1, 2]], columns=NAMES)


@pytest.fixture(scope="module")
def fitted():
    options = AssessmentOptions(controls=False)
    return LatentGraphForecaster(predictor="filter", observation="gaussian", assessment=options).fit(table())


def test_the_answer_lists_the_group_once(fitted):
    first = " ".join(fitted.answer_)
    assert "A graph was found: 2 edges are listed." in first
    assert "inlet or inlet_copy -> tank (the model uses inlet)" in first
    assert "--simultaneous" not in first
    listed = fitted.listed_edges()
    assert sorted(zip(listed.source, listed.target, listed.group, strict=True)) == [
        ("inlet", "tank", GROUP),
        ("tank", "outlet", ""),
    ]
    assert listed.exists.min() > 0.95


def test_each_member_has_its_share_and_the_number_of_the_group(fitted):
    found = fitted.edges_.set_index(["source", "target"])
    first, other = found.loc[("inlet", "tank")], found.loc[("inlet_copy", "tank")]
    assert first.group == other.group == GROUP
    assert first.exists == pytest.approx(0.5, abs=0.05)
    assert other.exists == pytest.approx(0.5, abs=0.05)
    assert first.exists_either == other.exists_either > 0.95
    assert first.identifiable == other.identifiable == "no"
    assert first.probability > 0.5
    assert np.isnan(other.probability)
    assert np.isnan(other.high)
    assert found.loc[("tank", "outlet")].identifiable == "yes"
    assert (found.group != "").sum() == 2


def test_a_run_directory_has_the_same_groups(tmp_path, capsys):
    table().to_csv(tmp_path / "table.csv", index=False)
    assert call("fit", tmp_path / "table.csv", "--quick", "--out", tmp_path / "run") == 0
    assert f"{GROUP} -> tank 1.00" in capsys.readouterr().err
    loaded = tacit.load(tmp_path / "run")
    assert loaded.listed_edges().group.tolist().count(GROUP) == 1
    assert "inlet_copy,tank,0.5" in (tmp_path / "run" / "edges.csv").read_text()


def test_candidates_of_a_table_can_be_a_group():
    pairs = [(source, target) for target in ("tank", "outlet") for source in NAMES if source != target]
    found = LatentGraphForecaster(
        predictor="filter",
        candidates=pairs,
        graph=GraphOptions(layout="table"),
        training=TrainingOptions(epochs=1, replicas=1, compile=False),
        assessment=AssessmentOptions(enabled=False),
    ).fit(table())
    listed = found.listed_edges()
    assert sorted(listed.group) == ["", GROUP]


def test_edges_csv_names_the_members_and_leaves_the_others_empty():
    edges = EdgeTable.of_matrices(
        "abc",
        exists=[[0.0, 0.05, 0.05], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
        probability=np.ones((3, 3)),
        exists_either=[[np.nan, 0.4, 0.4], [np.nan] * 3, [np.nan] * 3],
        group=[["", "b or c", "b or c"], [""] * 3, [""] * 3],
    )
    text = edges_text(replace(edges, keep=0.1))  # each is below, the group is not
    rows = pd.read_csv(io.StringIO(text)).set_index(["source", "target"])
    assert text.split("\n")[0].split(",") == list(schema.names(schema.file_columns()))
    assert rows.loc[("b", "a"), "group"] == rows.loc[("c", "a"), "group"] == "b or c"
    assert rows.loc[("b", "a"), "probability"] == 1
    assert np.isnan(rows.loc[("c", "a"), "probability"])

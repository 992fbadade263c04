"""Edges that change: the column, the sentence, the record, graphs and tables, and what depends_on makes of them."""

import json

import numpy as np
import pandas as pd
import pytest

from commands import call
from tacit.config import AssessmentOptions, GraphOptions
from tacit.records import read_run
from tacit.report import strongest_edges
from tacit.report.content import run_content
from tacit.sklearn import LatentGraphForecaster

NODES = ["inlet", "tank", "pond"]
AT = pd.Timestamp("2024-08-01")


def half(rows=600, seed=0):
    """inlet -> tank until August 2024; tank -> pond always."""
    rng, times = np.random.default_rng(seed), pd.date_range("2023-10-01", periods=rows)
    values = np.zeros((rows, 3))
    for row in range(1, rows):
        inlet, tank, pond = values[row - 1]
        weight = 0.8 if times[row] < AT else 0.0
        values[row] = [0.3 * inlet, 0.3 * tank + weight * inlet, 0.3 * pond + 0.6 * tank]
        values[row] += rng.normal(size=3)
    return pd.DataFrame(values, columns=NODES).assign(time=times)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("changes")
    half().to_csv(folder / "table.csv", index=False)
    assert call("fit", folder / "table.csv", "--quick", "--quiet", "--out", folder / "run") == 0
    return folder / "run"


def is_near(time):
    return abs((pd.Timestamp(time) - AT).days) <= 30


def test_the_file_has_the_time_of_the_one_edge_that_changes(run):
    table = pd.read_csv(run / "edges.csv", keep_default_na=False).set_index(["source", "target"])["changed"]
    changed = table[table != ""]
    assert list(changed.index) == [("inlet", "tank")]
    assert is_near(changed.iloc[0])


def test_the_answer_names_it_with_the_option_that_shows_how(run):
    record = json.loads((run / "record.json").read_text())
    (change,) = record["evidence"]["changes"]
    assert (change["source"], change["target"]) == (0, 1)
    assert abs(change["after"]) < 0.3 * change["before"]
    said = [sentence for sentence in record["answer"] if change["at"] in sentence]
    assert len(said) == 1
    assert "inlet -> tank until" in said[0]
    assert "--depends-on time" in said[0]


def test_the_page_shows_it(run):
    found = read_run(run)
    (place,) = np.flatnonzero(found.edges["changed"])
    shown = {(row["source"], row["target"]): row["changed"] for row in strongest_edges(found, 9)}
    assert shown.pop(("inlet", "tank")) == found.edges["changed"][place] != ""
    assert set(shown.values()) == {""}
    assert "changed" in run_content(found)["columns"]


def test_depends_on_time_accepts_an_edge_that_always_acts_but_changes():
    model = LatentGraphForecaster(
        graph=GraphOptions(depends_on=["time"]), predictor="filter", assessment=AssessmentOptions(enabled=False)
    ).fit(half())
    table = model.edges_.set_index(["source", "target"])
    assert table.loc[("inlet", "tank"), "varies"] == "yes"
    assert table.loc[("tank", "pond"), "varies"] == ""
    probs = model.edges_by_["probability"]
    assert probs.iloc[0] > 0.9
    assert probs.iloc[-1] < 0.2

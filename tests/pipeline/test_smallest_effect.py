"""The option smallest_effect: what it changes, what is said of it, where it is stored, what is refused."""

import json

import numpy as np
import pandas as pd
import pytest

from commands import call
from tacit.assessment.evidence.misfit import SMALLEST
from tacit.config import AssessmentOptions, GraphOptions
from tacit.sklearn import LatentGraphForecaster


def strong_and_weak(rows=3_000, seed=0):
    """a -> c with weight 1, and b -> c with weight .1, which explains a hundredth as much."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(rows, 3))
    for row in range(1, rows):
        values[row, 2] += values[row - 1, 0] + 0.1 * values[row - 1, 1]
    return pd.DataFrame(values, columns=list("abc"))


def listed(table, **graph):
    options = {"graph": GraphOptions(**graph), "assessment": AssessmentOptions(enabled=False)}
    model = LatentGraphForecaster(window=1, predictor="filter", **options).fit(table)
    edges = model.listed_edges()[["source", "target"]]
    said = [sentence for sentence in model.answer_ if "--smallest-effect" in sentence]
    return set(edges.itertuples(index=False, name=None)), said, model.record_.evidence["smallest_effect"]


def test_an_edge_must_explain_a_share_of_what_the_others_explain():
    table = strong_and_weak()
    edges, said, stored = listed(table)
    assert (edges, stored) == ({("a", "c")}, 0.02)
    assert len(said) == 1
    assert said[0].startswith("1 edge is not listed")
    for smallest in (0, 0.002):
        edges, said, stored = listed(table, smallest_effect=smallest)
        assert (edges, said, stored) == ({("a", "c"), ("b", "c")}, [], smallest)


def test_the_command_has_it_too(tmp_path):
    table = tmp_path / "table.csv"
    strong_and_weak().to_csv(table, index=False)
    for number, options in enumerate((["--smallest-effect", "0"], ["--set", "graph.smallest_effect=0"])):
        out = tmp_path / str(number)
        assert call("fit", table, "--quick", "--quiet", "--window", "1", "--out", out, *options) == 0
        record = json.loads((out / "record.json").read_text())
        assert record["config"]["graph"]["smallest_effect"] == record["evidence"]["smallest_effect"] == 0
        assert record["evidence"]["listed_from"] > 0.9


@pytest.mark.parametrize("value", ["-0.1", "1", "nan", "inf", "much"])
def test_other_values_are_refused_in_one_line(value, tmp_path, wrong_call):
    table = tmp_path / "table.csv"
    strong_and_weak(100).to_csv(table, index=False)
    wrong_call("fit", table, "--quiet", "--out", tmp_path / "run", f"--smallest-effect={value}")


def test_it_requires_regressions(refused):
    refused(listed, strong_and_weak(200), smallest_effect=0.1, evidence="none")


def test_the_default_is_that_of_the_regressions():
    assert GraphOptions().smallest_effect == SMALLEST

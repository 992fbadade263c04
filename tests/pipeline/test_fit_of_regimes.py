"""Regimes in a run: rows of edges, weights, the posterior over time, columns of forecasts, restored models.

The fit of regimes itself is replaced: a mixture with known numbers, so that what a run says of it can be compared.
"""

import copy
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

from gated_tables import options
from tacit.assessment.regimes import Estimate, RegimeFit, RegimeStep
from tacit.graph import MixtureGraph
from tacit.local import Difference
from tacit.pipeline import Fitted, conclude, forecast_table, learn, path_table, read_table, resolve, settle_situations
from tacit.pipeline import situation_stage as regime_stage
from tacit.records import read_run
from tacit.words import FindingKind

CPU = torch.device("cpu")
PROBS = {(2, 0): (0.9, 0.1), (2, 1): (0.8, 0.2)}  # lake reads two rivers, which come together
WEIGHTS = (0.7, 0.3)


def rivers(rows=900, seed=0):
    """Two rivers flow into a lake, together."""
    rng, values = np.random.default_rng(seed), np.zeros((rows, 3))
    for row in range(1, rows):
        regime = int(row // 50 % 3 == 0)
        first, second = rng.random(2) < [PROBS[2, source][regime] for source in (0, 1)]
        north, south = values[row - 1, :2]
        values[row] = 0.3 * values[row - 1] + [0, 0, 0.9 * first * north + 0.9 * second * south]
        values[row] += rng.normal(size=3) * [1, 1, 0.2]
    table = pd.DataFrame(values, columns=["north", "south", "lake"])
    return table.assign(time=pd.date_range("2024-03-01", periods=rows, freq="h"))


def known_regimes(fit, num_regimes, blocks, off=0.02):
    """A fit with the numbers above; None of one regime where so many are not asked for."""
    model = fit.model
    graph = MixtureGraph(model.graph, 2, blocks)
    with torch.no_grad():
        for place, probs in PROBS.items():
            graph.edge_logits[:, place[0], place[1]] = torch.logit(torch.tensor(probs))
        graph.weight_logits.copy_(torch.tensor(WEIGHTS).log().expand_as(graph.weight_logits))
    made = copy.deepcopy(model)
    made.graph = graph
    values = graph.regime_probs.detach(), graph.regime_weights.detach(), graph.edge_probs.detach()
    estimates = [Estimate(one, torch.full_like(one, off / 2), one - off, one + off) for one in values]
    if num_regimes == "auto":
        return RegimeFit(None, 1, blocks, *estimates, (RegimeStep(2, Difference(0.02, 0.01), False),))
    return RegimeFit(made, 2, blocks, *estimates)


def fit(monkeypatch, fitted=known_regimes, **sections):
    monkeypatch.setattr(regime_stage, "_fitted", fitted)
    config = settle_situations(options(**sections))
    plan = resolve(read_table(rivers(), config.data), config, seed=0, device=CPU, command="tests")
    return conclude(learn(plan))


@pytest.mark.parametrize("blocks", ["rows", "all"])
def test_a_run_with_regimes_is_written_and_read(blocks, monkeypatch, tmp_path):
    fitted = fit(monkeypatch, graph={"regimes": 2, "blocks": blocks})
    fitted.write(tmp_path / "run")
    run = read_run(tmp_path / "run")
    rows = run.edges.by.frame(run.record.node_names)
    assert rows[["source", "value"]].values.tolist() == [
        ["north", "1"], ["north", "2"], ["south", "1"], ["south", "2"]
    ]  # fmt: skip
    assert rows.probability.tolist() == pytest.approx([0.9, 0.1, 0.8, 0.2], abs=1e-5)
    assert set(rows.by) == {"regime"}
    found = run.record.situations
    assert found["kind"] == "mixture"
    assert found["blocks"] == (["all"] if blocks == "all" else ["north", "south", "lake"])
    assert found["weights"][-1] == pytest.approx(WEIGHTS, abs=1e-5)
    average = run.edges.matrix("probability")
    assert average[2, 0] == pytest.approx(0.7 * 0.9 + 0.3 * 0.1, abs=1e-4)
    assert any("regimes were found" in line for line in run.record.answer)
    posterior = found["posterior"]
    assert len(posterior["times"]) == len(posterior["probs"]) == len(posterior["parts"]) == 899
    assert posterior["times"] == sorted(posterior["times"])
    assert posterior["times"][0] == "2024-03-01T01:00:00"
    assert set(posterior["parts"]) == {"train", "validation", "test"}
    probs = np.array(posterior["probs"])
    assert probs.shape == (899, 1 if blocks == "all" else 3, 2)
    assert np.allclose(probs.sum(-1), 1, atol=2e-3)


def test_trained_regimes_have_no_errors(monkeypatch, tmp_path):
    """The constant graph of a filter has errors; those of a trained mixture are left empty, and a sentence says so."""
    monkeypatch.setattr(regime_stage, "has_regime_likelihood", lambda *_: False)
    trained = partial(known_regimes, off=torch.nan)
    fitted = fit(monkeypatch, trained, graph={"regimes": 2}, assessment={"enabled": True, "bootstrap_replicas": 0})
    assert FindingKind.TRAINED_REGIMES in {one.kind for one in fitted.record.findings}
    fitted.write(tmp_path / "run")
    run = read_run(tmp_path / "run")
    rows = run.edges.by.frame(run.record.node_names)
    assert rows.probability.notna().all()
    assert rows[["std_error", "low", "high"]].isna().all(axis=None)
    table = pd.read_csv(tmp_path / "run" / "edges.csv")
    assert table[["std_error", "low", "high"]].isna().all(axis=None)


def test_many_observations_are_thinned(monkeypatch):
    monkeypatch.setattr(regime_stage, "MOST_SHOWN", 100)
    posterior = fit(monkeypatch, graph={"regimes": 2, "blocks": "all"}).record.situations["posterior"]
    assert len(posterior["times"]) == 100
    assert posterior["times"][-1] == "2024-04-07T11:00:00"


def test_forecasts_say_which_regime_held(monkeypatch, tmp_path):
    """Where the actual value is known, by it: an observation that the rivers explain is in the first regime."""
    fitted = fit(monkeypatch, graph={"regimes": 2, "blocks": "all"})
    fitted.write(tmp_path / "run")
    read = Fitted.read(tmp_path / "run", CPU)
    assert isinstance(read.graph, MixtureGraph)
    source = read_table(rivers(), read.config.data, piece=True)
    table = forecast_table(read, source)
    pd.testing.assert_frame_equal(table, forecast_table(fitted, source))
    lake = table[table.node == "lake"]
    last = lake.iloc[-1]
    assert np.isnan(last.actual)
    assert (last.regime, last.regime_probability) == (1, pytest.approx(0.7, abs=1e-5))
    assert set(lake.regime) == {1, 2}
    true = (np.arange(1, len(lake)) // 50 % 3 == 0).astype(int) + 1  # of the row of each target
    assert (lake.regime.to_numpy()[:-1] == true).mean() > 0.8
    path = path_table(read, source, 2)
    assert set(path.regime) == {1}
    assert path.regime_probability.tolist() == pytest.approx([0.7] * len(path), abs=1e-5)


def test_one_regime_leaves_the_constant_fit(monkeypatch):
    fitted = fit(monkeypatch, graph={"regimes": "auto"})
    assert fitted.record.situations["kind"] == "constant"
    assert fitted.edges.by is None
    assert "One regime is enough: with 2 the validation loss is 0.02 +- 0.01 higher." in fitted.record.answer
    assert "regime" not in forecast_table(fitted, read_table(rivers(), fitted.config.data, piece=True))


def test_regimes_need_two_edges_in_a_block(monkeypatch):
    graph = {"regimes": 2, "forbidden": [["south", "lake"]]}
    fitted = fit(monkeypatch, graph=graph)
    assert fitted.record.situations["kind"] == "constant"
    assert any(line.startswith("Regimes were not looked for: no node has two") for line in fitted.record.answer)


def test_a_filter_has_regimes_by_likelihood(monkeypatch):
    monkeypatch.setattr(regime_stage, "regimes_by_training", None)
    config = settle_situations(options(graph={"regimes": 2}))
    plan = resolve(read_table(rivers(), config.data), config, seed=0, device=CPU, command="tests")
    fitted = conclude(learn(plan))
    rows = fitted.edges.by.frame(fitted.record.node_names)
    assert rows[["std_error", "low", "high"]].notna().all(axis=None), "the likelihood has errors without replicas"
    assert ((rows.low <= rows.probability) & (rows.probability <= rows.high)).all()
    truth = [0.9, 0.1, 0.8, 0.2]
    assert ((rows.low <= truth) & (truth <= rows.high)).all()


def test_regimes_of_edges_that_are_not_listed_are_not_shown(monkeypatch):
    monkeypatch.setattr(RegimeFit, "in_regimes", property(lambda found: torch.zeros_like(found.graph.learned)))
    fitted = fit(monkeypatch, graph={"regimes": 2})
    assert fitted.record.situations["kind"] == "constant"
    assert "Regimes were not looked for: no node has two listed edges that act at times." in fitted.record.answer

"""Edges of a table that act together: a simulated series, and a light tunnel with a hidden shutter."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from tacit.assessment.uncertainty import estimate_acting
from tacit.config import DataOptions, FitConfig, override
from tacit.edges import ACTS
from tacit.pipeline import read_source, read_table, resolve

TUNNEL = Path(__file__).parents[2].parent / "shared" / "data" / "light_tunnel" / "gate.csv"
COLOURS, SENSORS = ("red", "green", "blue"), ("ir_2", "vis_2", "ir_3", "vis_3")


def acting_of(source, present, likely=None):
    """How often the given edges act, by the default noise of a table."""
    values = {
        "graph": {"candidates": present, "layout": "matrix", "evidence": "none"},
        "predictor": {"kind": "filter"},
        "training": {"compile": False},
        "assessment": {"enabled": False},
    }
    plan = resolve(source, override(FitConfig(), values), seed=0, device=torch.device("cpu"), command="test")
    return estimate_acting(plan.model, plan.dataset.split.train, replicas=0, likely=likely)


@pytest.fixture(scope="module")
def series():
    """Node 0 and 1 send; they act on 2 and 3 in 60% of the rows, all four edges together, and on 4 always."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(1200, 5)) * [1, 1, 0.5, 0.5, 0.5]
    for row in range(1, len(values)):
        opened = rng.random() < 0.6
        values[row, 2:4] += opened * (values[row - 1, :2] @ [[1.0, -1.0], [0.8, 1.0]])
        values[row, 4] += values[row - 1, :2].sum()
    return pd.DataFrame(values, columns=list("abcde"))


def test_edges_into_two_nodes_share_a_gate(series):
    present = [(source, target) for source in (0, 1) for target in (2, 3, 4)]
    found = acting_of(read_table(series, DataOptions()), present)
    together = torch.zeros(5, 5, dtype=torch.bool)
    together[2:4, :2] = True
    assert torch.equal(~found.together.isnan(), together)
    assert len(found.together[together].unique()) == len(found.edge_probs[together].unique()) == 1
    assert found.edge_probs[2, 0] == pytest.approx(0.6, abs=0.05)
    assert (found.edge_probs[4, :2] == 1).all()
    around = found.intervals()
    assert (around.low[together] < 0.6).all()
    assert (around.high[together] > 0.6).all()
    assert (found.acting[together] == ACTS.index("at times")).all()
    assert (found.std_errors[together] < 0.05).all()


def test_a_node_without_likely_edges_shares_no_gate(series):
    likely = torch.ones(5, 5, dtype=torch.bool)
    likely[2, 1] = likely[3] = False
    present = [(source, target) for source in (0, 1) for target in (2, 3, 4)]
    found = acting_of(read_table(series, DataOptions()), present, likely=likely)
    together = torch.zeros(5, 5, dtype=torch.bool)
    together[2, :2] = True
    assert torch.equal(~found.together.isnan(), together)
    assert (found.edge_probs[3, :2] < 1).all()  # with gates of their own


@pytest.mark.skipif(not TUNNEL.exists(), reason="the data of the light tunnel are not here")
def test_the_shutter_of_a_light_tunnel_is_one_gate_of_six_edges(tmp_path):
    table = pd.read_csv(TUNNEL)
    table[[f"x:{name}" for name in SENSORS]] = 0.0
    table[[f"y:{name}" for name in COLOURS]] = 0.0
    table.to_csv(tmp_path / "tunnel.csv", index=False)
    source = read_source(str(tmp_path / "tunnel.csv"), DataOptions())
    found = acting_of(source, [(colour, sensor) for colour in range(3) for sensor in range(3, 7)])
    around = found.intervals()
    gated, always = (torch.zeros(7, 7, dtype=torch.bool) for _ in range(2))
    gated[5:7, :3], always[3:5, :3] = True, True
    assert torch.equal(~found.together.isnan(), gated)
    assert (around.low[gated] < 0.7).all()
    assert (around.high[gated] > 0.7).all()
    assert (around.high[gated] - around.low[gated] < 0.1).all()
    assert (around.high[always] == 1).all()
    assert (found.acting[gated] == ACTS.index("at times")).all()

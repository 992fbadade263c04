"""What a fit starts from: the regressions on the edges that may exist; and which loss chooses between kinds."""

from importlib import import_module

import numpy as np
import pandas as pd
import pytest
import torch

from tacit.config import FitConfig
from tacit.local import start_at_regression
from tacit.losses import EnergyScore
from tacit.pipeline import OwnParts, building, plan, read_table, resolve
from tacit.pipeline import choices as forecaster_choice
from tacit.pipeline.closed_form import fit_closed_form

local_ridge = import_module("tacit.local.ridge")  # the function has the name of its file


def series(rows=300, nodes=3):
    rng, values = np.random.default_rng(0), np.zeros((rows, nodes))
    for row in range(1, rows):
        values[row] = 0.5 * values[row - 1] + 0.4 * np.roll(values[row - 1], 1) + 0.3 * rng.normal(size=nodes)
    return pd.DataFrame(values, columns=list("abcdef")[:nodes])


def make_plan(own=None, table=None, **sections):
    config = FitConfig.model_validate({"data": {"window": 2}, **sections})
    source = read_table(series() if table is None else table, config.data)
    return resolve(source, config, seed=0, device=torch.device("cpu"), command="tacit fit", own=own)


def test_a_loss_that_is_an_object_trains_the_kinds_that_are_compared(monkeypatch):
    seen = []
    monkeypatch.setattr(forecaster_choice, "ENOUGH_FOR_A_NETWORK", 100)
    monkeypatch.setattr(forecaster_choice, "STEPS", 2)
    train = forecaster_choice._train
    monkeypatch.setattr(
        forecaster_choice, "_train", lambda model, *rest: seen.append(model.loss) or train(model, *rest)
    )
    loss = EnergyScore(scope="node", weight=0.25)
    make_plan(OwnParts(loss=loss))
    assert [found.weight for found in seen] == [0.25]


def test_over_a_long_window_no_network_is_tried(monkeypatch):
    monkeypatch.setattr(plan, "ENOUGH_FOR_A_NETWORK", 100)
    monkeypatch.setattr(plan, "LONGEST_TRIED", 1)
    monkeypatch.setattr(plan, "choose_kind", lambda *_: pytest.fail("a kind was tried"))
    made = make_plan()
    assert made.config.predictor.kind == "filter"
    assert "long window" in {choice.reason for choice in made.choices}


def test_a_fit_says_so_when_regressions_read_a_part_of_the_window(monkeypatch):
    monkeypatch.setattr(local_ridge, "MOST_SIDE", 3)  # a node and two others, one step of each
    made = make_plan()
    assert plan.FEWER_STEPS.format(read=1, window=2) in made.notes
    assert fit_closed_form(made.model, made.dataset.split, 0) is None


def test_weights_that_the_start_at_regressions_sets_are_not_solved_for_twice(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("solved for nothing")

    for name in ("filter_start", "edge_start", "start_ridge"):
        monkeypatch.setattr(building, name, refuse)
    model = make_plan().model
    assert model.predictor.jitter == building.START_JITTER  # other starts differ by it
    assert start_at_regression(model, make_plan().dataset.split.train)


def test_edges_into_a_target_that_is_constant_are_said_to_be_unknown():
    table = series()
    table["b"] = np.where(np.arange(300) == 0, 1.0, 2.0)  # it moves, but never as a target
    evidence = make_plan(table=table).evidence
    assert evidence.notes[-1] == "The targets of b are constant: edges into them cannot be tested."
    assert evidence.exists[evidence.table.index.into(1)].max() <= evidence.prior["density"] + 1e-6


@pytest.mark.parametrize("number", [0.05, 0.5, float("nan")])
def test_an_edge_of_which_nothing_is_known_may_exist(number):
    evidence = make_plan().evidence
    place = evidence.table.index.find(np.array([1]), np.array([0]))
    evidence.table["exists"][place] = number
    assert bool(evidence.kept[place]) is (number != 0.05)
    assert np.array_equal(evidence.kept, evidence.table.kept)

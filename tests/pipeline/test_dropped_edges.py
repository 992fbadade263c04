"""An edge that the regressions drop is learned all the same where the fitted model needs it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from parent_sets import var_series
from tacit.assessment.evidence import KEEP
from tacit.config import FitConfig
from tacit.pipeline.building import build_model
from tacit.pipeline.fitting import learn
from tacit.pipeline.model_evidence import needed_after_all
from tacit.pipeline.plan import Plan
from tacit.pipeline.sources import read_table

WEIGHTS = np.array([[0.5, 0.4, 0.0], [0.0, 0.3, 0.0], [0.0, 0.4, 0.4]])


@pytest.fixture(scope="module")
def plan():
    values = var_series(0, WEIGHTS, 400)
    frame = pd.DataFrame(values, columns=list("abc"), index=pd.RangeIndex(len(values), name="time"))
    config = FitConfig.model_validate(
        {"predictor": {"kind": "filter"}, "training": {"compile": False, "epochs": 3, "replicas": 1},
         "assessment": {"enabled": False}}
    )  # fmt: skip
    return Plan.make(read_table(frame, config.data), config, seed=0, device=torch.device("cpu"), command="tacit fit")


def place_of(table, target, source):
    return int(table.index.find(np.array([source]), np.array([target]))[0])


def without(plan, target, source):
    """The plan as it would be had the regressions found nothing of one edge."""
    table = plan.evidence.table
    exists = table["exists"].copy()
    exists[place_of(table, target, source)] = 0.0
    evidence = replace(plan.evidence, table=table.updated(exists=exists))
    model = build_model(plan.config, plan.dataset, plan.rules, plan.own, plan.seed, evidence.kept)
    return replace(plan, evidence=evidence, model=model)


def test_the_model_needs_no_edge_that_regressions_drop_rightly(plan):
    learned = learn(plan)
    assert learned.plan.evidence.needed is None
    assert learned.plan.choices == plan.choices


def test_a_true_edge_that_was_dropped_is_learned_after_all(plan):
    learned = learn(without(plan, 0, 1))
    place = place_of(learned.plan.evidence.table, 0, 1)
    assert np.flatnonzero(learned.plan.evidence.needed).tolist() == [place]
    assert bool(learned.result.model.graph.learned[0, 1])
    assert learned.plan.evidence.kept[place]
    assert not learned.plan.evidence.dropped[place]
    assert "learned = 1 more edge than the regressions keep: residuals of the fitted model" in learned.plan.choices[-1]
    exists = learned.assessment.edges["exists"][place]
    assert exists == pytest.approx(KEEP)  # regressions and model disagree: just enough to be kept
    assert learned.conclude().record.answer[0].startswith("A graph was found")


def test_resamples_keep_the_edges_that_the_model_needs(plan):
    dropped = without(plan, 0, 1)
    train, preparation = dropped.dataset.split.train, dropped.dataset.preparation
    needed = needed_after_all(dropped.model, train, dropped.evidence, preparation, 0)
    place = place_of(dropped.evidence.table, 0, 1)
    assert needed[place]
    evidence = replace(dropped.evidence, needed=needed, found=replace(dropped.evidence.found, density=1e-12))
    assert bool(evidence.kept_on(train, preparation, torch.arange(20)[None], 0)[0][place])

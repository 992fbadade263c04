"""The sentences about what limits the evidence."""

import math

import numpy as np
import pytest
import torch

from parent_sets import left_over, one_step
from tacit.assessment.evidence import Candidates, ColumnForm, parent_evidence
from tacit.assessment.evidence.candidates import build_columns
from tacit.assessment.evidence.diagnostics import (
    CORRELATED,
    FEW_ROWS,
    NOISE,
    RESAMPLES_DIFFER,
    SMOOTHED,
    may_be_measured,
    notes,
    residuals,
    smallest_effect,
)
from tacit.graph import EdgeRules
from tacit.observation import PoissonCounts

CANDIDATES = Candidates.from_rules(EdgeRules(("a", "b", "c")))
LAST = ColumnForm()
NOBODY = torch.zeros(3, 2, dtype=torch.bool)


def said(series, form=LAST, agreement=1.0, believed=NOBODY, **more):
    pairs, layout = one_step(series, window=form.lags)
    columns = build_columns(pairs, layout, form)
    given = {"form": form, "density": 0.1, "agreement": agreement, "horizon": 1}
    given["left"] = residuals(columns, CANDIDATES, believed)
    return notes(columns, CANDIDATES, believed, ("a", "b", "c"), **given, **more)


@pytest.fixture
def noise():
    return np.random.default_rng(0).normal(size=(300, 3))


def test_nothing_is_said_of_good_data(noise):
    assert said(noise) == {}


def test_few_rows_are_named(noise):
    found = said(noise[:25])
    assert list(found) == [FEW_ROWS]
    assert found[FEW_ROWS].startswith("Few observations: with 22 degrees of freedom and 2 candidates per node")


def test_the_smallest_effect_balances_prior_and_evidence():
    share = smallest_effect(100.0, 2, 0.1)
    assert -50 * math.log(1 - share) == pytest.approx(math.log(101) + math.log(9), rel=1e-12)


def test_noisy_values_and_resamples_that_disagree(noise):
    form = ColumnForm(lags=4, decay=0.5)
    found = said(noise, form, agreement=0.4, believed=~NOBODY)
    assert list(found) == [NOISE, RESAMPLES_DIFFER]
    assert found[NOISE].startswith("Noisy values: smoothed values")
    assert list(said(noise, form, agreement=0.4)) == [NOISE]  # without any edge there is nothing to agree on


def test_values_without_measurement_noise_are_not_called_noisy(noise):
    assert list(said(noise, ColumnForm(lags=4, decay=0.5), measured=False)) == [SMOOTHED]
    noise[:, 1] = noise[:, 1] > 0  # yes or no
    noise[:, 2] = np.floor(3 * np.abs(noise[:, 2]))
    pairs, _ = one_step(noise)
    assert may_be_measured(pairs, None).tolist() == [True, False, True]
    counts = PoissonCounts(3)
    assert may_be_measured(pairs, counts).tolist() == [False] * 3


def test_common_drivers_are_named(noise):
    noise[:, 1] += noise[:, 0]
    found = said(noise)
    assert list(found) == [CORRELATED]
    assert "for one pair of nodes: a and b (0.7" in found[CORRELATED]


def test_residuals_are_those_of_least_squares(noise):
    pairs, layout = one_step(noise)
    columns = build_columns(pairs, layout, ColumnForm())
    believed = NOBODY.clone()
    believed[1, 0] = True  # the first candidate of b is a
    left = residuals(columns, CANDIDATES, believed)[:, 1]
    x, y = columns.sources[:, :, 0].numpy(), columns.targets[:, 1, 0].numpy()
    design = np.stack([np.ones(len(y)), x[:, 1], x[:, 0]], 1)
    assert float(left.square().sum()) == pytest.approx(left_over(design, y), rel=1e-10)


def test_evidence_carries_the_sentences(noise):
    pairs, layout = one_step(noise[:25])
    found = parent_evidence(pairs, layout, CANDIDATES, resamples=0)
    assert FEW_ROWS in found.notes

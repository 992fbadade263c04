"""Which columns an edge carries: lags, a smoothed value, squares; for all targets and for each of them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from parent_sets import one_step, var_series
from tacit.assessment.evidence import Candidates, ColumnForm
from tacit.assessment.evidence.candidates import build_columns, spline_columns
from tacit.assessment.evidence.forms import Forms, choose_forms, form_scores, possible_forms
from tacit.data import Pairs
from tacit.graph import EdgeRules

WEIGHTS = np.array([[0.5, 0, 0], [0.5, 0.3, 0], [0, -0.5, 0.3]])
CANDIDATES = Candidates.from_rules(EdgeRules(("a", "b", "c")))


def words_of(forms: Forms) -> list[str]:
    return [form.words() for form, _ in forms]


def test_a_form_in_words():
    assert ColumnForm(1, squares=True).words() == "the last value and its square"
    assert ColumnForm(6, squares=True).words() == "the last 6 values and their squares"
    assert ColumnForm(6, decay=0.5, squares=True).words() == "a smoothed value and its square"
    assert ColumnForm(1, splines=True).words() == "the last value and its spline"
    assert ColumnForm(2, splines=True).words() == "the last 2 values and their spline"


def test_one_lag_without_squares_for_a_var():
    pairs, layout = one_step(var_series(0, WEIGHTS, 300), window=3)
    form, probs = choose_forms(pairs, layout, CANDIDATES)[0]
    assert form == ColumnForm()
    assert float(probs.min()) > 0.9


def test_the_score_of_a_form_is_the_criterion_of_its_least_squares():
    """Without any parent that pays, it is the criterion of the own past."""
    rng = np.random.default_rng(0)
    pairs, layout = one_step(rng.normal(size=(303, 3)), window=2)
    scores = dict(form_scores(pairs, layout, CANDIDATES))
    assert list(scores) == possible_forms(pairs, layout, CANDIDATES)
    for form, always in ((ColumnForm(), 2), (ColumnForm(2), 3)):
        columns = build_columns(pairs, layout, form)
        for node in range(3):
            own = torch.cat([columns.own[:, node], columns.shared], 1)
            left = columns.targets[:, node] - own @ torch.linalg.lstsq(own, columns.targets[:, node]).solution
            expected = -len(pairs) / 2 * float(left.square().sum().log()) - always / 2 * np.log(len(pairs))
            assert float(scores[form][node]) == pytest.approx(expected, abs=1e-4)


def test_squares_where_the_effect_is_one():
    rng = np.random.default_rng(0)
    series = rng.normal(size=(300, 3))
    for now in range(1, len(series)):
        series[now, 1] += 0.5 * series[now - 1, 0] ** 2
    pairs, layout = one_step(series)
    forms = choose_forms(pairs, layout, CANDIDATES)
    assert words_of(forms) == ["the last value and its square", "the last value"]
    assert forms[0][1][1] == 1  # of the target with the effect; the others have no parent
    assert torch.stack([probs for _, probs in forms]).sum(0).tolist() == pytest.approx([1, 1, 1])


def test_a_spline_where_the_effect_is_neither_a_line_nor_a_square():
    rng = np.random.default_rng(0)
    series = rng.normal(size=(600, 3))
    for now in range(1, len(series)):
        series[now, 1] += 1.5 * series[now - 1, 0] * np.exp(-(series[now - 1, 0] ** 2))
    pairs, layout = one_step(series)
    forms = choose_forms(pairs, layout, CANDIDATES)
    probs = {form.words(): float(of_target[1]) for form, of_target in forms}
    assert probs["the last value and its spline"] > 0.99


def test_a_natural_spline_is_linear_beyond_its_outer_knots_and_smooth_between_them():
    values = torch.linspace(-3, 3, 401, dtype=torch.float64)[None, None]
    columns = spline_columns(values)[0]  # (column, row)
    assert columns.shape == (2, 401)
    bends = columns.diff(dim=1).diff(dim=1)
    low, high = int(0.05 * 400), int(0.95 * 400)
    assert float(columns[:, : low + 1].abs().max()) == 0  # the value itself is the line
    assert float(bends[:, high:].abs().max()) < 1e-12
    assert float(bends.diff(dim=1).abs().max()) < 0.1 * float(bends.abs().max())
    assert torch.linalg.matrix_rank(torch.cat([torch.ones(1, 401), values[0], columns])) == 4


@pytest.mark.parametrize("few", [torch.zeros(50), torch.arange(50) % 2, torch.arange(50).clamp_min(40)])
def test_values_that_hardly_differ_have_no_spline(few):
    assert float(spline_columns(few.double()[None, None]).abs().max()) == 0


def test_each_target_has_its_form_and_their_prior_is_learned():
    """b reads the square of a, six nodes read a line."""
    rng = np.random.default_rng(0)
    series = rng.normal(size=(400, 8))
    for now in range(1, len(series)):
        series[now, 1] += 0.5 * series[now - 1, 0] ** 2
        series[now, 2:] += 0.5 * series[now - 1, [0, 2, 3, 4, 5, 6]]
    pairs, layout = one_step(series, window=2)
    forms = choose_forms(pairs, layout, Candidates.from_rules(EdgeRules(tuple("abcdefgh"))))
    assert words_of(forms)[:2] == ["the last value and its square", "the last value"]  # the first if all had one
    assert forms[0][1].tolist() == [0, 1, 0, 0, 0, 0, 0, 0]
    assert float(forms[1][1][2:].min()) > 0.9


def test_more_targets_than_are_compared_at_first_have_their_forms_too(monkeypatch):
    pairs, layout = one_step(var_series(0, WEIGHTS, 300), window=3)
    every = choose_forms(pairs, layout, CANDIDATES)
    monkeypatch.setitem(choose_forms.__globals__, "MOST_TARGETS", 2)
    assert [form for form, _ in choose_forms(pairs, layout, CANDIDATES)] == [form for form, _ in every]
    assert len(choose_forms(pairs, layout, CANDIDATES)[0][1]) == 3


def test_smoothed_values_where_values_are_measured_with_noise():
    weights = 0.7 * np.eye(3) + np.array([[0, 0, 0], [0.5, 0, 0], [0, -0.5, 0]])
    series = var_series(0, weights, 800)
    noise = np.random.default_rng(1).normal(size=series.shape)
    assert choose_forms(*one_step(series, window=6), CANDIDATES)[0][0] == ColumnForm()
    assert choose_forms(*one_step(series + noise, window=6), CANDIDATES)[0][0].decay > 0


def test_columns_of_a_form():
    values = torch.randn(30, 2, generator=torch.Generator().manual_seed(0)).double()
    pairs, layout = one_step(values, window=4)
    columns = build_columns(pairs, layout, ColumnForm(lags=3, decay=0.5, squares=True))
    inputs = pairs.inputs[:, :, 1:]
    scaled = (inputs - inputs.mean(0)) / inputs.std(0, correction=0)
    smoothed = scaled @ torch.tensor([0.25, 0.5, 1.0]).double()
    for found in (columns.sources, columns.own):
        torch.testing.assert_close(found, torch.stack([smoothed, smoothed.square()], 2), rtol=0, atol=1e-10)
    assert columns.num_always.tolist() == [3, 3]


def test_deviations_are_values_without_the_regression_on_the_background_of_their_node():
    rng = torch.Generator().manual_seed(0)
    pairs, layout = one_step(torch.randn(40, 2, generator=rng).double(), window=2)
    background = torch.randn(len(pairs), 2, 3, generator=rng).double()
    pairs = replace(pairs, inputs=torch.cat([pairs.inputs, background], 2))
    layout = replace(layout, known=3)
    assert {form.deviations for form in possible_forms(pairs, layout)} == {None}
    assert {form.deviations for form in possible_forms(pairs, layout, background=1)} == {None, 1}
    given, sent = (build_columns(pairs, layout, ColumnForm(2, deviations=on)).sources for on in (None, 1))
    for node in range(2):
        always = torch.nn.functional.pad(background[:, node, 1:], (0, 1), value=1.0)  # the first is a covariate
        expected = given[:, node] - always @ torch.linalg.lstsq(always, given[:, node]).solution
        torch.testing.assert_close(sent[:, node], expected, rtol=0, atol=1e-9)
    assert ColumnForm(2, deviations=0).words() == "the last 2 values less the background"


def test_deviations_where_products_act_beside_a_trend():
    """A product of a value with a trend is no effect of either."""
    rng = np.random.default_rng(1)
    series, trend = rng.normal(size=(500, 3)), np.linspace(-3, 3, 500)[:, None]
    for now in range(1, len(series)):
        series[now, 1] += 0.6 * series[now - 1, 0] * series[now - 1, 2]
    pairs, layout = one_step(series + trend)
    known = torch.from_numpy(np.broadcast_to(trend[1:, None], (499, 3, 1)).copy())
    pairs, layout = replace(pairs, inputs=torch.cat([pairs.inputs, known], 2)), replace(layout, known=1)
    form = choose_forms(pairs, layout, CANDIDATES, background=0)[0][0]
    assert form.products
    assert form.deviations == 0


def test_an_intercept_per_series():
    pairs, layout = one_step(torch.randn(21, 3, generator=torch.Generator().manual_seed(0)).double())
    several = Pairs(pairs.inputs, pairs.targets, series=torch.arange(20) // 5)
    assert {form.offsets for form in possible_forms(several, layout)} == {False, True}
    assert {form.offsets for form in possible_forms(pairs, layout)} == {False}
    own = build_columns(several, layout, ColumnForm()).own.shape[2]
    assert build_columns(several, layout, ColumnForm(offsets=True)).num_always.tolist() == [4 + own] * 3

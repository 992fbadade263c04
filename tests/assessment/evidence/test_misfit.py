"""The smallest effect that counts: residuals against least squares, and parents of a strong parent."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from parent_sets import one_step
from tacit.assessment.evidence import Candidates, ColumnForm, parent_evidence
from tacit.assessment.evidence.candidates import build_columns
from tacit.assessment.evidence.misfit import LEAST, WITHIN_STEP, Leak, beside_others, counting_probs
from tacit.graph import EdgeRules

CANDIDATES = Candidates.from_rules(EdgeRules(("a", "b", "c", "d")))
SMALLEST, LEAK = 0.1, Leak(0.5, 0.7)


def values_of(weights, rows=600, seed=0):
    """Return four series; ``d`` is driven by the others with some weights."""
    values = np.random.default_rng(seed).normal(size=(rows, 4))
    for now in range(1, rows):
        values[now, 3] += np.dot(weights, values[now - 1, :3])
    return values


def test_what_noise_hides_of_a_parent_moves_with_it():
    """The effect of b on d is compared with what b says of the effect of a too."""
    columns = build_columns(*one_step(values_of((1.0, 0.5, 0.0), rows=20_000)), ColumnForm())
    probs, leak = torch.zeros(4, 3), Leak(0.01, 0.5, along=100.0)
    probs[3, :2] = 0.9
    alone = counting_probs(columns, CANDIDATES, probs, leak=leak, smallest=1.0)[3, 1]
    assert alone > 0.99
    sources = columns.sources.clone()
    sources[:, 1] = 0.8 * sources[:, 0] + 0.6 * sources[:, 1]
    found = counting_probs(replace(columns, sources=sources), CANDIDATES, probs, leak=leak, smallest=1.0)[3, 1]
    first, second = (sources[:, node, 0] - sources[:, node, 0].mean() for node in (0, 1))
    target = columns.targets[:, 3, 0]
    fitted = (first @ target) / (first @ first) * first
    along = float((second @ fitted) ** 2 / (second @ second))
    assert along == pytest.approx(0.64 * float(fitted @ fitted), rel=0.05)
    beside = second - (second @ first) / (first @ first) * first
    effect = float((beside @ target) ** 2 / (beside @ beside))
    size = math.log(effect / (along + 0.01 * float(fitted @ fitted)))
    assert float(found) == pytest.approx(float(torch.special.ndtr(torch.tensor(size / 0.5))), abs=0.05)


@pytest.mark.parametrize("driven", [False, True])
def test_the_probability_that_an_effect_counts_is_that_of_the_formula(driven):
    pairs, layout = one_step(values_of((1.0, 0.3, 0.2)), window=2)
    form = ColumnForm(2, squares=True)
    columns = build_columns(pairs, layout, form)
    probs = torch.full((4, 3), 0.01)
    probs[3] = torch.tensor([0.9, 0.8, 0.1])  # c is possible, and not among the others
    found = counting_probs(columns, CANDIDATES, probs, num_drivers=int(driven), leak=LEAK, smallest=SMALLEST)
    target = columns.targets[:, 3]

    def squares(sources, own=columns.own[:, 3]):
        part = torch.cat([own, columns.shared, *(columns.sources[:, source] for source in sources)], 1)
        left = target - part @ torch.linalg.lstsq(part, target, driver="gelsd").solution
        return float(left.square().sum())

    total = squares((), own=columns.own[:, 3, : columns.own.shape[2] - int(driven)])
    for source, others in ((0, (1,)), (1, (0,)), (2, (0, 1))):
        without, given = squares(others), squares((*others, source))
        size = math.log(without - given) - math.log(LEAK.median * SMALLEST * (total - without))
        unsure = math.sqrt(LEAK.spread**2 + 4 * given / (len(pairs) * (without - given)))
        expected = torch.special.ndtr(torch.tensor(size / unsure)).clamp_min(LEAST)
        assert found[3, source] == pytest.approx(float(expected), rel=1e-4)
    assert torch.equal(found[:3], torch.ones(3, 3))


def test_a_single_parent_always_counts_and_0_switches_it_off():
    pairs, layout = one_step(values_of((0.2, 0.0, 0.0)))
    columns, probs = build_columns(pairs, layout, ColumnForm()), torch.zeros(4, 3)
    probs[3, 0] = 0.9
    assert torch.equal(counting_probs(columns, CANDIDATES, probs, smallest=0.9), torch.ones(4, 3))
    probs[3] = 0.9
    assert torch.equal(counting_probs(columns, CANDIDATES, probs, smallest=0.0), torch.ones(4, 3))


def test_given_its_parent_at_the_same_time_a_grandparent_has_no_effect():
    """a acts on b after a step, b on c and d within it."""
    values = np.random.default_rng(0).normal(size=(2_000, 4))
    values[1:, 1] += values[:-1, 0]
    values[:, 2] += values[:, 1]
    values[:, 3] += values[:, 1]
    pairs, layout = one_step(values)
    columns, probs = build_columns(pairs, layout, ColumnForm()), torch.zeros(4, 3)
    probs[2, :2], probs[1, 0] = 0.9, 0.9
    beside = beside_others(columns, columns.targets[:, :, 0], CANDIDATES.targets)
    assert beside.own.shape[2] == columns.own.shape[2] + 2
    assert torch.equal(beside.own[:, 2, -2:], columns.targets[:, [1, 3], 0])
    assert torch.equal(beside.own[:, 0, -2:], torch.zeros(len(pairs), 2))
    before, after = (counting_probs(one, CANDIDATES, probs, leak=WITHIN_STEP)[2, 0] for one in (columns, beside))
    assert after < 0.8 < 0.95 < before


def test_what_a_wrong_form_leaves_over_is_no_edge():
    """``d`` saturates in ``a``; ``b`` follows ``a`` and explains a little of what a line leaves over."""
    rng, rows = np.random.default_rng(0), 20_000
    values = rng.normal(size=(rows, 4))
    values[:, 1] = values[:, 0] ** 3 / 8 + values[:, 1]
    values[1:, 3] = np.tanh(values[:-1, 0]) + 0.3 * values[1:, 3]
    pairs, layout = one_step(values)
    given, without = (
        parent_evidence(
            pairs, layout, CANDIDATES, resamples=0, density=0.1, form=ColumnForm(), smallest=smallest
        ).probs[3]
        for smallest in (0.02, 0.0)
    )
    assert given[0] > 0.99
    assert given[1] < 0.2 < 0.9 < without[1]

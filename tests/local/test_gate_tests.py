"""Which edges act at times: likelihood ratios, and intervals that equal those of a fine grid."""

import math
from dataclasses import replace

import pytest
import torch

from gated_nodes import fitted
from tacit.local import Dependence, GatedRegression
from tacit.local.gates import QUANTILE, choose_gates, gate_scales, judge_gates
from tacit.observation import GaussianNoise

DOUBLE = torch.float64


def regression(rng, probs, rows=600, sigma=0.5):
    own, count = torch.ones(rows, 1, dtype=DOUBLE), len(probs)
    sent = torch.randn(count, rows, 1, generator=rng).double()
    gates = (torch.rand(count, rows, generator=rng) < torch.tensor(probs)[:, None]).double()
    targets = (gates * sent[..., 0]).sum(0) + sigma * torch.randn(rows, generator=rng).double()
    zeros = torch.zeros(rows, dtype=DOUBLE)
    return GatedRegression(own, sent, zeros, targets, torch.ones_like(zeros), GaussianNoise(1).double())


def test_gates_are_chosen_where_edges_act_at_times(rng):
    data = regression(rng, (1.0, 0.5, 1.0))
    (fit,) = choose_gates([data], [torch.ones(3, dtype=torch.bool)])
    assert fit.gated.tolist() == [False, True, False]
    assert fit.edge_probs[1].item() == pytest.approx(0.5, abs=0.1)


def test_only_edges_that_may_have_a_gate_get_one(rng):
    data = regression(rng, (0.5, 0.5))
    assert choose_gates([data], [torch.tensor([False, True])])[0].gated.tolist() == [False, True]


@pytest.mark.parametrize("prob", [0.3, 0.5, 0.9, 1.0])
def test_the_ends_are_where_the_profile_likelihood_falls_by_the_quantile(rng, prob):
    data = regression(rng, (prob,))
    (found,) = judge_gates([data], [torch.tensor([True])])
    gate = fitted(data, fitted(data).with_gate(0, 0.7))
    top = max(gate.log_likelihood, fitted(data).log_likelihood)
    for end in (float(found.low[0]), float(found.high[0])):
        if end == 1:
            continue
        held = fitted(data, gate.with_gate(0, end), 0)
        assert math.sqrt(2 * (top - held.log_likelihood)) == pytest.approx(QUANTILE, abs=1e-3)
    assert (float(found.high[0]) == 1) == (prob == 1)


def test_scales_that_differ_by_rounding_move_no_end(rng):
    data, may_gate = regression(rng, (0.5, 0.9), rows=150), [torch.ones(2, dtype=torch.bool)]
    ends = [
        torch.stack([found.low, found.high])
        for scale in (1.1, 1.1 + 1e-7)
        for found in judge_gates([data], may_gate, scales=[torch.full((2,), scale, dtype=DOUBLE)])
    ]
    torch.testing.assert_close(*ends, rtol=1e-6, atol=1e-6)


def test_a_gate_that_explains_nothing_has_no_scale(rng):
    """Without noise the fit with a gate ends far below the fit without it, where its scores mean nothing."""
    data = regression(rng, (1.0,), rows=100, sigma=1e-3)
    [scale] = gate_scales([data], [torch.tensor([True])], [Dependence()])
    assert 1 <= float(scale[0]) < 2


def test_a_weak_edge_has_an_interval_up_to_one_and_down_to_almost_nothing(rng):
    data = regression(rng, (1.0,), rows=100, sigma=30.0)
    (found,) = judge_gates([data], [torch.tensor([True])])
    assert found.high[0] == 1
    assert found.low[0] < 0.2


def test_without_intervals_nothing_is_claimed(rng):
    (found,) = judge_gates([regression(rng, (0.5,))], [torch.tensor([True])], intervals=False)
    assert (found.low[0].item(), found.high[0].item()) == (0.0, 1.0)
    assert bool(found.fit.gated[0])


@pytest.mark.parametrize("prob", [0.5, 1.0])
def test_rows_that_occur_four_times_do_not_narrow_an_interval(rng, prob):
    """Four copies of each row, as the rows of a series or as neighbours, have the interval of one."""
    data = regression(rng, (prob,), rows=300)
    rows = torch.arange(300).repeat_interleave(4)
    names = ("own", "offset", "targets", "weights")
    four = replace(data, sent=data.sent[:, rows], **{name: getattr(data, name)[rows] for name in names})
    may_gate = [torch.tensor([True])]
    (once,) = judge_gates([data], may_gate, [Dependence()])
    (of_series,) = judge_gates([four], may_gate, [Dependence(1, rows)])
    (alone,) = judge_gates([four], may_gate)
    for end in ("low", "high"):
        assert float(getattr(of_series, end)[0]) == pytest.approx(float(getattr(once, end)[0]), abs=0.01)
    assert of_series.fit.gated.tolist() == once.fit.gated.tolist()
    (neighbours,) = judge_gates([four], may_gate, [Dependence(16)])  # 1 + 2 (3/4 15/16 + 1/2 14/16 + ...) = 3.7 of 4
    widths = [float((one.high - one.low)[0]) for one in (once, of_series, neighbours, alone)]
    assert widths[2] > 0.85 * widths[0]
    assert widths[3] < 0.65 * widths[0]

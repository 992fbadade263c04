"""Backgrounds that are found on seeded series, those that must not be found, and edges beside them."""

import itertools

import numpy as np
import pytest
import torch

from tacit.assessment.evidence import Candidates, Clock, Term, find_backgrounds, parent_evidence
from tacit.data import DAY, Pairs
from tacit.predictors import SeriesLayout

START = 19700 * DAY  # a Saturday, in seconds
HOUR = DAY / 24
WINDOW = 4
LISTED = 0.9  # a single edge is listed from here on, at a false discovery rate of 10%


def found_in(*parts, step=1.0, dated=False, **options):
    """Backgrounds of one or several series (time, node): the terms of the likeliest background of each node."""
    backgrounds = find_backgrounds(*prepared(parts, step, dated), **options)
    nodes = parts[0].shape[1]
    return [()] * nodes if backgrounds is None else [of_one[0].terms for of_one in backgrounds.of_target]


def prepared(parts, step=1.0, dated=False):
    inputs, targets, times = [], [], []
    for values in map(torch.as_tensor, parts):
        count = len(values) - WINDOW
        inputs.append(torch.stack([values[lag : lag + count] for lag in range(WINDOW)], 2))
        targets.append(values[WINDOW:, :, None])
        times.append(START * dated + step * torch.arange(WINDOW, len(values), dtype=torch.float64))
    series = torch.cat([torch.full((len(one),), number) for number, one in enumerate(inputs)])
    pairs = Pairs(
        torch.cat(inputs), torch.cat(targets), series=series if len(parts) > 1 else None, times=torch.cat(times)
    )
    return pairs, SeriesLayout(WINDOW, 1), all_edges(pairs.num_nodes), Clock.of(pairs, dated=dated)


def all_edges(nodes):
    target, source = (1 - torch.eye(nodes)).nonzero().unbind(1)
    return Candidates.from_edges(source, target, nodes)


def own_past(seed, rows, nodes, weight=0.4, burn=50):
    """Independent nodes with their own past."""
    noise = np.random.default_rng(seed).normal(size=(rows + burn, nodes))
    values = np.zeros_like(noise)
    for row in range(1, len(values)):
        values[row] = weight * values[row - 1] + noise[row]
    return values[burn:]


def waves(rows, nodes, period, size=1.5):
    """A cycle with a phase of each node."""
    return size * np.sin(2 * np.pi * np.arange(rows)[:, None] / period + 1.3 * np.arange(nodes))


def test_a_daily_cycle_has_the_period_of_the_calendar():
    found = found_in(own_past(0, 800, 6) + waves(800, 6, 24), step=HOUR, dated=True)
    for terms in found:
        assert [(term.kind, term.place, term.searched) for term in terms] == [("wave", DAY, 1.0)]


def test_harmonics_of_a_cycle():
    """A peak of four hours a day is not a sine."""
    peak = 4.0 * (np.arange(1200) % 24 < 4)[:, None]
    for terms in found_in(own_past(0, 1200, 4) + peak, step=HOUR, dated=True):
        harmonics = [term.harmonic for term in terms if term.place == DAY]
        assert len(harmonics) == len(terms) >= 3
        assert {1, 2, 3} <= {*harmonics} <= {*range(1, 13)} - {6, 12}  # those of a sixth of the day have amplitude 0


def test_the_period_of_a_cycle_without_dates():
    for terms in found_in(own_past(1, 1000, 5) + waves(1000, 5, 23.7)):
        (wave,) = terms
        assert wave.kind == "wave"
        assert wave.place == pytest.approx(23.7, abs=0.05)
        assert wave.searched == 1  # all nodes share it


def test_two_cycles():
    for terms in found_in(own_past(2, 1200, 4) + waves(1200, 4, 23.7) + waves(1200, 4, 61.0)):
        assert sorted(term.place for term in terms) == [pytest.approx(23.7, abs=0.1), pytest.approx(61.0, abs=0.6)]


def test_cycles_of_several_series():
    """The series have the same cycle at different times; a dated one has the period of the calendar."""
    parts = [own_past(seed, 300, 3) + waves(300, 3, 23.7) for seed in range(4)]
    for terms in found_in(*parts):
        (wave,) = terms
        assert wave.place == pytest.approx(23.7, abs=0.1)


@pytest.mark.parametrize("row", [431, 222])
def test_the_row_of_a_shift(row):
    values = own_past(3, 800, 5)
    values[row:, 2] += 4.0
    found = found_in(values)
    (shift,) = found[2]
    assert shift.kind == "shift"
    assert shift.place == pytest.approx(row, abs=2)
    assert [len(terms) for terms in found] == [0, 0, 1, 0, 0]


def test_shifts_of_several_series_at_the_same_time():
    parts = [own_past(seed, 300, 3) for seed in range(2)]
    for values in parts:
        values[140:, 1] += 4.0
    found = found_in(*parts)
    assert [(term.kind, term.series) for term in found[1]] == [("shift", 0), ("shift", 1)]
    assert all(term.place == pytest.approx(140, abs=2) for term in found[1])
    assert found[0] == found[2] == ()


def test_one_node_of_twelve_has_a_trend():
    values = own_past(4, 800, 12)
    values[:, 7] += 3 * np.sin(np.arange(800) / 800 * 4)
    found = found_in(values)
    assert [node for node, terms in enumerate(found) if terms] == [7]
    assert {term.kind for term in found[7]} <= {"trend", "shift"}


def test_weekends():
    """Days with a lower level on Saturdays and Sundays: a week is no sine."""
    rows, nodes = 700, 4
    dip = -3.0 * (np.arange(rows) % 7 < 2)[:, None]  # the first day is a Saturday
    for terms in found_in(own_past(5, rows, nodes, 0.3) + dip, step=DAY, dated=True):
        assert [term.kind for term in terms] == ["category"]


def autoregression(seed, rows, weights, nodes=4):
    """Nodes with two lags of their own past: an oscillation whose phase drifts."""
    noise = np.random.default_rng(seed).normal(size=(rows, nodes))
    values = np.zeros_like(noise)
    for row in range(2, rows):
        values[row] = weights[0] * values[row - 1] + weights[1] * values[row - 2] + noise[row]
    return values


def coupled(seed, rows, nodes=6):
    rng = np.random.default_rng(seed)
    weights = 0.4 * np.eye(nodes) + 0.3 * np.roll(np.eye(nodes), 1, 1)
    values = rng.normal(size=(rows, nodes))
    for row in range(1, rows):
        values[row] += weights @ values[row - 1]
    return values


def transients(seed):
    """A panel of 10 series that each relax after a push, as experiments with genes do."""
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(10):
        values = np.zeros((101, 5))
        values[0] = rng.normal(size=5) * 4
        for row in range(1, 101):
            push = 1.0 * (row < 50) * (np.arange(5) == 0)
            values[row] = 0.9 * values[row - 1] + 0.1 * np.roll(values[row - 1], 1) * [0, 1, 1, 1, 1] + push
        parts.append(values + 0.2 * rng.normal(size=values.shape))
    return parts


PLAIN = {
    "coupled": lambda seed: [coupled(seed, 600)],
    "random walks": lambda seed: [np.random.default_rng(seed).normal(size=(600, 4)).cumsum(0)],
    "drifting oscillations": lambda seed: [autoregression(seed, 1000, (1.8 * np.cos(2 * np.pi / 20), -0.81))],
    "transients": transients,
}


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("seed", range(3))
def test_dynamics_are_no_background(kind, seed):
    parts = PLAIN[kind](seed)
    assert found_in(*parts) == [()] * parts[0].shape[1]


def trends(seed, rows=600, nodes=8):
    """A slow curve of each node of its own."""
    rng = np.random.default_rng(seed + 100)
    phase, turns = rng.uniform(0, 6, nodes), rng.uniform(0.5, 1.5, nodes)
    return own_past(seed, rows, nodes) + 3 * np.sin(2 * np.pi * np.linspace(0, 1, rows)[:, None] * turns + phase)


NULL = {
    "trends": (lambda seed: trends(seed), False),
    "cycles": (lambda seed: own_past(seed, 1000, 8) + waves(1000, 8, 24), True),
}


@pytest.mark.parametrize(("kind", "seed"), [*itertools.product(NULL, range(3))])
def test_no_edges_between_nodes_with_backgrounds(kind, seed):
    """Nodes without edges: edges are listed if the background is left out, and none is beside it."""
    make, dated = NULL[kind]
    *pairs, candidates, clock = prepared([make(seed)], HOUR, dated)
    backgrounds = find_backgrounds(*pairs, candidates, clock)
    beside, without = (
        (parent_evidence(*pairs, candidates, resamples=4, backgrounds=one, smallest=0.0).probs >= LISTED).sum().item()
        for one in (backgrounds, None)
    )
    assert beside == 0
    assert without > 0


def test_an_edge_beside_cycles_is_found():
    values = own_past(0, 1000, 5) + waves(1000, 5, 24)
    noise = own_past(0, 1000, 5)
    values[1:, 3] += 0.4 * noise[:-1, 1]
    *pairs, candidates, clock = prepared([values], HOUR, True)
    found = parent_evidence(
        *pairs, candidates, resamples=4, backgrounds=find_backgrounds(*pairs, candidates, clock)
    )  # fmt: skip
    target, place = found.believed.nonzero().unbind(1)
    read = found.screened.sources[target, place]
    assert list(zip(read.tolist(), target.tolist(), strict=True)) == [(1, 3)]


def test_terms_that_are_asked_for():
    """Forced terms are in every background, and only kinds that are asked for are searched for."""
    values = own_past(0, 600, 3) + waves(600, 3, 23.7)
    found = found_in(values, forced=(Term("trend"),), kinds=())
    assert found == [(Term("trend"),)] * 3
    assert all(term.kind != "wave" for terms in found_in(values, kinds=("trend", "shift")) for term in terms)


@pytest.mark.parametrize("own_term", ["trend", "shift"])
def test_a_source_with_a_background_of_its_own_keeps_its_edge(own_term):
    """The source sends its deviations, so its target needs the terms of the source beside the edge."""
    rng = np.random.default_rng(0)
    values = np.zeros((350, 4))
    for row in range(1, 350):
        values[row] = 0.4 * values[row - 1] + rng.normal(size=4)
        values[row, 1] += 0.4 * values[row - 1, 0]
    values = values[50:]
    rows = np.arange(300)
    values[:, 0] += 20 * rows / 300 if own_term == "trend" else 8.0 * (rows >= 140)
    pairs, layout, edges, clock = prepared([values])
    backgrounds = find_backgrounds(pairs, layout, edges, clock)
    found = parent_evidence(pairs, layout, edges, resamples=0, backgrounds=backgrounds)
    into_1 = edges.sources[1].tolist()
    assert float(found.probs[1, into_1.index(0)]) > 0.95
    assert int((found.probs > 0.5).sum()) == 1

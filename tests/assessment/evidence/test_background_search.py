"""The parts of the search for backgrounds against plain least squares, and averages over backgrounds."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from parent_sets import left_over, one_step
from tacit.assessment.evidence import (
    FEWEST_ROWS,
    HOURS,
    SHORTEST,
    WEEKEND,
    Backgrounds,
    Candidates,
    Clock,
    ColumnForm,
    Term,
    find_backgrounds,
    parent_evidence,
)
from tacit.assessment.evidence.background_search import EDGE_PRIOR, FEWEST_FOUND, OVERSAMPLED, BackgroundSearch
from tacit.assessment.evidence.backgrounds import TargetBackground
from tacit.assessment.evidence.candidates import build_columns
from tacit.data import DAY, WEEK, Category, Pairs, Wave
from tacit.predictors import SeriesLayout

TOLERANCE = 1e-6  # relative; the search adds a ridge of 1e-8 to the squared size of each column,
OF_WAVES = 1e-3  # and of 1e-4 to that of a sine of any period
START = 19700 * DAY  # a date in seconds
NODES = 4


def joined(parts, window=4, step=1.0, start=0.0):
    """Pairs of one or several series (time, node) that start at one time."""
    made = [one_step(values, window)[0] for values in parts]
    times = [start + step * torch.arange(window, window + len(one), dtype=torch.float64) for one in made]
    series = torch.cat([torch.full((len(one),), 3 * number) for number, one in enumerate(made)])
    inputs, targets = torch.cat([one.inputs for one in made]), torch.cat([one.targets for one in made])
    pairs = Pairs(inputs, targets, None, series if len(parts) > 1 else None, torch.cat(times))
    return pairs, SeriesLayout(window, 1)


def all_edges(nodes=NODES):
    target, source = (1 - torch.eye(nodes)).nonzero().unbind(1)
    return Candidates.from_edges(source, target, nodes)


def values_of(seed, rows, nodes=NODES):
    """Node 1 is driven by node 0, all have their own past and a cycle of 17.3 rows."""
    rng = np.random.default_rng(seed)
    values = np.zeros((rows, nodes))
    for row in range(1, rows):
        values[row] = 0.4 * values[row - 1] + rng.normal(size=nodes) + 0.4 * math.sin(2 * math.pi * row / 17.3)
        values[row, 1] += 0.6 * values[row - 1, 0]
    return values


DATA = {
    "one series": {"rows": (420,)},
    "missing targets": {"rows": (420,), "missing": 0.2},
    "two series": {"rows": (300, 240)},
    "two series with missing targets": {"rows": (300, 240), "missing": 0.2},
}


def search_of(rows=(420,), missing=0.0, *, dated=False, candidates=None, **options):
    parts = [values_of(seed, count) for seed, count in enumerate(rows)]
    pairs, layout = joined(parts, step=DAY / 24 if dated else 1.0, start=START if dated else 0.0)
    if missing:
        known = torch.from_numpy(np.random.default_rng(9).random(tuple(pairs.targets.shape)) >= missing)
        pairs = replace(pairs, observed=known.double())
    columns = build_columns(pairs, layout, ColumnForm(2, offsets=len(rows) > 1))
    clock = Clock.of(pairs, dated=dated)
    return BackgroundSearch(columns, all_edges() if candidates is None else candidates, clock, **options)


def design(search, target, chosen=(), parents=()):
    """All columns of a regression (row, column): own past, an intercept per series, background and parents."""
    columns = search.columns
    intercepts = columns.shared if columns.series is None else torch.nn.functional.one_hot(columns.series).double()
    read = [columns.sources[:, node] for node in parents]
    return torch.cat([columns.own[:, target], intercepts, *map(search._of, chosen), *read], 1).numpy()


def squares(search, target, chosen=(), parents=(), more=None):
    """The residual sum of squares of least squares."""
    found = design(search, target, chosen, parents)
    found = found if more is None else np.hstack([found, more])
    return left_over(found, search.columns.targets[:, target, 0].numpy(), search.columns.observed[:, target].numpy())


def parents_of(search, *nodes):
    """Node 1 reads node 0, and every target the given ones."""
    found = torch.zeros_like(search.candidates.used)
    for target in range(NODES):
        for source in nodes:
            found[target] |= search.candidates.sources[target] == source
    return found


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("chosen", [(), (Term("shift", place=150.0), Term("wave", place=17.3))])
def test_the_scan_for_a_shift_is_least_squares_on_every_row(data, chosen):
    search = search_of(**DATA[data])
    parents = parents_of(search, 0)
    which = [0, 1, 3]
    basis, left = search._basis(which, [chosen] * NODES, parents)
    found = search._shifts(which, [chosen] * NODES, basis, left, search.root[which])
    clock = search.clock
    for (gain, term), target in zip(found, which, strict=True):
        read = [0] if target else []
        before, gains = squares(search, target, chosen, read), {}
        for part, number in zip(clock.parts, clock.numbers, strict=True):
            for row in range(part.start + FEWEST_ROWS, part.stop - FEWEST_ROWS):
                time = float(clock.times[row])
                if all(one.series != number or abs(one.place - time) >= FEWEST_ROWS for one in chosen[:1]):
                    step = search._of(Term("shift", place=time, series=number)).numpy()
                    gains[time, number] = before - squares(search, target, chosen, read, step)
        best = max(gains, key=gains.get)
        assert (term.place, term.series, term.searched) == (*best, len(clock.times))
        assert gain == pytest.approx(gains[best], rel=TOLERANCE)


@pytest.mark.parametrize("data", DATA)
def test_a_refined_wave_is_least_squares_at_its_period(data):
    search = search_of(**DATA[data])
    parents = parents_of(search, 0)
    basis, left = search._basis([2], [()] * NODES, parents)
    gain, term = search._refined(1 / 17.0, 1 / 256, basis[0], left[0], search.root[2], 210.0)
    assert term.kind == "wave"
    before, after = squares(search, 2, (), [0]), squares(search, 2, (term,), [0])
    assert gain == pytest.approx(before - after, rel=OF_WAVES)
    for other in [17.3, *term.place * (1 + np.linspace(-0.02, 0.02, 41))]:  # no neighbouring period explains more
        assert after <= squares(search, 2, (Term("wave", place=other),), [0]) * (1 + 1e-6)


@pytest.mark.parametrize("data", DATA)
def test_the_peak_of_the_spectrum_is_least_squares_on_the_same_frequencies(data, monkeypatch):
    """Only the place of the peak is exact: of the spectrum, the highest peaks are compared with a ridge."""
    search, places = search_of(**DATA[data]), []
    refined = search._refined

    def noted(frequency, *others):
        places.append(frequency)
        return refined(frequency, *others)

    monkeypatch.setattr(search, "_refined", noted)
    parents = parents_of(search, 0)
    basis, left = search._basis([2], [()] * NODES, parents)
    total = left.square().sum(1)
    ((gain, term),) = search._waves([2], [()] * NODES, basis, left, search.root[[2]], [(0.0, None)], total)
    longest, shortest = max(part.stop - part.start for part in search.clock.parts), search.clock.shortest
    size = OVERSAMPLED * 2 ** math.ceil(math.log2(longest))
    tried = np.arange(math.ceil(FEWEST_FOUND / shortest * size), int(size / SHORTEST)) / size
    left_by = [squares(search, 2, (), [0], Wave(1 / one).columns(search.clock.times.numpy())) for one in tried]
    assert places == [pytest.approx(tried[int(np.argmin(left_by))], abs=1e-12)]
    assert gain <= squares(search, 2, (), [0]) - squares(search, 2, (term,), [0]) + 1e-6


@pytest.mark.parametrize("data", DATA)
def test_shares_of_fixed_terms_are_least_squares(data):
    search = search_of(**DATA[data], dated=True)
    parents, chosen = parents_of(search, 0), (Term("trend", 1),)
    which = [1, 2]
    basis, left = search._basis(which, [chosen] * NODES, parents)
    terms = (Term("trend", 3), Term("wave", place=DAY), Term("wave", place=DAY, harmonic=3), WEEKEND)
    for term in terms:
        found = search._shares(term, basis, left, search.root[which])
        for share, target in zip(found.tolist(), which, strict=True):
            before, after = squares(search, target, chosen, [0]), squares(search, target, (*chosen, term), [0])
            assert share == pytest.approx(before - after, rel=TOLERANCE)
            assert left[which.index(target)].square().sum().item() == pytest.approx(before, rel=TOLERANCE)
    of_sums = search._sums(which, [chosen] * len(which), parents)
    assert of_sums == pytest.approx([squares(search, target, chosen, [0]) for target in which], rel=TOLERANCE)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("horizon", [1, 3])
def test_the_score_is_its_formula(data, horizon):
    search = search_of(**DATA[data], horizon=horizon)
    wave, shift = Term("wave", place=17.3, searched=200.0), Term("shift", place=150.0, searched=416.0)
    chosen = [(), (wave,), (wave, wave._replace(harmonic=2, searched=1.0)), (Term("trend", 3), shift)]
    scores = [{} for _ in range(NODES)]
    parents = search._score(chosen, scores, range(NODES), torch.zeros_like(search.candidates.used))
    assert parents[1].any()
    for target, terms in enumerate(chosen):
        read = search.candidates.sources[target][parents[target]].tolist()
        rows = float(search.columns.observed[:, target].sum()) / horizon
        columns = sum(search._of(term).shape[1] for term in terms) + search.columns.group_size * len(read)
        expected = -rows / 2 * math.log(squares(search, target, terms, read)) - columns / 2 * math.log(rows)
        expected -= sum(math.log(term.searched) for term in terms) + EDGE_PRIOR * len(read)
        assert scores[target][terms] == pytest.approx(expected, abs=1e-4)
        ((found, weight),) = search._weighted(scores[target])
        assert (found, weight) == (terms, 1.0)


def test_weights_are_scores_with_prior_odds_of_the_kinds():
    search = search_of()
    wave, second = Term("wave", place=17.3), Term("wave", place=17.3, harmonic=2)
    search.priors = {"wave": 0.3, "trend": 0.2, "shift": 0.1, "category": 0.1}
    scores = {(): -10.0, (wave,): -9.5, (second, wave): -9.0, (Term("trend"), wave): -8.0, (Term("shift"),): -16.0}
    odds = [1.0, 3 / 7, 3 / 7, 3 / 7 / 4]
    masses = [odd * math.exp(score) for odd, score in zip(odds, list(scores.values())[:4], strict=True)]
    found = {one.terms: one.weight for one in search._weighted(scores)}
    assert set(found) == set(list(scores)[:4])  # the last is too far below the best
    assert [found[terms] for terms in list(scores)[:4]] == pytest.approx([mass / sum(masses) for mass in masses])


def test_required_parents_may_differ_in_number():
    free = all_edges()
    required = (torch.tensor([2, 3]), torch.tensor([0]), *[torch.zeros(0, dtype=torch.long)] * 2)
    search = search_of(candidates=replace(free, required=required))
    _, left = search._basis([0, 1, 2], [()] * NODES, torch.zeros_like(free.used))
    for number, read in enumerate(([2, 3], [0], [])):
        expected = squares(search, number, (), read)
        assert left[number].square().sum().item() == pytest.approx(expected, rel=TOLERANCE)
        assert search._sums([number], [()], torch.zeros_like(free.used)) == pytest.approx([expected], rel=TOLERANCE)


def test_parents_are_read_at_their_allowed_lags():
    free = all_edges()
    ages = torch.ones(*free.used.shape, 2, dtype=torch.long)  # only the older of two lags
    search = search_of(candidates=replace(free, ages=ages))
    parents = parents_of(search, 0)
    _, left = search._basis([1], [()] * NODES, parents)
    older = search.columns.sources[:, 0, :1].numpy()
    expected = squares(search, 1, (), [], older)
    assert left[0].square().sum().item() == pytest.approx(expected, rel=TOLERANCE)
    assert search._sums([1], [()], parents) == pytest.approx([expected], rel=TOLERANCE)


def test_a_cycle_of_a_source_that_acts_late_is_not_one_of_its_target():
    """The edge acts after four steps only. A search that did not read this lag would give its target the cycle."""
    rng, rows = np.random.default_rng(0), 800
    values = rng.normal(size=(rows, 2))
    values[:, 0] += 0.7 * np.sin(2 * np.pi * np.arange(rows) / 24)
    values[4:, 1] = 0.3 * values[4:, 1] + values[:-4, 0]
    pairs, layout = joined([values])
    ages = torch.tensor([[3, 3], [3, 3]])
    candidates = Candidates.from_edges(torch.tensor([0, 1]), torch.tensor([1, 0]), 2, ages=ages)
    found = find_backgrounds(pairs, layout, candidates, Clock.of(pairs, dated=False))
    assert [[term.kind for term in of_one[0].terms] for of_one in found.of_target] == [["wave"], []]


def test_forced_terms_have_one_order():
    """One set of terms in two orders would be two backgrounds, which share a weight."""
    given = (Term("wave", place=17.3), Term("trend"))
    for of_one in search_of(forced=given).run():
        for terms, _ in of_one:
            assert set(given) <= set(terms)
            assert list(terms) == sorted(terms)


def clock_of(lengths=(400,), step=1.0, start=0.0, dated=False):
    pairs, _ = joined([np.zeros((rows, 1)) + np.arange(rows)[:, None] for rows in lengths], 1, step, start)
    return Clock.of(pairs, dated=dated), pairs


def test_columns_at_later_times():
    clock, _ = clock_of()
    last = float(clock.times[-1])
    later = last + torch.arange(1.0, 101.0, dtype=torch.float64)
    wave = Term("wave", place=20.0, harmonic=2)
    np.testing.assert_allclose(
        clock.columns(wave, later, None), Wave(10.0).columns((later - 200).numpy()), rtol=0, atol=1e-9
    )
    assert (clock.columns(Term("shift", place=300.0), later, None) == 1).all()
    ramps = clock.columns(Term("trend", 3), later, None)
    at_end = clock.columns(Term("trend", 3), clock.times[-1:], None)
    slope = (ramps[0] - at_end[0]) / 1.0
    assert (slope > 0).all()
    np.testing.assert_allclose(ramps, at_end + (later - last)[:, None] * slope, rtol=0, atol=1e-9)
    assert (clock.columns(Term("trend", 3), clock.times[:1] - 50, None) == 0).all()


def test_a_trend_is_every_broken_line_with_its_knots():
    clock, _ = clock_of()
    first, last = float(clock.times[0]), float(clock.times[-1])
    ramps = clock.columns(Term("trend", 6), clock.times, None).numpy()
    heights = np.random.default_rng(0).normal(size=7)
    line = np.interp(clock.times.numpy(), np.linspace(first, last, 7), heights)
    assert left_over(np.hstack([ramps, np.ones((len(ramps), 1))]), line) < 1e-18


def test_columns_of_several_series():
    """Series 0 and 3 have their own trends and shifts; waves and parts of the date are shared."""
    clock, pairs = clock_of((300, 240))
    first = slice(0, 299)
    trend = clock.columns(Term("trend", 3), pairs.times, pairs.series)
    assert trend.shape == (len(pairs), 6)
    assert (trend[first, 3:] == 0).all()
    assert (trend[299:, :3] == 0).all()
    alone, _ = clock_of((300,))
    assert torch.equal(trend[first, :3], alone.columns(Term("trend", 3), pairs.times[first], None))
    shift = clock.columns(Term("shift", place=100.0, series=3), pairs.times, pairs.series)[:, 0]
    expected = (pairs.series == 3) & (pairs.times >= 100)
    assert torch.equal(shift, expected.double())
    wave = clock.columns(Term("wave", place=12.0), pairs.times, pairs.series)
    assert torch.equal(wave[:239], wave[299:])


def test_weekends_act_at_the_target_and_one_step_before():
    clock, _ = clock_of((800,), step=DAY / 24, start=START, dated=True)
    found = clock.columns(WEEKEND, clock.times, None)
    weekend = Category("weekend")
    now, before = weekend.columns(clock.times.numpy()), weekend.columns(clock.times.numpy() - DAY / 24)
    np.testing.assert_array_equal(found.numpy(), np.hstack([now, before]))


def test_hours_of_weekdays_and_weekends_take_the_place_of_weekends_and_waves_of_a_day():
    clock, _ = clock_of((800,), step=DAY / 24, start=START, dated=True)
    hours = clock.columns(HOURS, clock.times, None)
    assert hours.shape == (len(clock.times), 47)
    every = torch.cat([hours, torch.ones(len(hours), 1)], 1)
    day = Term("wave", place=DAY, harmonic=3)
    for term in (WEEKEND, day):
        inside = clock.columns(term, clock.times, None)[:, :1]
        assert float((every @ torch.linalg.lstsq(every, inside).solution - inside).abs().max()) < 1e-9
        assert clock.contains(HOURS, term)
    assert not clock.contains(HOURS, Term("wave", place=WEEK))
    assert not clock.contains(WEEKEND, HOURS)
    finer, _ = clock_of((800,), step=DAY / 48, start=START, dated=True)
    assert not finer.contains(HOURS, day)


def test_office_hours_are_one_term():
    rows, rng = 1500, np.random.default_rng(0)
    step = DAY / 24
    times = START + step * np.arange(rows)
    office = (Category("weekend").columns(times)[:, 0] == 0) & (times % DAY >= 8 * 3600) & (times % DAY < 18 * 3600)
    values = rng.normal(size=(rows, NODES))
    values[:, 2] += 3 * office
    pairs, layout = joined([values], step=step, start=START)
    clock = Clock.of(pairs, dated=True)
    found = find_backgrounds(pairs, layout, all_edges(), clock)
    assert [of_one[0].terms for of_one in found.of_target] == [(), (), (HOURS,), ()]


def test_terms_that_a_table_can_carry():
    clock, _ = clock_of((800,), step=DAY / 24, start=START, dated=True)  # 33 days
    sizes = [term.size for term in clock.fixed_terms() if term.kind == "trend"]
    assert sizes == [1, 3, 6, 12]
    assert [term.place for term in clock.fixed_terms() if term.kind == "wave"] == [DAY, WEEK]
    assert {WEEKEND, HOURS} <= {*clock.fixed_terms()}
    days, _ = clock_of((800,), step=DAY, start=START, dated=True)
    assert {WEEKEND, HOURS} & {*days.fixed_terms()} == {WEEKEND}
    numbers, _ = clock_of((800,), step=DAY / 24, start=START)
    assert {term.kind for term in numbers.fixed_terms()} == {"trend"}
    panel, _ = clock_of((150, 150))
    assert panel.fixed_terms() == []


def test_no_period_is_searched_for_in_bursts_of_rows():
    """A spectrum of all steps between two bursts would take more memory than there is."""
    pairs, layout = joined([values_of(0, 300)])
    times = pairs.times + 1e12 * (torch.arange(len(pairs)) >= 150)
    pairs = replace(pairs, times=times)
    clock = Clock.of(pairs, dated=False)
    found = find_backgrounds(pairs, layout, all_edges(), clock)
    assert found is None or all(term.kind != "wave" for of_one in found.of_target for term in of_one[0].terms)


def test_no_clock_without_ascending_times():
    _, pairs = clock_of()
    assert Clock.of(replace(pairs, times=None), dated=False) is None
    assert Clock.of(replace(pairs, times=pairs.times.flip(0)), dated=False) is None
    assert Clock.of(pairs[:49], dated=False) is None


def test_probabilities_are_averaged_over_backgrounds():
    values = values_of(0, 300)
    pairs, layout = joined([values])
    clock = Clock.of(pairs, dated=False)
    wave, trend, shift = Term("wave", place=17.3), Term("trend", 3), Term("shift", place=120.0)
    chosen = [[(), (wave,)], [(wave,)], [(trend,), (), (shift, wave)], [(shift,), (trend, wave)]]
    weights = [[0.3, 0.7], [1.0], [0.5, 0.3, 0.2], [0.9, 0.1]]

    def found(of_target):
        return parent_evidence(
            pairs, layout, all_edges(), density=0.2, resamples=0, form=ColumnForm(1), smallest=0.0,
            backgrounds=Backgrounds(clock, of_target),
        ).probs  # fmt: skip

    mixed = found([
        [TargetBackground(terms, weight) for terms, weight in zip(*both, strict=True)]
        for both in zip(chosen, weights, strict=True)
    ])  # fmt: skip
    expected = torch.zeros_like(mixed)
    for rank in range(3):
        single = found([[TargetBackground(one[rank % len(one)], 1.0)] for one in chosen])
        for target, one in enumerate(weights):
            expected[target] += one[rank] * single[target] if rank < len(one) else 0.0
    assert float((mixed - found([[TargetBackground(one[0], 1.0)] for one in chosen])).abs().max()) > 1e-3
    torch.testing.assert_close(mixed, expected, rtol=0, atol=1e-12)

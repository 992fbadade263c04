"""The background of a fit: found before the evidence, turned into columns of the pairs, said in one line, and drawn."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from tacit.assessment.evidence import (
    BELIEVED,
    FEWEST_CYCLES,
    FEWEST_ROWS,
    HOURS,
    KINDS,
    MOST_SERIES,
    SHORTEST,
    WEEKEND,
    Backgrounds,
    Candidates,
    Clock,
    Term,
    find_backgrounds,
)
from tacit.config import DataOptions, FitConfig
from tacit.data import DAY, NO_BACKGROUND, WEEK, YEAR, Background, Category, Level, Wave
from tacit.data import Term as Column
from tacit.errors import require
from tacit.graph import EdgeRules
from tacit.pipeline.dataset import Dataset, longest_window
from tacit.pipeline.evidence import RegressionEvidence, all_pairs, layout_of
from tacit.pipeline.forecasts import row_labels
from tacit.pipeline.known_edges import read_rules
from tacit.pipeline.sources import Source
from tacit.predictors import SeriesLayout
from tacit.records import BackgroundTable
from tacit.words import Choice, choose

HALF_LIVES = (4.0, 8.0, 16.0, 32.0, 64.0, 128.0)  # of the level of nodes with a trend or a shift, in rows
NAMED = 3  # nodes in a sentence
# Of the curves: nodes, series, and points of a node. A longer series has means of neighbouring rows and its last rows,
# so that slow terms and cycles are both visible.
MOST_CURVES, MOST_CURVE_SERIES, MOST_POINTS = 20, 10, 1000
PERIODS = {"hourly": DAY / 24, "daily": DAY, "weekly": WEEK, "yearly": YEAR}
CATEGORIES = {"weekend": (WEEKEND, DAY), "hours": (HOURS, DAY / 24)}  # and the largest distance of rows
SEARCHED = {"trend": "trend", "shift": "shift", "cycle": "wave"}  # names of terms that are searched for
SLOW = ("trend", "shift")
LEFT_OUT = (
    f"; {{kinds}} were not searched for, which requires {2 * FEWEST_ROWS} rows, or {4 * FEWEST_ROWS} in each of at "
    f"most {MOST_SERIES} series"
)
WORDS = {"trend": "slow trend", "shift": "level shift", "category": "weekends"}
HOURS_WORDS = "hours of weekdays and weekends"


def choose_backgrounds(dataset: Dataset, rules: EdgeRules, config: FitConfig) -> Backgrounds | None:
    """Return the backgrounds of all nodes; None if there are none, and for pairs without time."""
    names, preparation = config.data.background, dataset.preparation
    if names == ("none",) or not preparation.is_series:
        return None
    asked = () if names == ("auto",) else names
    pairs = all_pairs(dataset.split)
    clock = Clock.of(pairs, dated=dataset.dated)
    if clock is None:
        require(
            not asked,
            f"background names '{', '.join(asked)}', which requires {FEWEST_ROWS} rows with a target, got "
            f"{len(pairs)}; leave it out",
        )
        return None
    terms = [_term(name, clock) for name in asked]
    return find_backgrounds(
        pairs,
        layout_of(preparation),
        Candidates.from_rules(rules.lagged, preparation.horizon),
        clock,
        forced=tuple(term for term in terms if term is not None),
        kinds=tuple(SEARCHED[name] for name in asked if name in SEARCHED) if asked else KINDS,
        horizon=preparation.horizon,
    )


def background_of(source: Source, config: FitConfig) -> Backgrounds | None:
    """Return the backgrounds that a fit of the source would find."""
    data = config.data.model_copy(update={"window": config.data.window or longest_window(source.content)})
    dataset = Dataset.prepare(source, data, seed=0, scaled=True)
    return choose_backgrounds(dataset, read_rules(dataset, config.graph, None), config)


def _term(name: str, clock: Clock) -> Term | None:
    """Return the term of a name, None if it is searched for; one that the table cannot carry is refused."""
    if name in ("trend", "shift"):
        require(
            clock.has_trends,
            f"background names '{name}', which requires {2 * FEWEST_ROWS} rows, or {4 * FEWEST_ROWS} in each of at "
            f"most {MOST_SERIES} series, got {clock.shortest} in the shortest of {len(clock.parts)}; leave it out",
        )
        return Term("trend") if name == "trend" else None
    if name == "cycle":
        require(
            clock.shortest >= 2 * FEWEST_ROWS,
            f"background names 'cycle', which requires {2 * FEWEST_ROWS} rows in each series, got {clock.shortest}; "
            "leave it out",
        )
        return None
    require(
        clock.dated,
        f"background names '{name}', but the times are numbers, not dates; write times as YYYY-MM-DD HH:MM:SS, or name "
        "'cycle' to search for a period",
    )
    period = WEEK if name in CATEGORIES else PERIODS[name]
    longest = CATEGORIES[name][1] if name in CATEGORIES else period / SHORTEST
    require(
        clock.step <= longest,
        f"background names '{name}', which requires rows at most {longest / 3600:.3g} hours apart, got "
        f"{clock.step / 3600:.3g}; leave it out",
    )
    require(
        clock.cycles(period) >= FEWEST_CYCLES,
        f"background names '{name}', which requires {FEWEST_CYCLES} cycles or more, got {clock.cycles(period):.2g} in "
        f"{clock.cycles(DAY):.3g} days; leave it out, or pass more rows",
    )
    return CATEGORIES[name][0] if name in CATEGORIES else Term("wave", place=period)


def fit_background(evidence: RegressionEvidence, source: Source, options: DataOptions, seed: int) -> Background:
    """Return the columns of the pairs for the likeliest background of each node.

    A trend or a shift becomes a level, an exponentially weighted mean of the node's own past, because a forecast does
    not know how a trend goes on. The half-life is the one that explains most. Edges read deviations from the
    level of the source, so nodes downstream have a level too, which follows what these deviations leave out.
    """
    backgrounds = evidence.backgrounds
    if backgrounds is None:
        return NO_BACKGROUND
    best = [of_one[0].terms for of_one in backgrounds.of_target]
    found: dict[Column, list[bool]] = {}
    for wave in _merged([term for terms in best for term in terms if term.kind == "wave"], backgrounds.clock):
        near = [
            [term for term in terms if term.kind == "wave" and _same(term, wave, backgrounds.clock)] for terms in best
        ]
        harmonics = max(term.harmonic for terms in near for term in terms)
        found[Wave(wave.place, harmonics)] = [bool(terms) for terms in near]
    hours, weekends = ([term in terms for terms in best] for term in (HOURS, WEEKEND))
    if any(hours):
        found[Category("weekend hour")] = hours
    if any(weekends):
        found |= {Category("weekend", earlier): weekends for earlier in (0.0, backgrounds.clock.step)}
    ends_and_exists = zip(*(one.tolist() for one in evidence.edges()), strict=True)
    believed = [(sender, reader) for sender, reader, exists in ends_and_exists if exists >= BELIEVED]
    slow = [any(term.kind in SLOW for term in terms) for terms in best]
    while more := {t for s, t in believed if slow[s] and not slow[t]}:
        slow = [one or node in more for node, one in enumerate(slow)]
    made = Background(tuple(found), np.array(list(found.values()), dtype=bool).reshape(-1, len(best)).T)
    return _with_level(made, np.array(slow), source, options, seed) if any(slow) else made


def _with_level(made: Background, slow: np.ndarray, source: Source, options: DataOptions, seed: int) -> Background:
    """Add to each of the slow nodes the level with the half-life that explains most of its targets in training."""
    nodes, tried = np.flatnonzero(slow).tolist(), tuple(Level(half_life) for half_life in HALF_LIVES)
    every = np.repeat(slow[:, None], len(tried), 1)
    every_level = Background((*made.terms, *tried), np.concatenate([made.used, every], 1))
    dataset = Dataset.prepare(source, options, seed=seed, scaled=True, background=every_level)
    train, sizes = dataset.split.train, dataset.preparation.sizes
    rest, appended = train.inputs[:, :, : -len(tried)], train.inputs[:, :, -len(tried) :]  # the levels come last
    layout = SeriesLayout(sizes.window, sizes.num_features, sizes.out_channels, sizes.known - len(tried) + 1, levels=1)
    newest, lost = layout.newest(train.inputs).double(), np.zeros((len(tried), len(slow)))
    for number in range(len(tried)):
        read = layout.relative(torch.cat([rest, appended[:, :, number : number + 1]], 2))[..., :-1].double()
        for node in nodes:
            known = slice(None) if train.observed is None else train.observed[:, node, 0] > 0
            own = torch.nn.functional.pad(read[known, node], (0, 1), value=1.0)
            change = (train.targets[known, node, :1] - newest[known, node, :1]).double()
            left = change - own @ torch.linalg.lstsq(own, change, driver="gelsd").solution
            lost[number, node] = float(left.square().mean())
    best = lost.argmin(0)
    chosen = sorted({int(best[node]) for node in nodes})
    levels = tuple(Level(HALF_LIVES[number]) for number in chosen)
    used = [slow & (best == number) for number in chosen]
    return Background((*made.terms, *levels), np.concatenate([made.used, np.stack(used, 1)], 1))


def _same(one: Term, other: Term, clock: Clock) -> bool:
    """Return whether the table is too short to distinguish two periods."""
    return abs(clock.cycles(one.place) - clock.cycles(other.place)) < 0.3


def _merged(waves: Sequence[Term], clock: Clock) -> list[Term]:
    """Return one wave for each period: those of the calendar first, then the periods that most nodes have."""
    found: list[Term] = []
    for wave in sorted(set(waves), key=lambda one: (one.place not in PERIODS.values(), -waves.count(one), one.place)):
        if not any(_same(wave, other, clock) for other in found):
            found.append(wave)
    return found


def background_choice(backgrounds: Backgrounds | None, dataset: Dataset, config: FitConfig) -> list[Choice]:
    """Return which background was chosen, and why."""
    if config.data.background == ("none",):
        return []
    said = background_words(backgrounds, dataset.nodes)
    if not said:
        clock = Clock.of(all_pairs(dataset.split), dated=dataset.dated)
        able = (
            {} if clock is None else {"trend": clock.has_trends, "shift": clock.has_trends, "cycle": clock.has_search}
        )
        asked = [name for name in SEARCHED if name in config.data.background] or list(SEARCHED)
        searched = [name for name in asked if able.get(name)]
        left_out = [f"{name}s" for name in asked if not able.get(name)]
        if not searched:
            return [choose("background", "none", "too short", rows=2 * FEWEST_ROWS)]
        *first, last = searched
        kinds = f"{', a '.join(first)} or a {last}" if first else last
        more = LEFT_OUT.format(kinds=" and ".join(left_out)) if left_out else ""
        return [choose("background", "none", "no node needs it", more=more, kinds=kinds)]
    reason = "tested beside" if config.data.background == ("auto",) else "set by option"
    read = "" if dataset.preparation.background.terms else "; the evidence uses it, the network does not"
    return [choose("background", said, reason, more=read)]


def background_words(backgrounds: Backgrounds | None, nodes: Sequence[str]) -> list[str]:
    """Return the terms of the likeliest backgrounds, each with the nodes that have it.

    Many periods that the same nodes have are counted: an irregular profile of the day takes several waves.
    """
    if backgrounds is None:
        return []
    clock, groups = backgrounds.clock, dict[str, list[str]]()
    best = [of_one[0].terms for of_one in backgrounds.of_target]
    merged = _merged([term for terms in best for term in terms if term.kind == "wave"], clock)
    for node, terms in zip(nodes, best, strict=True):
        for term in terms:
            words = _term_words(term, merged, clock)
            if node not in groups.setdefault(words, []):
                groups[words].append(node)
    periods = {
        _cycle(wave, clock): wave.place for wave in merged if not (clock.dated and wave.place in PERIODS.values())
    }
    alike: dict[tuple[str, ...], list[str]] = {}  # the periods that were found, by the nodes that have them
    for words in sorted(periods.keys() & groups.keys(), key=lambda words: periods[words]):
        alike.setdefault(tuple(groups[words]), []).append(words)
    for found, cycles in alike.items():
        if len(cycles) > NAMED:
            for words in cycles:
                del groups[words]
            ends = f"{cycles[0].removeprefix('cycle of ')} to {cycles[-1].removeprefix('cycle of ')}"
            groups.setdefault(f"{len(cycles)} cycles of {ends}", []).extend(found)
    return [f"{words} ({_whose(found, len(nodes))})" for words, found in groups.items()]


def _term_words(term: Term, merged: Sequence[Term], clock: Clock) -> str:
    """Return a term in words; ``merged`` has one wave for each period."""
    if term.kind != "wave":
        return HOURS_WORDS if term == HOURS else WORDS[term.kind]
    return _cycle(next(one for one in merged if _same(one, term, clock)), clock)


def background_curves(
    backgrounds: Backgrounds | None, dataset: Dataset
) -> tuple[BackgroundTable | None, dict[str, dict[str, Any]]]:
    r"""Return the background of each node over time, and its terms in words with the share of variance they explain.

    The curve of node $i$ is the least-squares fit of its values to the columns $b_{ik}$ of its likeliest background,
    with an intercept per series,

    $$c_i(t) = \hat\mu_i + \sum_k \hat\beta_{ik} b_{ik}(t), \qquad
      \mathrm{share}_i = 1 - \frac{\sum_t (x_{it} - c_i(t))^2}{\sum_t (x_{it} - \hat\mu_i)^2}$$

    over all rows of the table, of the first variable. It describes the node by itself: own past and edges are not in
    it. The table has the nodes with the largest shares.
    """
    pairs = replace(all_pairs(dataset.split), units=dataset.split.train.units)
    times = pairs.times
    if backgrounds is None or times is None:
        return None, {}
    clock = backgrounds.clock
    best = [of_one[0].terms for of_one in backgrounds.of_target]
    merged = _merged([term for terms in best for term in terms if term.kind == "wave"], clock)
    series = torch.zeros(len(pairs), dtype=torch.long) if pairs.series is None else pairs.series
    present, place = np.unique(series.numpy(), return_inverse=True)
    of_series = torch.from_numpy(place)
    columns = {term: clock.columns(term, times, pairs.series) for terms in best for term in terms}
    values = pairs.targets[..., 0].double()
    seen = torch.ones_like(values, dtype=torch.bool) if pairs.observed is None else pairs.observed[..., 0] > 0
    curves, said, shares = torch.full_like(values, torch.nan), dict[str, dict[str, Any]](), dict[int, float]()
    for node, terms in enumerate(best):
        known = seen[:, node]
        if not terms or not known.any():
            continue
        both = torch.cat([values[:, node, None], *(columns[term] for term in terms)], 1)
        counts = torch.bincount(of_series[known], minlength=len(present)).clamp_min(1)[:, None]
        sums = both.new_zeros(len(present), both.shape[1]).index_add_(0, of_series[known], both[known])
        mean = (sums / counts)[of_series]
        apart = both - mean  # from the mean of the series: the intercepts
        weights = torch.linalg.lstsq(apart[known, 1:], apart[known, :1], driver="gelsd").solution[:, 0]
        curves[:, node] = mean[:, 0] + apart[:, 1:] @ weights
        total, left = (float(one[known].square().sum()) for one in (apart[:, 0], values[:, node] - curves[:, node]))
        shares[node] = round(1 - left / total, 4) if total > 0 else 0.0
        words = dict.fromkeys(_term_words(term, merged, clock) for term in terms)
        said[dataset.nodes[node]] = {"terms": list(words), "share": shares[node]}
    if not shares:
        return None, {}
    nodes = sorted(sorted(shares, key=lambda node: -shares[node])[:MOST_CURVES])
    whole = (torch.cat([one[..., None], pairs.targets[..., 1:].double()], 2) for one in (values, curves))
    actual, curve = (dataset.preparation.to_units(one, pairs)[:, nodes, 0].numpy() for one in whole)
    numbers = np.stack([np.where(seen[:, nodes].numpy(), actual, np.nan), curve], -1)  # (row, node, column)
    shown = present[:MOST_CURVE_SERIES].tolist()
    most, groups = MOST_POINTS // len(shown), list[tuple[int, np.ndarray]]()  # the number of rows of a mean, and them
    for number in shown:
        own = np.flatnonzero(series.numpy() == number)
        if len(own) > most:
            size = -(-len(own) // (most // 2))
            groups += [(size, some) for some in np.split(own, range(size, len(own), size))]
            own = own[-(most // 2) :]
        groups += [(1, some) for some in own[:, None]]
    filled = np.stack([(~np.isnan(numbers[rows])).sum(0) for _, rows in groups])
    totals = np.stack([np.nansum(numbers[rows], 0) for _, rows in groups])
    labels, middle = row_labels(pairs, dated=dataset.dated), [int(rows[len(rows) // 2]) for _, rows in groups]
    names = [dataset.series_names[int(series[row])] for row in middle] if len(dataset.series_names) > 1 else []
    means = totals / np.where(filled > 0, filled, np.nan)
    return BackgroundTable([labels[row] for row in middle], [size for size, _ in groups], names, nodes, means), said


def _cycle(wave: Term, clock: Clock) -> str:
    for name, period in PERIODS.items():
        if clock.dated and wave.place == period:
            return f"{name} cycle"
    if not clock.dated:
        return f"cycle of {wave.place / clock.step:.4g} rows"
    units = {"days": DAY, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0, "milliseconds": 1e-3, "microseconds": 1e-6}
    unit = next((name for name, seconds in units.items() if wave.place >= 2 * seconds), "microseconds")
    return f"cycle of {wave.place / units[unit]:.4g} {unit}"


def _whose(found: Sequence[str], count: int) -> str:
    if len(found) == count:
        return "all nodes"
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return ", ".join(found[:NAMED]) + more

r"""A look at a table before a fit: what in it can mislead regressions, as typed findings without words.

Every rule compares a column with itself, so that units do not matter, and asks for far more than chance gives: plain
noise, random walks, counts, yes or no and heavy tails have no findings.

The largest change that a column without an accident would have is extrapolated from the quantiles $q_{90}$ and
$q_{99}$ of its absolute changes to the probability $p = 10^{-3} / n$: the geometric mean of a power law and a stretched
exponential through the two,

$$q_p = q_{90} \Big(\frac{q_{99}}{q_{90}}\Big)^{(a + b) / 2}, \qquad
a = \log_{10}(0.1 / p), \quad b = \log_2 \log_{10}(1 / p).$$

For normal changes it is about 9 standard deviations, for a $t$ distribution with 4 degrees of freedom about 40.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from tacit.data.conditions import chosen_rows
from tacit.data.series import Series

FindingKind = Literal["unit", "jump", "spikes", "copy", "near_copy", "stuck", "still", "zeros", "rounded"]
Columns = Float[np.ndarray, "column row"]

MOST_CELLS = 5_000_000  # the newest rows of a larger table are looked at, which takes about two seconds
FEWEST_ROWS, FEWEST_COPIED = 50, 20  # observed values of a column, and those for copies
FEW_VALUES = 10  # a column with as few values has categories, whose changes are no accidents
MOST_SPIKES = 0.01  # of the rows
MOST_JUMPS = 3  # of a column: more are switches between states
LASTING = 0.6  # of a change that is left in the medians of all rows before and after it
NEAR, AT_ONCE = 32, 2  # rows before and after a jump; rows within which most of it happens
MEAN_ROWS = 16  # rows of the means by which a jump is found in noise
FACTORS = (2.205, 3.281, 3.6, 10.0, 25.4, 60.0, 100.0, 1000.0, 3600.0, 1e6)  # between usual units
SAME_FACTOR, SAME_LARGE_FACTOR = 0.04, 0.1  # relative; of factors below and above 10, which are far apart
COPY, NEAR_COPY, NEAR_CHANGES = 1 - 1e-9, 0.99, 0.95  # correlations of values, and of changes
LONGEST_USUAL, RUN = 4, 20  # times the 99% quantile of the runs of a column; and rows
STILL, ZEROS = 0.99, 0.3  # fractions of the rows with one value, with 0
TINY_SPREAD = 1e-6  # of a mean


@dataclass(frozen=True)
class Finding:
    """What was found at ``nodes``.

    ``rows``     rows of the series, from 0: the first one of a jump, those of spikes, first and last of a stretch
    ``numbers``  by kind: ``before``, ``after`` and ``change`` of a jump, and ``unit``, the factor between two units;
                 ``deviations`` and ``value`` of the farthest spike; ``correlation`` of copies; ``value``, and the
                 ``fraction`` of the rows that have it; number of ``values`` and ``step`` of rounding
    """

    kind: FindingKind
    nodes: tuple[str, ...]
    rows: tuple[int, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)


def look_at(series: Series) -> list[Finding]:
    """Return the findings of a table, in the order of the kinds; rows that a condition leaves out are not looked at.

    >>> rng = np.random.default_rng(0)
    >>> values = rng.normal(size=(300, 3, 1)) + 5
    >>> values[200:, 0] *= 1000
    >>> values[50, 1] = 99
    >>> [(found.kind, found.nodes, found.rows) for found in look_at(Series(values, ("a", "b", "c")))]
    [('unit', ('a',), (200,)), ('spikes', ('b',), (50,))]
    """
    count = series.num_nodes * len(series.channels)
    first = max(0, len(series) - MOST_CELLS // count)
    names = [
        node if len(series.channels) == 1 else f"{node}:{channel}"
        for node in series.nodes
        for channel in series.channels
    ]
    values = np.array(series.values[first:].reshape(-1, count).T, order="C")
    values[:, ~chosen_rows(series)[first:]] = np.nan
    starts = np.zeros(values.shape[1], dtype=bool)
    starts[[start - first for start in series.starts.tolist() if start >= first]] = True
    starts[0] = True
    if values.shape[1] < FEWEST_COPIED:
        return []
    found = list(_found(values, starts, names))
    order = {kind: place for place, kind in enumerate(FindingKind.__args__)}  # type: ignore[attr-defined]
    rows = [Finding(one.kind, one.nodes, tuple(first + row for row in one.rows), one.numbers) for one in found]
    return sorted(rows, key=lambda one: order[one.kind])


def _found(values: Columns, starts: Bool[np.ndarray, " row"], names: list[str]) -> Iterator[Finding]:
    ordered = np.sort(values, axis=1)  # NaN last
    there = np.isfinite(ordered).sum(axis=1)
    fresh = np.diff(ordered, axis=1) > 0
    distinct = 1 + fresh.sum(axis=1)
    whole = np.array(
        [bool((line[:size] == np.rint(line[:size])).all()) for line, size in zip(ordered, there, strict=True)]
    )
    changes = np.diff(values, axis=1, prepend=np.nan)
    changes[:, starts] = np.nan
    for place in np.flatnonzero(there >= FEWEST_ROWS):
        name, line, size = names[place], ordered[place, : there[place]], int(there[place])
        edges = np.flatnonzero(fresh[place, : size - 1])
        runs = np.diff(edges, prepend=-1, append=size - 1)
        most = int(runs.argmax())
        value, fraction = float(line[int(runs[:most].sum())]), float(runs[most]) / size
        middle, spread = float(np.median(line)), float(line[int(0.84 * size)] - line[int(0.16 * size)]) / 2
        if (STILL <= fraction < 1 and distinct[place] > 1) or 0 < spread < TINY_SPREAD * abs(middle):
            yield Finding("still", (name,), (), {"value": value, "fraction": fraction, "spread": spread})
            continue
        if not whole[place] and 2 < distinct[place] <= FEW_VALUES and size >= 10 * FEW_VALUES:
            yield Finding(
                "rounded", (name,), (), {"step": float(np.diff(line)[edges].min()), "values": float(distinct[place])}
            )
        stretches = list(_stretches(values[place], starts, float(line[0]), float(line[-1]), name))
        yield from stretches
        stuck = sum(one.rows[1] - one.rows[0] + 1 for one in stretches if one.numbers["value"] == 0)
        zeros = float(np.searchsorted(line, 0.0, "right") - np.searchsorted(line, 0.0, "left") - stuck) / size
        if zeros >= ZEROS and not whole[place] and distinct[place] > FEW_VALUES:
            yield Finding("zeros", (name,), (), {"value": 0.0, "fraction": zeros})
        if distinct[place] > FEW_VALUES:
            ends = {row + step for one in stretches for row, step in zip(one.rows, (0, 1), strict=True)}
            yield from (
                one
                for one in _accidents(values[place], changes[place], starts, line, name)
                if one.kind == "spikes" or one.rows[0] not in ends  # a sensor that gets stuck jumps
            )
    yield from _copies(values, changes, names)


def _stretches(
    line: Float[np.ndarray, " row"], starts: Bool[np.ndarray, " row"], low: float, high: float, name: str
) -> Iterator[Finding]:
    """Find the stretches of one value that are far longer than the other ones of the column."""
    new = np.flatnonzero(starts | (line != np.roll(line, 1)))  # NaN differs from NaN
    lengths = np.diff(new, append=len(line))
    if lengths.max() < RUN:
        return
    usual = float(np.sort(lengths)[int(0.99 * (len(lengths) - 1))])
    for run in np.flatnonzero(lengths >= max(RUN, LONGEST_USUAL * usual)):
        first = int(new[run])
        if line[first] in (low, high):  # a limit of the values is reached often: rain, counts, limits of detection
            others = lengths[(line[new] == line[first]) & (np.arange(len(new)) != run)]
            if len(others) and lengths[run] < LONGEST_USUAL * others.max():
                continue
        yield Finding("stuck", (name,), (first, first + int(lengths[run]) - 1), {"value": float(line[first])})


def _usual_most(sizes: Float[np.ndarray, " value"]) -> float:
    """Return the largest absolute change that is expected without an accident."""
    ordered = np.sort(sizes)
    low, high = (float(ordered[int(part * (len(ordered) - 1))]) for part in (0.9, 0.99))
    if low <= 0:
        return np.inf
    p = 1e-3 / len(ordered)
    power = (np.log10(0.1 / p) + np.log2(np.log10(1 / p))) / 2
    return float(low * max(high / low, 1.2) ** power)


def _accidents(
    line: Float[np.ndarray, " row"],
    changes: Float[np.ndarray, " row"],
    starts: Bool[np.ndarray, " row"],
    ordered: Float[np.ndarray, " value"],
    name: str,
) -> Iterator[Finding]:
    """Find values that leave and return at once, and changes that last."""
    sizes = np.abs(changes)
    moved = sizes[sizes > 0]
    if len(moved) < FEWEST_ROWS:
        return
    most = _usual_most(moved)
    after = np.append(-changes[1:], np.nan)  # from the next value to this one
    alone = np.where(np.sign(changes) == np.sign(after), np.minimum(sizes, np.abs(after)), 0.0)
    spikes = np.flatnonzero(alone > most)
    clean = line
    if 0 < len(spikes) <= max(1, MOST_SPIKES * len(ordered)):
        quarter, half, rest = (float(ordered[int(part * (len(ordered) - 1))]) for part in (0.16, 0.5, 0.84))
        far = float(np.abs(line[spikes] - half).max()) / max((rest - quarter) / 2, np.finfo(float).tiny)
        order = spikes[np.argsort(-alone[spikes], kind="stable")]
        yield Finding("spikes", (name,), tuple(order.tolist()), {"deviations": far, "value": float(line[order[0]])})
        clean = line.copy()
        clean[spikes] = line[spikes - 1]
    jumps = dict[int, dict[str, float]]()
    for curve in (np.log(clean), clean) if ordered[0] > 0 else (clean,):
        local = {row: change for row in _candidates(curve, starts) if (change := _sudden(curve, starts, row))}
        for row, numbers in _lasting(curve, clean, starts, local).items():
            if all(abs(row - other) > NEAR for other in jumps):
                jumps[row] = numbers
    if len(jumps) <= MOST_JUMPS:
        for row, numbers in sorted(jumps.items()):
            unit = _unit(numbers["after"] / numbers["before"]) if ordered[0] > 0 else 0.0
            yield Finding("unit" if unit else "jump", (name,), (row,), {**numbers, **({"unit": unit} if unit else {})})


def _candidates(curve: Float[np.ndarray, " row"], starts: Bool[np.ndarray, " row"]) -> Iterator[int]:
    """Yield the rows with the largest changes from one row to the next, and from the mean before to that after."""
    known = np.flatnonzero(np.isfinite(curve))
    numbers, rows = curve[known], len(known)
    fresh = np.zeros(rows, dtype=bool)  # whether another series starts since the row before
    fresh[1:] = np.diff(np.cumsum(starts)[known]) > 0
    single = np.abs(np.diff(numbers, prepend=numbers[0]))
    single[fresh] = 0.0
    total = np.concatenate([[0.0], np.cumsum(numbers - numbers.mean())])
    ahead = (total[MEAN_ROWS:] - total[:-MEAN_ROWS]) / MEAN_ROWS  # mean of the rows from each one on
    means = np.zeros(rows)
    means[MEAN_ROWS : rows - MEAN_ROWS + 1] = np.abs(ahead[MEAN_ROWS:] - ahead[:-MEAN_ROWS])
    usual = np.sort(means)[int(0.68 * (rows - 1))]
    for sizes, limit in (
        (single, _usual_most(single[single > 0]) if (single > 0).any() else np.inf),
        (means, 10 * usual),
    ):
        left = sizes.copy()
        for _ in range(MOST_JUMPS + 1):
            place = int(left.argmax())
            if not left[place] > limit or limit <= 0:
                break
            around = slice(max(0, place - AT_ONCE), place + AT_ONCE + 1)
            yield int(known[around.start + int(single[around].argmax())])
            left[max(0, place - NEAR) : place + NEAR] = 0.0


def _sudden(curve: Float[np.ndarray, " row"], starts: Bool[np.ndarray, " row"], row: int) -> float:
    """Return the change of the level at ``row`` if the rows before and after it hardly overlap, and 0 otherwise."""
    low, high = _bounds(starts, row)
    before, after = (side[np.isfinite(side)] for side in (curve[low:row], curve[row:high]))
    before, after = before[-NEAR:], after[:NEAR]
    if min(len(before), len(after)) < NEAR // 2:
        return 0.0
    sign = 1.0 if np.median(after) >= np.median(before) else -1.0
    before, after = sign * before, sign * after
    change = float(np.median(after) - np.median(before))
    at_once = np.median(after[:5]) - np.median(before[-5:])
    inside = max(np.quantile(side, 0.84) - np.quantile(side, 0.16) for side in (before, after))
    apart = np.quantile(after, 0.1) > np.quantile(before, 0.9)
    return sign * change if apart and at_once >= 0.7 * change and change >= 2 * inside else 0.0


def _lasting(
    curve: Float[np.ndarray, " row"],
    line: Float[np.ndarray, " row"],
    starts: Bool[np.ndarray, " row"],
    local: dict[int, float],
) -> dict[int, dict[str, float]]:
    """Return the changes after which the level stays until the next change or the end, with their numbers."""
    while local:
        rows, kept = sorted(local), dict[int, dict[str, float]]()
        shares = dict[int, float]()
        for place, row in enumerate(rows):
            low, high = _bounds(starts, row)
            low = max([low, *rows[max(0, place - 1) : place]])
            high = min([high, *rows[place + 1 : place + 2]])
            shares[row] = float(np.nanmedian(curve[row:high]) - np.nanmedian(curve[low:row])) / local[row]
            before, after = float(np.nanmedian(line[low:row])), float(np.nanmedian(line[row:high]))
            kept[row] = {"change": after - before, "before": before, "after": after}
        weakest = min(shares, key=lambda row: shares[row])
        if shares[weakest] >= LASTING:
            return kept
        local = {row: change for row, change in local.items() if row != weakest}
    return {}


def _bounds(starts: Bool[np.ndarray, " row"], row: int) -> tuple[int, int]:
    """Return the first row of the series of ``row``, and the row after its last."""
    later = np.flatnonzero(starts[row + 1 :])
    return int(np.flatnonzero(starts[: row + 1])[-1]), row + 1 + int(later[0]) if len(later) else len(starts)


def _unit(factor: float) -> float:
    """Return the factor between usual units that this one, or its inverse, is; 0 if it is none."""
    size = max(factor, 1 / factor)
    near = (known for known in FACTORS if abs(size / known - 1) < (SAME_FACTOR if known < 10 else SAME_LARGE_FACTOR))
    return next(near, 0.0)


def _copies(values: Columns, changes: Columns, names: list[str]) -> Iterator[Finding]:
    """Find nodes whose values and changes are correlated nearly perfectly."""
    alike, moves = _correlations(values), _correlations(changes)
    same = (np.abs(alike) >= NEAR_COPY) & (np.abs(moves) >= NEAR_CHANGES) & (alike * moves > 0)
    same &= np.triu(np.ones_like(same), 1)
    group = np.arange(len(names))
    for one, other in np.argwhere(same):
        group[group == group[other]] = group[one]
    for number in np.unique(group[same.any(axis=0)]):
        members = np.flatnonzero(group == number)
        pairs = same[np.ix_(members, members)]
        least = float(np.abs(alike[np.ix_(members, members)])[pairs].min())
        changed = float(np.abs(moves[np.ix_(members, members)])[pairs].min())
        exact = least >= COPY and changed >= COPY
        yield Finding(
            "copy" if exact else "near_copy",
            tuple(names[place] for place in members),
            (),
            {"correlation": least, "correlation_of_changes": changed},
        )


def _correlations(values: Columns) -> Float[np.ndarray, "column column"]:
    """Return the correlations over the rows that both columns have; 0 where one does not vary, or if these are few."""
    known = np.isfinite(values)
    centred = np.where(known, values, 0.0)
    centred -= np.where(known, (centred.sum(axis=1) / np.maximum(known.sum(axis=1), 1))[:, None], 0.0)
    scale = np.sqrt((centred**2).mean(axis=1))[:, None]
    centred = np.divide(centred, scale, out=np.zeros_like(centred), where=scale > 0)
    flags = known.astype(np.float64)
    counts = flags @ flags.T if not known.all() else np.full((len(values),) * 2, float(values.shape[1]))
    shared = np.maximum(counts, 1)
    product, found = np.ones_like(counts), centred @ centred.T / shared
    if not known.all():  # means and deviations over the rows that both have
        sums, squares = centred @ flags.T / shared, centred**2 @ flags.T / shared
        variance = np.maximum(squares - sums**2, 0)
        found, product = found - sums * sums.T, np.sqrt(variance * variance.T)
    varies = (product > TINY_SPREAD) & (counts >= FEWEST_COPIED)
    correlations: Float[np.ndarray, "column column"] = np.divide(found, product, out=np.zeros_like(found), where=varies)
    return np.clip(correlations, -1, 1, out=correlations)

r"""Events as series: a row per event, with a time, a type and optionally a unit, becomes counts per bin.

$$n_{ukt} = \#\{e : \mathrm{unit}_e = u,\ \mathrm{type}_e = k,\ t b \le \mathrm{time}_e < (t + 1) b\}$$

for unit $u$, type $k$ and bin $t$ of length $b$. Types are the nodes and units are the series. An event with an end is
a span, which counts in every bin from its start to its end. Neighbours $N_u$ of units, if they are known, are a second
variable of each node, $\sum_{v \in N_u} n_{vkt}$, which is an input and no target.

**Bin.** In a bin that is too long, cause and effect fall together; in one that is too short, the effect comes after the
window. Let $A_{ij}^g$ be how often type $j$ is in one of the $W$ bins after a bin with type $i$, in block $g$ of a unit
and a stretch of time. The order of the types is

$$O(b) = \sum_{i < j} \Big( \frac{(\sum_g d_{ij}^g)^2}{\sum_g (d_{ij}^g)^2} - 1 \Big), \qquad
d_{ij}^g = A_{ij}^g - A_{ji}^g,$$

a sum of squared $z$ values less their expectation without order. Types that only occur in the same bursts have none.
The bin is the longest one with 80% of the largest order.

**Rows.** Targets are the $W$ bins after an event of the unit or of a neighbour, and bin $4 W + 1$ after the last one.
The window of the latter is empty, when effects have ended and the unit is in the same phase. It gives the rate without
any event: if every window had one, the sum of all inputs would be collinear with the intercept. This is a selection by
the past, so it does not bias regressions. Longer quiet stretches are left out: beside them, any two types of the same
bursts would have an edge. Every window is as without this.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from tacit.data.columns import INDEX_NAMES, NODE_NAMES, TIME_NAMES, UNIT_NAMES, Columns
from tacit.data.conditions import Condition, require_names
from tacit.data.files import Table, open_table
from tacit.data.recognition import MEASURE_NAMES, SERIES_NAMES
from tacit.data.series import MOST_NAMED, Series, Times
from tacit.errors import InputError, did_you_mean, require

WINDOW = 2  # bins before a target, unless the window is given
KEPT_ORDER = 0.8  # of the largest order of types: the longest such bin has the fewest rows
BLOCKS = 200  # of units and stretches of time, about
ORDERED_TYPES = 40  # the most frequent ones choose the bin
FEWEST_BINS = 20  # between the first and the last event
LARGEST_BIN = 2.0**62  # bins, also numbered over all units, are int64
FEWEST_EVENTS = 20  # of a type, within a window after other events
MOST_ROWS = 2_000_000
MOST_TARGETS = 350_000  # times the number of types: a fit takes about a minute
SINCE = "bins_since_event"
COUNT, NEAR = "count", "neighbours"
START_NAMES = (*TIME_NAMES, "start", "start_time", "start_timestamp", "begin", "onset", "occurred", "created", "ts")
END_NAMES = ("end", "end_time", "end_timestamp", "end_date", "stop", "stop_time", "cleared", "finish", "finished")
TYPE_NAMES = ("type", "event", "kind", "alarm", "code", "category", "activity", "action", "label", "name", "message")
UNITS = (
    *SERIES_NAMES, *NODE_NAMES, "unit", "device", "machine", "host", "user", "customer", "place", "server", "element",
    "room", "region", "city", "neuron", "cell",
)  # fmt: skip
SECOND = 10**9  # in nanoseconds
UNITS_OF_TIME = {"s": SECOND, "min": 60 * SECOND, "h": 3600 * SECOND, "D": 86400 * SECOND}
NICE = {"s": (1, 2, 5, 10, 15, 30), "min": (1, 2, 5, 10, 15, 30), "h": (1, 2, 3, 6, 12), "D": (1, 2, 7, 14, 28)}

Moments = Int[np.ndarray, " event"] | Float[np.ndarray, " event"]
Which = Int[np.ndarray, " event"]
Bins = Int[np.ndarray, " bin"]


def read_events(
    table: Table,
    roles: Columns,
    *,
    bin: str | float | None = None,
    end: str | None = None,
    units: str | Path | None = None,
    window: int | None = None,
    horizon: int = 1,
    nodes: Sequence[str] = (),
) -> Series:
    """Return counts per bin of a table with a row per event: a node per type and a series per unit.

    ``roles``   ``time``, ``node`` (the type) and ``series`` (the unit) name columns, which are found when left out
    ``bin``     length of a bin, such as 10min, or a number if times are numbers; chosen when left out
    ``end``     column of the time at which an event ends
    ``units``   CSV file of units, and of a neighbour in each row, both ways; further columns are not used
    ``window``  number of bins before a target
    ``nodes``   the types of a fit, if the events are new data; other types are left out

    >>> import pandas as pd
    >>> rows = [(3, "fault"), (14, "stop"), (27, "fault"), (28, "fault")]
    >>> table = Table("log.csv", ("time", "event"), pd.DataFrame(rows))
    >>> series = read_events(table, Columns(), bin=10, window=1, nodes=("fault", "stop"))
    >>> series.nodes, series.values[:, :, 0].T.tolist()
    (('fault', 'stop'), [[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]])
    """
    for name in ("covariates", "columns", "sep", "value", "duplicates"):
        given = getattr(roles, name)
        require(not given, f"{table.path}: {name} has no meaning for events, got {given!r}; leave it out")
    require(roles.layout == "auto", f"{table.path}: layout has no meaning for events; leave it out")
    require(
        units is None or window in (None, 1),
        f"{table.path}: window must be 1 with units, whose events are a second variable, got {window}; leave it out",
    )
    require(window is None or window >= 1, f"{table.path}: window must be at least 1, got {window}; pass more bins")
    window = window or (WINDOW if units is None else 1)
    roles.require_there(table)
    if end is not None:
        table.require_column("end", end)
    time, kind, unit = _roles(table, roles, end)
    require(
        units is None or unit is not None,
        f"{table.path}: units requires a column of units, got none; set series to its name (--series), or leave units "
        "out",
    )
    times, dayfirst, notes = table.times(time, roles.dayfirst)
    moments = _moments(times)
    last = moments
    if end is not None:
        stops = table.times(end, roles.dayfirst)[0]
        require(
            (stops.dtype.kind == "M") == (times.dtype.kind == "M"),
            f"{table.path}: times of columns '{time}' and '{end}' must both be dates or numbers; convert one of them",
        )
        last = _moments(stops)
        for row in np.flatnonzero(last < moments)[:1]:
            raise table.refuse(
                f"column '{end}' must not be before '{time}', got {stops[row]} in row {row + 1}; correct it"
            )
    found, names = table.distinct_names(kind)
    of_unit, known = (np.zeros(len(found), np.int64), [""]) if unit is None else table.distinct_names(unit)

    # Types: all with enough events, or those of a fit.
    numbers = np.bincount(found, minlength=len(names))
    wanted = set(nodes) or {name for name, number in zip(names, numbers, strict=True) if number >= FEWEST_EVENTS}
    wanted -= {*roles.drop}
    types = tuple(nodes) or tuple(
        sorted(wanted, key=lambda name: (not name.isdecimal(), len(name) * name.isdecimal(), name))
    )
    require(
        bool(types),
        f"{table.path}: a type must have at least {FEWEST_EVENTS} events, got {numbers.max()} in column '{kind}'; pass "
        "more events, or --set data.node=NAME",
    )
    few = [name for name in names if name not in wanted and name not in roles.drop]
    place = {name: number for number, name in enumerate(types)}
    found = np.array([place.get(name, -1) for name in names])[found]
    there = found >= 0
    require(
        bool(there.any()),
        f"{table.path}: new events must have a type of the fit ({', '.join(types[:MOST_NAMED])}"
        f"{', ...' if len(types) > MOST_NAMED else ''}), got {names[0]!r} in column '{kind}'; pass other events",
    )
    found, of_unit, moments, last = found[there], of_unit[there], moments[there], last[there]

    # The bin.
    dated = times.dtype.kind == "M"
    if bin is None:
        length, why = choose_bin(moments, found, of_unit, window, dated=dated)
    else:
        length, why = _length(table, bin, dated=dated), ""
    words = _words(length, dated=dated)
    require(
        bool(length <= last.max() - moments.min()),
        f"{table.path}: bin must be shorter than the record, got {words} for events from {times.min()} to "
        f"{times.max()}; pass a shorter one",
    )
    remedy = f"bin must give at most {MOST_ROWS:,} rows, got {{}} with {words}; pass a longer one"
    furthest = max(abs(float(moments.min())), abs(float(last.max()))) / float(length)
    furthest = max(furthest, (float(last.max()) - float(moments.min())) / float(length) * len(known))
    require(furthest < LARGEST_BIN, f"{table.path}: {remedy.format(f'up to {furthest:g}')}")
    first, until = _bins(moments, length), _bins(last, length)
    reach = window + horizon - 1
    alone = 4 * reach + 1  # bins after the last event: a target with an empty window
    sizes = until - first + 1
    require(int(sizes.sum()) <= 10 * MOST_ROWS, f"{table.path}: {remedy.format(f'{sizes.sum():,}')}")
    repeat = np.repeat(np.arange(len(first)), sizes)
    bins = first[repeat] + np.arange(len(repeat)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    found, of_unit = found[repeat], of_unit[repeat]

    # Rows of each unit: those of the windows and targets after its events, and after those of its neighbours.
    beside = _neighbours(units, known) if units is not None else {}
    known = [*dict.fromkeys([*known, *beside])]
    near = any(beside.values())
    number_of = {name: number for number, name in enumerate(known)}
    low, high = int(bins.min()), int(bins.max())
    order = np.argsort(of_unit, kind="stable")
    cuts = np.searchsorted(of_unit[order], np.arange(len(known) + 1))
    own = [order[cuts[one] : cuts[one + 1]] for one in range(len(known))]
    others = [
        np.concatenate([own[number_of[other]] for other in beside.get(name, ())] or [order[:0]]) for name in known
    ]
    around = [np.concatenate(both) for both in zip(own, others, strict=True)]
    opens = np.concatenate([np.full(len(which), one) for one, which in enumerate(around)]) * (high - low + 1 + alone)
    opens += bins[np.concatenate(around)] - low  # a number for each unit and bin
    opened_by = found[np.concatenate(around)]
    opens, most = _thinned(opens, opened_by, reach, alone, max(1, MOST_TARGETS // len(types)) if not nodes else None)
    whose, at = np.divmod(opens, high - low + 1 + alone)
    offsets = np.array([*range(-reach + 1, reach + 1), *range(alone - reach, alone + 1)])  # windows and targets
    values, since, bins_of_row, lengths, kept, total = [], [], [], [], [], 0
    for one, name in enumerate(known):
        events = at[whose == one] + low
        if not len(events):
            continue
        rows = np.unique((events[:, None] + offsets).ravel())
        rows = rows[(rows >= low) & (rows <= high)]
        total += len(rows)
        require(total <= MOST_ROWS, f"{table.path}: {remedy.format(f'more than {total:,}')}")
        counts = np.zeros((len(rows), len(types), 1 + near))
        for channel, which in enumerate((own[one], others[one])[: 1 + near]):
            row = np.minimum(np.searchsorted(rows, bins[which]), len(rows) - 1)
            here = rows[row] == bins[which]
            np.add.at(counts, (row[here], found[which[here]], channel), 1)
        ago, last_ago = (_since(one, rows, high - low + 1) for one in (events, np.unique(bins[around[one]])))
        ago[(ago > reach) & (ago != last_ago)] = reach + 1  # another event came in between
        values.append(counts)
        since.append(ago.astype(float))
        bins_of_row.append(rows)
        lengths.append(len(rows))
        kept.append(name)
    # Types that are rarely a target, or not in the first half of the targets of any unit, cannot be fitted.
    count, past = np.concatenate(values), np.concatenate(since)
    used = (past <= reach) | (past == alone)
    if not nodes:
        whose = np.repeat(np.arange(len(lengths)), lengths)
        number = np.cumsum(used) - np.concatenate([[0], np.cumsum(used)])[np.cumsum([0, *lengths[:-1]])][whose]
        early = used & (2 * number <= np.bincount(whose, used)[whose])
        enough = (count[used, :, 0].sum(0) >= FEWEST_EVENTS) & (count[early, :, 0].sum(0) > 0)
        few += [name for name, is_enough in zip(types, enough, strict=True) if not is_enough]
        types = tuple(name for name, is_enough in zip(types, enough, strict=True) if is_enough)
        count = count[:, enough]
    require(
        bool(types),
        f"{table.path}: a type must have at least {FEWEST_EVENTS} events after others, got fewer in column '{kind}'; "
        "pass more events, or a longer bin",
    )
    several = unit is not None
    said = f"{SINCE} <= {reach} or {SINCE} == {alone}"
    if roles.where is not None:  # of new events, it is that of the fit
        said = roles.where if SINCE in roles.where else f"({roles.where}) and ({said})"
    condition = Condition.read(said)
    require_names(condition, (SINCE, "series", "time"), str(table.path))
    labels: dict[str, Any] = {SINCE: past}
    if several:
        labels["series"] = np.repeat(np.array(kept, dtype=object), lengths)
    as_read = f"read as events: time = {time}, type = {kind}" + (f", unit = {unit}" if several else "")
    notes = (*table.notes, *notes, as_read, f"bin = {words}: {why}" if why else f"bin = {words}")
    if few:
        why = "that the fit does not have" if nodes else f"with fewer than {FEWEST_EVENTS} events after others"
        shown = ", ".join(sorted(few)[:MOST_NAMED])
        more = f" and {len(few) - MOST_NAMED} more" if len(few) > MOST_NAMED else ""
        notes += (f"left out: types {why}, {shown}{more}",)
    read = (time, kind, *(one for one in (unit, end) if one is not None))
    unread = [name for name in table.columns if name not in read]
    if unread:
        more = f" and {len(unread) - MOST_NAMED} more" if len(unread) > MOST_NAMED else ""
        notes += (f"not used: {', '.join(unread[:MOST_NAMED])}{more}",)
    ends = [name for name in unread if end is None and _is_called(name, END_NAMES)]
    notes += (f"events count where they start; --end {ends[0]} makes them spans",) if ends else ()
    quiet = len(known) - len(kept)
    if most:
        notes += (f"of the bins with a type, at most {most:,}, evenly spaced, are followed by targets: fewer rows",)
    notes += (f"{quiet} units have no events near them, and no rows",) if quiet else ()
    settled: dict[str, Any] = {"time": time, "node": kind, "bin": words, "where": said, "window": window}
    settled |= {"series": unit} if several else {}
    settled |= {} if dayfirst is None else {"dayfirst": dayfirst}
    settled |= {"targets": (COUNT,)} if near else {}
    return Series(
        count,
        types,
        (COUNT, NEAR) if near else ("value",),
        _times_of(np.concatenate(bins_of_row), length, dated=dated),
        notes=notes,
        piece=bool(nodes),
        lengths=tuple(lengths) if several else (),
        series_names=tuple(kept) if several else (),
        settled=settled,
        where=condition,
        labels=labels,
    )


def require_not_events(table: Table, roles: Columns) -> None:
    """Refuse a table whose columns are called like time, type and unit of events, without any other column."""
    try:
        time, kind, unit = _roles(table, roles, None)
    except InputError:
        return
    read = (time, kind, *(() if unit is None else (unit,)))
    rest = [name for name in table.columns if name not in (*read, *roles.drop) and not _is_called(name, END_NAMES)]
    ids = [name for name in rest if name.lower() in INDEX_NAMES]
    if _is_called(time, START_NAMES) and _is_called(kind, TYPE_NAMES) and rest == ids:
        raise table.refuse(
            f"looks like a table of events, with a row per {' and '.join(repr(name) for name in read)}; use --events "
            "(events in [data]), or set layout"
        )


def _is_called(column: str, names: Sequence[str]) -> bool:
    """Return whether a column has one of these names, also as name_id, name_name or event_name."""
    name = column.lower()
    return bool({name, name.removesuffix("_id").removesuffix("_name").removeprefix("event_")} & {*names})


def _since(events: Bins, rows: Int[np.ndarray, " row"], never: int) -> Int[np.ndarray, " row"]:
    """Return the number of bins since the last event before each row."""
    before = np.searchsorted(events, rows) - 1
    found: Int[np.ndarray, " row"] = np.where(before >= 0, rows - events[np.maximum(before, 0)], never)
    return found


def _thinned(opens: Which, types: Which, reach: int, alone: int, most: int | None) -> tuple[Bins, int]:
    """Return the bins (of units) with events after which targets are used, and the largest number for each type.

    All are used, and the number is 0, unless there would be more than ``most`` targets. A frequent type has more bins
    than its edges need, a rare one keeps all. Targets are chosen by what came before, so regressions are not biased.
    """
    all_bins = np.unique(opens)

    def targets(bins: Bins) -> int:
        gaps = np.diff(bins, append=bins[-1] + alone)
        return int(np.minimum(gaps, reach).sum() + (gaps >= alone).sum())

    if most is None or targets(all_bins) <= most:
        return all_bins, 0
    of_type = [np.unique(opens[types == one]) for one in range(int(types.max()) + 1)]

    def chosen(each: int) -> Bins:
        return np.unique(
            np.concatenate(
                [one[np.linspace(0, len(one) - 1, min(each, len(one))).round().astype(int)] for one in of_type]
            )
        )

    least, limit = 1, max(map(len, of_type))
    while limit - least > 1:
        middle = (least + limit) // 2
        least, limit = (middle, limit) if targets(chosen(middle)) <= most else (least, middle)
    return chosen(least), least


def order_of_types(bins: Which, types: Which, of_unit: Which, window: int) -> float:
    """Return how clear the order of types is in bins of this length; 0 is expected without order."""
    low, wide = bins.min(), int(bins.max() - bins.min()) + window + 1
    keys, first, place = np.unique(of_unit * wide + bins - low, return_index=True, return_inverse=True)
    count = int(types.max()) + 1
    here = np.zeros((len(keys), count))
    here[place, types] = 1.0
    later = np.zeros_like(here)
    for lag in range(1, window + 1):
        at = np.minimum(np.searchsorted(keys, keys + lag), len(keys) - 1)
        follows = keys[at] == keys + lag
        later[follows] += here[at[follows]]
    stretches = -(-BLOCKS // (int(of_unit.max()) + 1))
    block = of_unit[first] * stretches + (bins[first] - low) * stretches // wide
    total, squares = np.zeros((count, count)), np.zeros((count, count))
    edges = np.flatnonzero(np.diff(block, prepend=-1))
    for begin, stop in zip(edges, [*edges[1:], len(block)], strict=True):  # keys ascend, so blocks do too
        after = here[begin:stop].T @ later[begin:stop]
        total += after - after.T
        squares += (after - after.T) ** 2
    above = np.triu(squares > 0, 1)
    return float((total[above] ** 2 / squares[above] - 1).sum())


def choose_bin(moments: Moments, types: Which, of_unit: Which, window: int, *, dated: bool) -> tuple[Any, str]:
    """Return the bin of events at these moments, in nanoseconds if they are dates, and the reason."""
    distinct = np.unique(moments)
    require(len(distinct) > 1, "events must have two different times or more, got one; pass a longer record")
    finest, span = np.diff(distinct).min(), distinct[-1] - distinct[0]
    decimals = [digit * 10.0**power for power in range(-12, 16) for digit in (1, 2, 5)]
    if dated:
        possible: list[Any] = [int(one) for one in decimals if 1 <= one < SECOND]
        possible += [number * UNITS_OF_TIME[unit] for unit, numbers in NICE.items() for number in numbers]
    else:
        whole = moments.dtype.kind == "i"
        possible = [int(one) if whole else one for one in decimals if one >= 1 or not whole]
    lengths = [one for one in possible if finest <= one <= span / FEWEST_BINS] or [max(finest, span / FEWEST_BINS)]
    frequent = np.argsort(-np.bincount(types), kind="stable")[:ORDERED_TYPES]
    some = np.isin(types, frequent)
    order = [
        order_of_types(_bins(moments[some], one), np.unique(types[some], return_inverse=True)[1], of_unit[some], window)
        for one in lengths
    ]
    best = max(order)
    if best <= 0:
        ranked = np.lexsort((moments, of_unit))
        gaps = np.diff(moments[ranked])[np.diff(of_unit[ranked]) == 0]
        usual = np.median(gaps[gaps > 0]) if (gaps > 0).any() else finest
        nearest = min(lengths, key=lambda one: abs(np.log(one / usual)))
        return nearest, "no type follows another one; the usual time between events of a unit"
    chosen = max(one for one, value in zip(lengths, order, strict=True) if value >= KEPT_ORDER * best)
    return chosen, f"the longest bin that keeps {KEPT_ORDER:.0%} of the order in which types follow each other"


def _roles(table: Table, roles: Columns, end: str | None) -> tuple[str, str, str | None]:
    """Return the columns of time, type and unit: those that are named, or the only ones with such a name."""
    free = [name for name in table.columns if name not in (roles.time, roles.node, roles.series, end, *roles.drop)]

    def called(names: Sequence[str]) -> list[str]:
        return [name for name in free if _is_called(name, names)]

    time = roles.time or next(iter(called(START_NAMES)), None)
    time = time or next((name for name in free if table.is_dates(name)), None)
    time = time or next(iter(called(UNIT_NAMES)), None)
    if not time:
        raise table.refuse("events must have a column of times, got none with such a name; pass --set data.time=NAME")
    free = [name for name in free if name != time and not table.is_dates(name)]
    free = [name for name in free if not _is_called(name, END_NAMES)]
    unit, kind = roles.series, roles.node
    types = called(TYPE_NAMES)
    if kind is None:
        others = [name for name in free if name not in called((*UNITS, *MEASURE_NAMES))]
        one = types if types else called(MEASURE_NAMES) or others
        if len(one) != 1:
            found = ", ".join(one) or "none"
            raise table.refuse(f"events must have one column of types, got {found}; pass --set data.node=NAME")
        kind = one[0]
    if unit is None:
        units = [name for name in called(UNITS) if name != kind]
        units = [name for name in units if table.cells(name).nunique() < len(table.frame)]  # not a number per event
        if len(units) > 1:
            raise table.refuse(
                f"events must have at most one column of units, got {', '.join(units)}; set series to its name"
            )
        unit = next(iter(units), None)
    return time, kind, unit


def _moments(times: Times) -> Moments:
    """Return times as numbers, dates in nanoseconds since 1970."""
    return times.astype("datetime64[ns]").astype(np.int64) if times.dtype.kind == "M" else times


def _bins(moments: Moments, length: Any) -> Which:
    """Return the number of the bin of each moment."""
    if moments.dtype.kind == "i" and float(length).is_integer():
        whole_bins: Which = moments // int(length)
        return whole_bins
    ratio = moments / length
    near = np.rint(ratio)  # 0.3 / 0.1 is below 3
    whole = np.abs(ratio - near) <= 1e-9 * np.maximum(np.abs(near), 1)
    bins: Which = np.where(whole, near, np.floor(ratio)).astype(np.int64)
    return bins


def _times_of(bins: Which, length: Any, *, dated: bool) -> Times:
    if not dated:
        numbers: Times = bins * length
        return numbers
    times = (bins * int(length)).astype("datetime64[ns]")
    seconds = times.astype("datetime64[s]")
    return seconds if (seconds == times).all() else times


def _length(table: Table, given: str | float, *, dated: bool) -> Any:
    """Return the bin that the user gave, in nanoseconds if times are dates."""
    import pandas as pd

    text = str(given).strip()
    try:
        plain: float | None = float(text)
    except ValueError:
        plain = None
    length: Any = None
    if dated and plain is None:
        try:
            length = int(pd.Timedelta(text).value)
        except ValueError:
            length = None
    elif not dated and plain is not None and np.isfinite(plain):
        length = int(plain) if plain.is_integer() else plain
    if length is None or not length > 0:
        need = "a duration such as 30s, 10min or 1D" if dated else "a positive number, as times are numbers"
        raise table.refuse(f"bin must be {need}, got {text!r}; write for example {'10min' if dated else '10'}")
    return length


def _words(length: Any, *, dated: bool) -> str:
    """Return the length of a bin as the option is written."""
    if not dated:
        return f"{length:g}" if float(f"{length:g}") == length else repr(length)
    for unit in reversed(UNITS_OF_TIME):
        if length % UNITS_OF_TIME[unit] == 0:
            return f"{length // UNITS_OF_TIME[unit]}{unit}"
    return f"{length}ns"


def _neighbours(path: str | Path, known: Sequence[str]) -> dict[str, list[str]]:
    """Return the neighbours of each unit in a file of units, which must have the units of the events."""
    table = open_table(path)
    first, names = table.distinct_names(table.columns[0])
    found: dict[str, set[str]] = {name: set() for name in names}
    if len(table.columns) > 1:
        for one, other in zip(first.tolist(), table.cells(table.columns[1]), strict=True):
            name = "" if other != other or other is None else str(other).strip()  # an empty cell: no neighbour
            if name and name != names[one]:
                found[names[one]].add(name)
                found.setdefault(name, set()).add(names[one])
    for name in known:
        if name not in found:
            raise InputError(
                f"units must have a row for every unit of the events, got none for '{name}'"
                f"{did_you_mean(name, [*found])}; add it to {path}"
            )
    return {name: sorted(others) for name, others in found.items()}

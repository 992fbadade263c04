"""Situations and regimes: their options, their variables, and edges that act in one part of the table only."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tacit.assessment.evidence import ABSENT, find_changes
from tacit.config import FitConfig
from tacit.data import PHASES, NamedPairs
from tacit.errors import InputError, did_you_mean, require
from tacit.graph import (
    Category,
    Context,
    ContextVariable,
    CovariateColumn,
    CovariateLevel,
    CovariatePhase,
    OwnInput,
    PairTime,
    Periodic,
    SeriesNumber,
    Smooth,
)
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.evidence import RegressionEvidence, all_pairs
from tacit.pipeline.preparation import PairsPreparation
from tacit.pipeline.sources import Source
from tacit.registry import PREDICTORS
from tacit.words import Choice, choose

SERIES, TIME, SOURCE, TARGET = "series", "time", "source", "target"
ENDS = (SOURCE, TARGET)
SPECIAL = (SERIES, TIME, *ENDS)
AUTO, FILTER = "auto", "filter"
PLAIN_GRAPH, PLAIN_LINK = "bernoulli", "sigmoid"


def settle_situations(config: FitConfig) -> FitConfig:
    """Return the config with the columns that ``depends_on`` names; incompatible options are refused.

    A part of the date is added to ``calendar`` and any other name to ``covariates``, so that nodes can depend on it
    too, and new data is read in the same way.
    """
    graph, data = config.graph, config.data
    require(
        graph.regimes is not None or graph.blocks == "rows",
        "blocks in [graph] requires regimes, got none; set regimes = 2, or leave blocks out",
    )
    if not graph.depends_on and graph.regimes is None:
        return config
    _require_together(config)
    names = tuple(_meant(name, config) for name in graph.depends_on)
    for position, name in enumerate(names):
        require(name not in names[:position], f"depends_on in [graph] names '{name}' twice; name it once")
    columns = [name for name in names if name not in SPECIAL and name not in (*data.covariates, *data.calendar)]
    dates = tuple(name for name in columns if name in PHASES)
    others = tuple(name for name in columns if name not in PHASES)
    changes: dict[str, Any] = {"calendar": (*data.calendar, *dates), "covariates": (*data.covariates, *others)}
    changes |= {"cut_series": True} if SERIES in names else {}
    return config.model_copy(
        update={
            "data": data.model_copy(update=changes),
            "graph": graph.model_copy(update={"depends_on": names}),
        }
    )


def _meant(name: str, config: FitConfig) -> str:
    """Return ``series`` or ``time`` for the column with this role, and any other name unchanged."""
    roles = {config.data.series: SERIES, config.data.time: TIME}
    return roles.get(name, name)


def _require_together(config: FitConfig) -> None:
    graph, what = config.graph, "depends_on" if config.graph.depends_on else "regimes"
    require(
        not graph.depends_on or graph.regimes is None,
        f"depends_on and regimes in [graph] cannot be combined, got {', '.join(graph.depends_on)} and {graph.regimes}; "
        "leave one of them out",
    )
    require(
        not graph.simultaneous,
        f"{what} in [graph] is not possible with simultaneous: effects within a step are those of a constant graph; "
        "leave one of them out",
    )
    for key, usual in (("graph", PLAIN_GRAPH), ("link", PLAIN_LINK)):
        got = getattr(config.model, key)
        require(got == usual, f"{what} in [graph] requires {key} = '{usual}' in [model], got '{got}'; leave it out")
    require(
        graph.regimes is None or not graph.symmetric or graph.blocks == "all",
        'symmetric in [graph] requires blocks = "all" with regimes, got "rows": an edge without direction is in two '
        "rows; set it, or leave one of them out",
    )
    kind = config.predictor.kind
    for name in graph.depends_on:
        require(
            name not in ENDS or not graph.symmetric,
            f"depends_on in [graph] names '{name}', but an edge without direction has no {name}; leave out symmetric, "
            "or name another variable",
        )
        absorbs = kind != AUTO and not (kind in PREDICTORS and PREDICTORS[kind].gated_by_inputs)
        require(
            name not in ENDS or not absorbs,
            f"depends_on in [graph] names '{name}', the input of a node, which requires a predictor without layers "
            f"(filter, hops), got '{kind}'; leave one of them out",
        )


def settle_own_inputs(config: FitConfig) -> tuple[FitConfig, list[Choice]]:
    """Return the config with the filter if edges may depend on the inputs of their nodes, and the reason."""
    if config.predictor.kind != AUTO or not set(config.graph.depends_on) & set(ENDS):
        return config, []
    predictor = config.predictor.model_copy(update={"kind": FILTER})
    return config.model_copy(update={"predictor": predictor}), [choose("predictor", FILTER, "absorbs")]


@contextmanager
def about_depends_on(config: FitConfig) -> Iterator[None]:
    """Change the errors of a reader so that they name ``depends_on``, if the user named the column there."""
    try:
        yield
    except InputError as error:
        text = str(error)
        for key in ("covariates", "calendar"):
            names = [name for name in getattr(config.data, key) if name in config.graph.depends_on]
            for name in names:
                for said in (f"{key} names the column '{name}'", f"{key} names '{name}'"):
                    if said in text:
                        text = _nearer(text.replace(said, f"depends_on{said.removeprefix(key)}"), name)
            if names and f"{key} in [data] has no meaning" in text:
                text = re.sub(rf"{key} in \[data\] has no meaning", f"depends_on names '{names[0]}', a column", text)
                text = text.replace("; leave it out", f"; use a part of the date, {', '.join(SPECIAL)}")
        raise InputError(text) from None


def _nearer(text: str, name: str) -> str:
    """Suggest a similar part of the date, or another name that is not a column."""
    near = get_close_matches(name, [*PHASES, *SPECIAL], n=1)
    head, known, _ = text.partition("; known are ")
    return f"{head}; did you mean '{near[0]}'?" if near and known and near[0] != name else text


NAMED = 5
ADVICE = f"Use --depends-on {TIME} to see how often they act over time."


def with_changes(
    evidence: RegressionEvidence, dataset: Dataset, fdr: float, depends_on: tuple[str, ...] = ()
) -> RegressionEvidence:
    """Return the evidence with the times at which listed edges change.

    Pairs without time, edges without direction and effects within a step have none. ``depends_on`` is the option.
    """
    pairs, rules = all_pairs(dataset.split), evidence.rules
    if pairs.times is None or rules.symmetric or evidence.within is not None:
        return evidence
    screened, preparation = evidence.found.screened, dataset.preparation
    first, sizes = find_changes(
        *evidence.beside(pairs, preparation),
        screened,
        evidence.of_candidates(evidence.listed(fdr)),
        evidence.found.believed,
        evidence.form,
        horizon=preparation.horizon,
        observation=evidence.observation,
    )
    if not (first >= 0).any():
        return evidence
    rows, places = (first >= 0).nonzero().unbind(1)
    source, target = screened.sources[rows, places].tolist(), screened.targets[rows].tolist()
    at = [moment(number, dated=dataset.dated) for number in pairs.times[first[rows, places]].tolist()]
    numbers = [[round(value, 3) for value in pair] for pair in sizes[rows, places].tolist()]
    changes = [
        {"source": j, "target": i, "at": time, "before": before, "after": after}
        for j, i, time, (before, after) in zip(source, target, at, numbers, strict=True)
    ]
    table = evidence.table
    found = table.index.find(np.array(source), np.array(target))
    changed = np.full(len(table), "", dtype=object)
    changed[found] = at
    groups = [""] * len(source) if table["group"] is None else table["group"][found].tolist()
    names = [
        f"{group or rules.nodes[j]} -> {rules.nodes[i]}" for group, j, i in zip(groups, source, target, strict=True)
    ]
    said = _sentence(changes, names, dated=dataset.dated, advised=TIME not in depends_on)
    return replace(
        evidence,
        table=table.updated(changed=changed),
        notes=(*evidence.notes, said),
        changes=tuple(changes),
    )


def moment(number: float, *, dated: bool) -> str:
    """Return a time as text: a date, with the time of day unless it is midnight, or a number.

    >>> moment(1709596800.0, dated=True), moment(1709600400.0, dated=True), moment(512.0, dated=False)
    ('2024-03-05', '2024-03-05T01:00:00', '512')
    """
    if not dated:
        return f"{number:.6g}"
    found = np.datetime64(round(number), "s")
    return str(found.astype("datetime64[D]") if found == found.astype("datetime64[D]") else found)


def _sentence(changes: list[dict[str, Any]], names: list[str], *, dated: bool, advised: bool) -> str:
    """Return which edges act in a part of the table, and which change their sign.

    >>> parts = [{"at": "512", "before": 2.0, "after": 0.1}, {"at": "90", "before": -1.0, "after": 1.2}]
    >>> _sentence(parts, ["a -> b", "b -> c"], dated=False, advised=False)
    '1 edge acts in a part of the table only: a -> b until time 512. 1 edge changes its sign: b -> c at time 90.'
    """
    partly, signs = list[str](), list[str]()
    for change, name in zip(changes, names, strict=True):
        at = change["at"] if dated else f"time {change['at']}"
        before, after = change["before"], change["after"]
        if before * after < 0 and min(abs(before), abs(after)) > ABSENT * max(abs(before), abs(after)):
            signs.append(f"{name} at {at}")
        else:
            partly.append(f"{name} {'until' if abs(before) > abs(after) else 'from'} {at}")
    said = []
    for found, one, several in (
        (partly, "acts in a part of the table only", "act in a part of the table only"),
        (signs, "changes its sign", "change their sign"),
    ):
        if found:
            count = f"1 edge {one}" if len(found) == 1 else f"{len(found):,} edges {several}"
            more = f"; and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
            said.append(f"{count}: {'; '.join(found[:NAMED])}{more}.")
    return " ".join([*said, *([ADVICE] if partly and advised else [])])


FEWEST_PAIRS = 20  # training pairs for each level
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
FORTNIGHT = 14  # days between the days of the year that are shown
PLACES: dict[str, tuple[tuple[str, float], ...]] = {  # label and phase
    "minute": tuple((str(minute), minute / 60) for minute in range(0, 60, 5)),
    "hour": tuple((str(hour), hour / 24) for hour in range(24)),
    "weekday": tuple((name, day / 7) for day, name in enumerate(WEEKDAYS)),
    "day": tuple((str(day + 1), day / 31) for day in range(31)),
    "dayofyear": tuple((str(day + 1), day / 365) for day in range(0, 365, FORTNIGHT)),
    "month": tuple((str(month + 1), month / 12) for month in range(12)),
}


def context_variables(dataset: Dataset, config: FitConfig) -> tuple[ContextVariable, ...]:
    """Return the variables that edges may depend on, from the training pairs; impossible ones are refused."""
    if not config.graph.depends_on:
        return ()
    context = Context.of(dataset.split.train)
    found = tuple(_variable(name, dataset, config, context).measure(context) for name in config.graph.depends_on)
    numbers, pairs = sum(one.num_features for one in found), len(context.inputs)
    require(
        pairs >= FEWEST_PAIRS * numbers,
        f"depends_on in [graph] takes {numbers} numbers per edge ({', '.join(config.graph.depends_on)}), which must "
        f"have {FEWEST_PAIRS} training pairs each, {FEWEST_PAIRS * numbers} in all, got {pairs}; name fewer, or "
        "pass more data",
    )
    return found


def require_source(source: Source, config: FitConfig) -> None:
    """For pairs without time, refuse variables of time and covariates that are not in ``depends_on``."""
    if not isinstance(source.content, NamedPairs):
        return
    for name in config.data.covariates:
        require(
            name in config.graph.depends_on,
            f"{source.name}: covariates names '{name}', which has no meaning for pairs unless depends_on in [graph] "
            "names it too; add it there, or put it into x",
        )
    for name in config.graph.depends_on:
        require(
            name not in (SERIES, TIME) and not (name in PHASES and name not in config.data.covariates),
            f"{source.name}: depends_on names '{name}', but pairs x and y have no time; use 'source', 'target' or a "
            "covariate",
        )


def _variable(name: str, dataset: Dataset, config: FitConfig, context: Context) -> ContextVariable:
    if name == SERIES:
        return _of_series(dataset, context)
    if name == TIME:
        return _of_time(dataset, context)
    if name in ENDS:
        channel = 0 if isinstance(dataset.preparation, PairsPreparation) else _newest(dataset)
        return Smooth.of(name, OwnInput(name, channel), context, digits=2)  # type: ignore[arg-type]
    return _of_covariate(name, dataset, config, context)


def _newest(dataset: Dataset) -> int:
    """Return the channel of the newest value of the first target variable."""
    sizes = dataset.preparation.sizes
    return (sizes.window - 1) * sizes.num_features


def _of_series(dataset: Dataset, context: Context) -> ContextVariable:
    names, known = dataset.series_names, () if isinstance(dataset.preparation, PairsPreparation) else _named(dataset)
    require(
        context.series is not None and len(names) > 1,
        f"depends_on names 'series', which must be two series or more, got {max(1, len(names))}; set series in [data] "
        "to the column that names them, pass several files, or leave it out",
    )
    require(
        all(known),
        "depends_on names 'series', but the series have no names, which new data requires; set series in [data] to a "
        "column of names, or pass several files",
    )
    variable = Category(SERIES, SeriesNumber(), labels=names)
    _require_levels(variable, context)
    return variable


def _named(dataset: Dataset) -> tuple[str, ...]:
    """Return the names of the series; "" for a series without a name."""
    preparation = dataset.preparation
    return () if isinstance(preparation, PairsPreparation) else preparation.scaling.series_names


def _of_time(dataset: Dataset, context: Context) -> ContextVariable:
    times = context.times
    if times is None:
        raise InputError("depends_on names 'time', but pairs x and y have no time; leave it out")
    first, last = float(times.min()), float(times.max())
    require(first < last, "depends_on names 'time', which is the same in all training pairs; leave it out")
    reading = PairTime(first, last)
    smooth = Smooth.of(TIME, reading, context)
    labels = [moment(first + share * (last - first), dated=dataset.dated) for share in smooth.grid]
    return Smooth(TIME, reading, smooth.quantiles, smooth.grid, labels)


def _of_covariate(name: str, dataset: Dataset, config: FitConfig, context: Context) -> ContextVariable:
    names, mean, deviation = dataset.preparation.covariate_units
    place = {column: number for number, column in enumerate(names)}
    levels = config.data.levels.get(name)
    columns = (
        [f"{name}={level}" for level in levels[1:]]
        if levels
        else [f"{name} sin", f"{name} cos"]
        if name in PHASES and name not in place
        else [name]
    )
    for column in columns:
        if column not in place:
            plain = {one.split("=")[0].removesuffix(" sin").removesuffix(" cos") for one in names}
            raise InputError(
                f"depends_on names '{name}', which is not in the data{did_you_mean(name, {*plain, *SPECIAL})}"
            )
    at = tuple(place[column] for column in columns)
    shifts, scales = (tuple(float(table[number]) for number in at) for table in (mean, deviation))
    if levels:
        variable: ContextVariable = Category(name, CovariateLevel(at, shifts, scales), labels=levels)
        _require_levels(variable, context)
    elif len(at) == 2:
        variable = _periodic(name, CovariatePhase(at, shifts, scales), context)  # type: ignore[arg-type]
    else:
        variable = Smooth.of(name, CovariateColumn(at[0], shifts[0], scales[0]), context)
    return variable


def _periodic(name: str, reading: CovariatePhase, context: Context) -> ContextVariable:
    """Return a part of the date, with the values that are nearest to a training pair."""
    places = PLACES[name]
    phases = torch.tensor([phase for _, phase in places], dtype=torch.float64)
    values = torch.from_numpy(np.unique(reading(context).double().flatten().cpu().numpy()))
    away = (values[:, None] - phases + 0.5) % 1 - 0.5  # (value, place)
    near = set(away.abs().argmin(1).tolist())
    require(len(near) > 1, f"depends_on names '{name}', which is the same in all training pairs; leave it out")
    shown = [places[number] for number in sorted(near)]
    return Periodic(name, reading, [phase for _, phase in shown], [label for label, _ in shown])


def _require_levels(variable: ContextVariable, context: Context) -> None:
    """Refuse a category with a level that has too few training pairs."""
    values: Tensor = variable.reading(context)
    counts = [int((values == number).sum()) for number in range(len(variable.labels))]
    few = min(range(len(counts)), key=counts.__getitem__)
    what = f"depends_on names '{variable.name}'"
    require(
        sum(count > 0 for count in counts) > 1,
        f"{what}, which is the same in all training pairs; leave it out",
    )
    require(
        counts[few] > 0,
        f"{what}, but level '{variable.labels[few]}' is in no training pair; leave its rows out, train on a larger "
        "fraction, or leave it out",
    )
    require(
        counts[few] >= FEWEST_PAIRS,
        f"{what}, which must have {FEWEST_PAIRS} training pairs for each of its {len(counts)} levels, got "
        f"{counts[few]} for '{variable.labels[few]}'; join levels, pass more data, or leave it out",
    )


def kind_of(variable: ContextVariable) -> str:
    """Return what a variable is, in the words of a record."""
    return {Category: "category", Periodic: "periodic"}.get(type(variable), "number")


def described(variables: Sequence[ContextVariable]) -> list[dict[str, object]]:
    """Return the entry of the record on the variables."""
    return [{"name": one.name, "kind": kind_of(one), "values": list(one.labels)} for one in variables]

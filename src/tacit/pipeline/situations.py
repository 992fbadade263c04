"""The variables of ``depends_on``: their position in the pairs of a data set, and the values that tables show.

Categorical covariates and the series are categories, parts of the date are periodic, and numbers, the time and the
input of a node are smooth. Each level of a category must have ``FEWEST_PAIRS`` training pairs, so that its probability
can be estimated.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

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
from tacit.pipeline.edge_changes import moment
from tacit.pipeline.preparation import PairsPreparation
from tacit.pipeline.situation_options import ENDS, SERIES, SPECIAL, TIME
from tacit.pipeline.sources import Source

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

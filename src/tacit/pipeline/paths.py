r"""Forecasts of several steps: origins, paths of samples that are fed back, and their table.

Forecast paths: samples of the next step are fed back as inputs of the steps after it.

$$y^s_{t+k} \sim p\big(y \mid f_\psi(x^s_{t+k-h}, A^s_k), x^s_{t+k-h}\big), \qquad A^s_k \sim P_\theta, \qquad
  k = 1, 2, \dots$$

$x^s_{t+k-h}$ is the window that ends $h$ steps (the horizon) before the target: observed rows up to the origin $t$, and
after it the samples of path $s$. Every path draws a new graph at every step, as in training, and its own noise. At the
steps $k \le h$ all inputs are observed, so the first step is the one-step forecast. Covariates and waves are those of
the time of each step. A level follows the samples of its path, so it continues as a random walk.

For $h > 1$ the noise of neighbouring steps is drawn independently, because the model has no correlated noise.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Generator, Tensor, cat

from tacit.assessment.evaluation import PointName, SharedDraws, discrete_nodes, point_prediction
from tacit.data import (
    NO_BACKGROUND,
    NUMERIC_DATE,
    Background,
    Level,
    Series,
    SeriesUnits,
    columns_at_targets,
    covariates_ahead,
    extended_times,
    level_places,
    level_values,
    time_numbers,
    unknown_ahead,
)
from tacit.errors import InputError, require, require_int
from tacit.graph import Context, require_memory
from tacit.pipeline.fitted import Fitted
from tacit.pipeline.forecasts import (
    LEVELS,
    ClassForecasts,
    forecast_frame,
    in_units,
    needs_series,
    require_memory_for_table,
    training_series,
    values_in_units,
    weight_columns,
)
from tacit.pipeline.observation_kinds import require_new_values, supports_of
from tacit.pipeline.preparation import Preparation, SeriesPreparation
from tacit.pipeline.sources import Source, about
from tacit.randomness import generator_for
from tacit.shapes import Samples, TargetParams
from tacit.training import LatentGraphModel

if TYPE_CHECKING:
    import pandas as pd


Rows = Int[np.ndarray, " origin"]
NO_ROWS: Rows = np.zeros(0, dtype=np.int64)
OUTSIDE = "the model was fitted only to targets that meet where; steps of a path that do not are forecast too"
PerStep = Shaped[np.ndarray, "origin step"]


@dataclass(frozen=True, eq=False)
class Origins:
    """The last observed rows of forecast paths, one entry per origin, and the steps that follow.

    ``window``        number of steps of an input; ``history`` has ``horizon - 1`` rows more, all scaled as in training
    ``covariates``    scaled covariates in the newest input row of each step; empty if the run has none
    ``known``         columns of each step after its window, with 0 in place of levels; see :mod:`tacit.data.windows`
    ``levels``        the levels in the last ``horizon`` rows; ``background`` and ``level_places`` say how they go on
    ``time_numbers``  times of the targets, as in :class:`~tacit.data.Pairs`
    ``actual``        actual values in the units of the data; NaN if they are not known
    ``series``        the number of the series of each origin, and ``series_names`` its name, if there are several
    ``units``         units of each series, if they differ; see :class:`~tacit.data.Pairs`
    """

    window: int
    history: Float[Tensor, "origin row node feature"]
    covariates: Float[Tensor, "origin step covariate"]
    known: Float[Tensor, "origin step node known"]
    levels: Float[Tensor, "origin seen node level"]
    time_numbers: Float[Tensor, "origin step"]
    series: Int[Tensor, " origin"] | None
    origin_times: Shaped[np.ndarray, " origin"]
    times: PerStep
    actual: Float[np.ndarray, "origin step node channel"]
    series_names: Shaped[np.ndarray, " origin"] | None = None
    units: SeriesUnits | None = None
    notes: tuple[str, ...] = ()
    background: Background = NO_BACKGROUND
    level_places: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.history)

    @property
    def horizon(self) -> int:
        """Number of steps from the end of a window to its target."""
        return self.history.shape[1] - self.window + 1

    @property
    def rates(self) -> Float[Tensor, "node level"]:
        """How fast each level follows the samples; 0 for nodes that do not use it."""
        background = self.background
        found = [
            torch.from_numpy(background.used[:, number]) * term.rate
            for number, term in enumerate(background.terms)
            if isinstance(term, Level)
        ]
        return torch.stack(found, -1) if found else torch.zeros(self.history.shape[2], 0)

    @property
    def steps(self) -> int:
        """Number of steps of a path."""
        return int(self.times.shape[1])

    def __getitem__(self, chosen: slice) -> "Origins":
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        cut: Any = {name: part[chosen] for name, part in parts.items() if isinstance(part, Tensor | np.ndarray)}
        return replace(self, **cut)


def find_origins(
    preparation: Preparation,
    source: Source,
    steps: int,
    origin: Any = None,
    every: int | None = None,
    name: str = "origin",
) -> Origins:
    """Return the origins of paths of ``steps`` steps in each series of the source.

    ``origin``  the time of the last row that a path uses; None: the last row with an observed value
    ``every``   further origins every ``every`` rows, up to the last observed row; without ``origin``, from the first
                row with a window
    ``name``    of ``origin`` in errors
    """
    if not isinstance(preparation, SeriesPreparation):
        raise InputError("steps requires a run of a series, got a run of pairs, which have no order; leave steps out")
    require_int("steps", steps)
    if every is not None:
        require_int("every", every)
    _require_all_targets(preparation, steps)
    content, channels = source.content, preparation.scaling.out_channels
    if not isinstance(content, Series):
        raise InputError(f"{source.name}: this run learned from a series; pass a table with the same nodes")
    with about(source.name):
        rows, reasons = [], list[tuple[str, str]]()
        for part in content.parts:
            found, reason = _origin_rows(preparation, part, origin, every, name)
            rows.append(found)
            reasons += [] if len(found) else [reason]
        used = [number for number, found in enumerate(rows) if len(found)]
        if not used:
            raise InputError(_none_left(content, reasons, name))
        require_memory_for_table(sum(map(len, rows)) * steps * preparation.scaling.mean[:, :channels].size, 0)
        left_out = [f"{count} of {content.num_series} series were left out: {why}" for why, count in _counts(reasons)]
        known = _until(content, {number: int(rows[number][-1]) for number in used})
        scaling, new = preparation.scaling.of_series(known), preparation.scaling.new_series_note(known)
        several = bool(content.lengths) or scaling.by != "all"
        parts = [
            _cut(replace(preparation, scaling=scaling), content.parts[one], rows[one], steps, number, several)
            for number, one in enumerate(used)
        ]
        names = np.array(known.series_names).repeat([len(rows[one]) for one in used]) if content.lengths else None
        new += scaling.no_level_note(known)
        notes = (*content.notes, *left_out, *new, *([] if content.where is None else [OUTSIDE]))
        return replace(joined_origins(parts), series_names=names, units=scaling.units, notes=notes)


def _until(content: Series, last: dict[int, int]) -> Series:
    """Return the chosen series without the observations after their last origins."""
    values = content.values.copy()
    starts, lengths = content.starts.tolist(), content.lengths or (len(content),)
    for number, row in last.items():
        values[starts[number] + row + 1 : starts[number] + lengths[number]] = np.nan
    known = replace(content, values=values, piece=True)
    return known.selected(list(last)) if content.lengths else known


def _counts(reasons: Sequence[tuple[str, str]]) -> list[tuple[str, int]]:
    return list(Counter(why for why, _ in reasons).items())


def _require_all_targets(preparation: SeriesPreparation, steps: int) -> None:
    """Refuse paths for which a part of the inputs is not predicted."""
    scaling = preparation.scaling
    others = scaling.variables[scaling.out_channels :]
    require(
        not others or steps <= preparation.horizon,
        f"paths of more than {preparation.horizon} steps require that all variables are predicted, but this run does "
        f"not predict {', '.join(others)}, whose future values are inputs; fit again without targets",
    )


def _origin_rows(
    preparation: SeriesPreparation, part: Series, origin: Any, every: int | None, name: str
) -> tuple[Rows, tuple[str, str]]:
    """Return the origins of one series, or the reasons why there are none: for a note and for an error."""
    need = preparation.reach - 1
    seen = np.flatnonzero(~np.isnan(part.values).all(axis=(1, 2)))
    times, last = part.row_times, int(seen[-1]) if len(seen) else -1
    first = last if every is None else need - 1
    if origin is not None:
        moment = _time_like(times, origin, name)
        if last < 0 or not times[0] <= moment <= times[last]:
            ends = f"{times[0]} and {times[last]}" if last >= 0 else "observed rows"
            return NO_ROWS, (
                "they have no row at the origin",
                f"{name} must be between {ends}, got {origin}; pass another time",
            )
        first = int(np.searchsorted(times, moment, side="right")) - 1
    if min(first, last) < need - 1:
        wish = f"a window of {preparation.windows.window}"
        wish += f" and a horizon of {preparation.horizon}" if preparation.horizon > 1 else ""
        return NO_ROWS, (
            f"they are shorter up to the origin than the {need} rows of {wish}",
            f"the series must have at least {need} rows up to the origin for {wish}, got {min(first, last) + 1}; pass "
            f"more rows, or a later {name}",
        )
    return np.arange(first, last + 1, every or last + 1), ("", "")


def _none_left(content: Series, reasons: Sequence[tuple[str, str]], name: str) -> str:
    if not content.lengths:
        return reasons[0][1]
    counts = ", ".join(f"{count} because {why}" for why, count in _counts(reasons))
    return (
        f"a path must start in a series, but all {content.num_series} were left out, {counts}; pass longer ones, or "
        f"another {name}"
    )


def _time_like(times: np.ndarray, origin: Any, name: str) -> Any:
    """Parse a time in the type of the times of the data."""
    import pandas as pd

    kind, example = times.dtype.kind, times[-1]
    try:
        if kind == "M":
            require(not re.match(NUMERIC_DATE, str(origin)), "")  # 03/04/2021 has two readings
            stamp = pd.Timestamp(origin)
            return (stamp if stamp.tzinfo is None else stamp.tz_convert("UTC").tz_localize(None)).to_datetime64()
        return pd.Timedelta(origin).to_timedelta64() if kind == "m" else float(origin)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a time like {example}, got {origin!r}; pass one of the table") from None


def _cut(preparation: SeriesPreparation, part: Series, rows: Rows, steps: int, number: int, several: bool) -> Origins:
    """Return the origins of one of ``several`` series."""
    scaling, horizon, background = preparation.scaling, preparation.horizon, preparation.background
    ahead = rows[:, None] + np.arange(1, steps + 1)  # (origin, step)
    missing = max(0, int(ahead.max()) + 1 - len(part))
    times = extended_times(part.row_times, missing)
    if missing:
        for name in unknown_ahead(scaling, part):
            raise InputError(
                f"covariate '{name}' must be known until {times[int(ahead.max())]} for these steps, got it until "
                f"{part.row_times[-1]}; add rows with the covariates and empty cells for the nodes"
            )
    features, channels = scaling.features(part, number), scaling.out_channels
    values = scaling.ordered(part)[:, :, :channels]
    values = np.concatenate([values, np.full((missing, *values.shape[1:]), np.nan)])
    covariates = covariates_ahead(scaling, part, missing)
    known = columns_at_targets(scaling, background, covariates, time_numbers(times).numpy())
    history = features[rows[:, None] + np.arange(2 - preparation.reach, 1)]
    seen = rows[:, None] + np.arange(1 - horizon, 1)  # (origin, row)
    return Origins(
        preparation.windows.window,
        torch.from_numpy(history).float(),
        torch.from_numpy(covariates[ahead - horizon]).float(),
        torch.from_numpy(known[ahead]).float(),
        torch.from_numpy(level_values(background, scaling.scaled(part, number))[seen]).float(),
        time_numbers(times[ahead]),
        torch.full((len(rows),), number) if several else None,
        times[rows],
        times[ahead],
        values[ahead],
        background=background,
        level_places=tuple(level_places(scaling, background)),
    )


def joined_origins(parts: Sequence[Origins]) -> Origins:
    """Return several origins as one."""
    first = parts[0]
    if len(parts) == 1:
        return first
    joined: dict[str, Any] = {}
    for field in fields(first):
        values = [getattr(part, field.name) for part in parts]
        if isinstance(values[0], Tensor):
            joined[field.name] = torch.cat(values)
        elif isinstance(values[0], np.ndarray):
            joined[field.name] = np.concatenate(values)
    return replace(first, **joined)


NUM_PATHS = 1000
MOST_NUMBERS = 2**24  # of the paths that are sampled together: 64 MB, and a few times as much in temporary memory


class PathStep(NamedTuple):
    """One step of all paths: the parameters of each target under its graph, its mean and its sample."""

    described: TargetParams
    means: Samples
    values: Samples


class PathPoints(NamedTuple):
    """Scaled point forecasts of every step, and probabilities of classes if requested."""

    points: Float[Tensor, "origin step node channel point"]
    probs: Float[Tensor, "origin step node channel class"] | None


class PathInputs:
    """The inputs of the steps of all paths from their origins: observed rows, then the values that are fed back.

    ``differences``  of two paths are fed back: flags do not differ, and no row was observed
    """

    def __init__(self, origins: Origins, device: torch.device, *, differences: bool = False) -> None:
        self.origins, self.differences = origins, differences
        self.recent, self.levels = origins.history[:, None].to(device), origins.levels[:, None].to(device)
        self.rates = origins.rates.to(self.recent)

    def at(self, step: int) -> Float[Tensor, "origin path node in_channel"]:
        """Return the inputs of a step; one path until values are fed back."""
        origins, recent = self.origins, self.recent
        shared = step < origins.horizon and not self.differences  # all paths have the observed window
        windows = recent[:, : 1 if shared else None, : origins.window]
        inputs = windows.transpose(2, 3).flatten(3)  # (origin, path, node, window * feature)
        if origins.known.shape[3]:
            known = origins.known[:, None, step].to(recent).repeat(1, inputs.shape[1], 1, 1)
            known[..., list(origins.level_places)] = self.levels[:, : inputs.shape[1], 0]
            inputs = torch.cat([inputs, known], 3)
        return inputs

    def feed(self, values: Samples) -> None:
        """Add the values of a step as the newest row."""
        flags = values.new_full(
            (*values.shape[:3], self.recent.shape[4] - values.shape[3]), 0.0 if self.differences else 1.0
        )
        row, paths = torch.cat([values, flags], -1)[:, :, None], values.shape[1]
        self.recent = torch.cat([self.recent.expand(-1, paths, -1, -1, -1)[:, :, 1:], row], 2)
        newest = self.levels[:, :, -1]
        newest = newest + self.rates * (values[..., :1] - newest)
        self.levels = torch.cat([self.levels.expand(-1, paths, -1, -1, -1)[:, :, 1:], newest[:, :, None]], 2)

    def skip(self) -> None:
        """Drop the oldest row; the last steps feed nothing back."""
        self.recent, self.levels = self.recent[:, :, 1:], self.levels[:, :, 1:]


@torch.no_grad()
def path_steps(
    model: LatentGraphModel,
    origins: Origins,
    num_paths: int,
    *,
    seed: int,
    noise: Generator | None = None,
    held: Callable[[int, Samples], Samples] | None = None,
) -> Iterator[PathStep]:
    """Yield the steps of ``num_paths`` paths from each origin.

    All origins share the graphs and the noise of each step, so that the forecast from one origin does not depend on the
    others. With a generator ``noise`` every path has its own noise instead. ``held`` replaces values and means of a
    step, for example those of a node that is set from outside, before the values are inputs.
    """
    device = model.graph.raw.device
    paths = PathInputs(origins, device)
    for step in range(origins.steps):
        draws = SharedDraws(model, num_paths, generator_for(seed, _purpose(step), device))
        inputs = paths.at(step)
        described = draws.described_paths(inputs, _context(origins, inputs, step))
        values = draws.with_noise(described) if noise is None else model.observation.draw(described, generator=noise)
        means = model.observation.mean(described)
        if held is not None:
            values, means = held(step, values), held(step, means)
        yield PathStep(described, means, values)
        if step < origins.steps - origins.horizon:  # the sample becomes an input, observed
            paths.feed(values)
        else:
            paths.skip()


def origins_at_once(model: LatentGraphModel, origins: Origins, num_paths: int) -> int:
    """Return the number of origins that are sampled together, which limits the memory."""
    rows, columns = model.graph.edge_shape
    each = num_paths * (origins.history[0].numel() + 2 * rows * columns)
    return max(1, MOST_NUMBERS // each)


@torch.no_grad()
def path_points(
    fitted: Fitted,
    origins: Origins,
    points: tuple[PointName | float, ...],
    *,
    num_paths: int = NUM_PATHS,
    seed: int,
    classes: ClassForecasts | None = None,
) -> PathPoints:
    """Return scaled means, medians or quantiles of every step, and the probabilities of ``classes``."""
    observation = fitted.model.observation
    parts, masses, discrete = [], [], discrete_nodes(observation, len(fitted.nodes))
    for chunk in _chunks(fitted, origins, num_paths):
        steps, probs = [], []
        for described, means, values in path_steps(fitted.model, chunk, num_paths, seed=seed):
            found = [
                means.mean(1) if point == "mean" else point_prediction(values, point, discrete) for point in points
            ]
            steps.append(torch.stack(found, -1).cpu())
            probs += [] if classes is None else [classes.probs(observation, described)]
        parts.append(torch.stack(steps, 1))
        masses += [torch.stack(probs, 1)] if probs else []
    return PathPoints(torch.cat(parts), torch.cat(masses) if masses else None)


@torch.no_grad()
def drawn_paths(
    fitted: Fitted, origins: Origins, num_samples: int, *, seed: int
) -> Float[Tensor, "origin step node channel sample"]:
    """Return scaled sample paths, each with its own noise."""
    noise = generator_for(seed, "path noise", fitted.model.graph.raw.device)
    parts = []
    for chunk in _chunks(fitted, origins, num_samples):
        steps = path_steps(fitted.model, chunk, num_samples, seed=seed, noise=noise)
        parts.append(torch.stack([step.values.movedim(1, -1).cpu() for step in steps], 1))
    return torch.cat(parts)


def _chunks(fitted: Fitted, origins: Origins, num_paths: int) -> Iterator[Origins]:
    require_int("num_paths", num_paths)
    model = fitted.model
    rows, columns = model.graph.edge_shape
    each = 4 * num_paths * (2 * origins.history[0].numel() + 6 * rows * columns)
    require_memory(each, model.graph.raw.device, f"{num_paths:,} paths", "lower the number of graphs or samples")
    size = origins_at_once(model, origins, num_paths)
    for start in range(0, len(origins), size):
        yield origins[start : start + size]


def _purpose(step: int) -> str:
    """Return the name of the random numbers of a step; the first step uses those of a one-step forecast."""
    return "predict" if step == 0 else f"predict, step {step + 1}"


def _context(origins: Origins, inputs: Float[Tensor, "origin path node in_channel"], step: int) -> Context:
    """Return the context of the graphs, a row for each origin and path."""
    paths = inputs.shape[1]
    known = origins.covariates[:, step].to(inputs) if origins.covariates.shape[2] else None  # of the newest input row
    shared, series, times = (
        None if part is None else part.to(inputs.device).repeat_interleave(paths, 0)
        for part in (known, origins.series, origins.time_numbers[:, step])
    )
    return Context(inputs.flatten(0, 1), shared, series, times)


def path_table(
    fitted: Fitted,
    source: Source,
    steps: int,
    *,
    origin: Any = None,
    every: int | None = None,
    seed: int = 0,
    num_samples: int = 0,
) -> "pd.DataFrame":
    """Return the columns of :func:`~tacit.pipeline.forecast_table`, preceded by ``origin`` and ``step``.

    ``origin`` is the time of the last row that a path uses, by default the last row of each series with an observed
    value. With ``every`` a path starts every ``every`` rows. Samples with the same number form one path.
    """
    require_int("num_samples", num_samples, 0)
    origins = path_origins(fitted, source, steps, origin, every)
    require_memory_for_table(origins.actual.size, num_samples)
    classes = ClassForecasts.of(fitted.config, fitted.preparation)
    numbers, probs = path_points(fitted, origins, ("mean", *LEVELS), seed=seed, classes=classes)
    if num_samples:
        numbers = cat([numbers, drawn_paths(fitted, origins, num_samples, seed=seed)], -1)
    mean, values = numbers[..., :1], numbers[..., 1:]
    numbers = cat([_in_units(fitted, mean, origins, values=False), _in_units(fitted, values, origins)], -1)
    supports = supports_of(fitted.config, fitted.nodes)
    numbers, further = numbers.flatten(0, 1), {}
    if classes is not None and probs is not None:
        further = classes.columns(probs.flatten(0, 1), numbers[..., 0], supports)
    further |= weight_columns(fitted, len(numbers), numbers.shape[2])
    keys = {} if origins.series_names is None else {"series": origins.series_names.repeat(steps)}
    keys["origin"] = origins.origin_times.repeat(steps)
    keys["step"] = np.tile(np.arange(1, steps + 1), len(origins))
    keys["time"] = origins.times.reshape(-1)
    actual = origins.actual.reshape(-1, *origins.actual.shape[2:])
    return forecast_frame(fitted, keys, numbers, actual, origins.notes, further)


def path_predictions(
    fitted: Fitted,
    source: Source,
    steps: int,
    point: PointName | float = "mean",
    *,
    origin: Any = None,
    num_graphs: int = NUM_PATHS,
    seed: int = 0,
) -> tuple[Float[np.ndarray, "origin step node channel"], Origins]:
    """Return the mean, the median or a quantile of every step of every series, and the origins of the paths."""
    origins = path_origins(fitted, source, steps, origin)
    found = path_points(fitted, origins, (point,), num_paths=num_graphs, seed=seed).points
    return _in_units(fitted, found, origins, values=point != "mean")[..., 0].numpy(), origins


def path_quantiles(
    fitted: Fitted, source: Source, steps: int, levels: Sequence[float], *, origin: Any = None, seed: int = 0
) -> tuple[Float[np.ndarray, "origin step node channel level"], Origins]:
    """Return quantiles of every step of every series, and where the paths start."""
    origins = path_origins(fitted, source, steps, origin)
    found = path_points(fitted, origins, tuple(levels), seed=seed).points
    return _in_units(fitted, found, origins).numpy(), origins


def path_class_probabilities(
    fitted: Fitted, source: Source, steps: int, *, origin: Any = None, num_graphs: int = NUM_PATHS, seed: int = 0
) -> Float[np.ndarray, "origin step node channel class"]:
    """Return the probability of each class at every step: the mean over paths."""
    origins = path_origins(fitted, source, steps, origin)
    classes = ClassForecasts.of(fitted.config, fitted.preparation)
    found = path_points(fitted, origins, ("mean",), num_paths=num_graphs, seed=seed, classes=classes).probs
    assert found is not None
    return found.numpy()


def path_samples(
    fitted: Fitted,
    source: Source,
    steps: int,
    *,
    num_samples: int,
    origin: Any = None,
    every: int | None = None,
    seed: int = 0,
) -> Float[np.ndarray, "origin sample step node channel"]:
    """Return sample paths: each has its own graphs and noise; the origins share the graphs."""
    require_int("num_samples", num_samples)
    origins = path_origins(fitted, source, steps, origin, every)
    require_memory_for_table(origins.actual.size, num_samples)
    found = _in_units(fitted, drawn_paths(fitted, origins, num_samples, seed=seed), origins)
    return found.movedim(-1, 1).numpy()


def path_origins(
    fitted: Fitted, source: Source, steps: int, origin: Any, every: int | None = None, name: str = "origin"
) -> Origins:
    """Return the origins of the paths; values that are not possible for the fit are refused."""
    require_new_values(fitted.config, fitted.preparation, source)
    origins = find_origins(fitted.preparation, source, steps, origin, every, name)
    if origins.series_names is not None and needs_series(fitted):
        series, units = training_series(fitted, origins.series_names, origins.series, origins.units, source.name)
        origins = replace(origins, series=series, units=units)
    return origins


def _in_units(
    fitted: Fitted, numbers: Float[Tensor, "origin step node channel column"], origins: Origins, *, values: bool = True
) -> Tensor:
    """Return ``values`` that a target can have, or means, in the units of the data."""
    convert = values_in_units if values else in_units
    return convert(fitted, numbers.movedim(-1, 1), origins).movedim(1, -1)

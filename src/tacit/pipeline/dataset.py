"""The data of a fit: pairs in three parts, the names of the nodes, their units, and notes of the readers."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tacit.config import PAIRS_KEYS, SERIES_KEYS, TABLE_KEYS, DataOptions
from tacit.data import (
    NO_BACKGROUND,
    Background,
    NamedPairs,
    Pairs,
    ScaleBy,
    Series,
    SeriesPairs,
    Split,
    Windows,
    chosen_rows,
    deviations_differ,
    levels_apart,
)
from tacit.errors import require
from tacit.pipeline.preparation import PairsPreparation, Preparation, SeriesPreparation, require_inputs
from tacit.pipeline.sources import Source, about
from tacit.randomness import generator_for

# On 900 rows of a VAR(1) with five nodes, two or three lags separate edges from other pairs; twelve lags overfit.
SHORT_WINDOW, USUAL_WINDOW, LONGEST_WINDOW, ROWS_FOR_THE_USUAL = 3, 6, 12, 2500
MOST_VALUES = 250_000_000  # of all windows together, 1 GB
FEWEST_OBSERVED = 2  # targets of a node in the training part, so that they have a spread


@dataclass(frozen=True)
class SeenRows:
    """The rows of the training part: targets and the newest inputs; NaN for missing values."""

    targets: Float[Tensor, "row node channel"]
    inputs: Float[Tensor, "row node in_channel"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Pairs in three parts, and the preparation that turns new data into such pairs.

    ``seen``         rows of the training part, from which candidates may be chosen
    ``coordinates``  two numbers per node, if they are known
    ``notes``        messages of the readers on what they changed
    ``levelled``     the test part for the fit test, if series have their own levels; see :class:`SeriesPairs`
    ``series_names``  names in the order of ``Pairs.series``; empty for one series without a name
    ``dated``        whether times are dates: ``Pairs.times`` are then seconds since 1970
    """

    split: Split
    preparation: Preparation
    seen: SeenRows
    coordinates: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    levelled: Pairs | None = None
    series_names: tuple[str, ...] = ()
    dated: bool = False

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return self.preparation.nodes

    @classmethod
    def prepare(
        cls,
        source: Source,
        options: DataOptions,
        *,
        seed: int,
        scaled: bool,
        background: Background = NO_BACKGROUND,
    ) -> "Dataset":
        """Split data into parts and scale it by the training part; ``scaled`` is the default of ``options.scale``.

        The columns of the ``background`` are inputs of a series.
        """
        with about(source.name):
            if isinstance(source.content, NamedPairs):
                keys = tuple(key for key in TABLE_KEYS + SERIES_KEYS if key not in source.used)
                options.require_unset(keys, source.name, "which has pairs x and y")
                dataset = cls._of_pairs(source.content, options, seed, scaled=scaled)
            else:
                options.require_unset(
                    PAIRS_KEYS, source.name, "which is a series: it is never shuffled and always scaled"
                )
                dataset = cls._of_series(source.content, options, background)
            _require_learnable(dataset.split, dataset.nodes)
        return dataset

    @classmethod
    def _of_series(cls, series: Series, options: DataOptions, background: Background) -> "Dataset":
        windows = Windows(options.window or usual_window(series), options.horizon, options.fractions)
        by = usual_scale(series, options.fractions[0]) if options.scale_by == "auto" else options.scale_by
        made = windows.prepare(
            series,
            targets=options.targets,
            by=by,
            from_zero=options.from_zero,
            cut_series=options.cut_series,
            background=background,
        )
        preparation = SeriesPreparation(windows, made.scaling, background)
        notes = series.notes + made.notes
        seen, names = _seen_rows(made), made.series_names
        dated = made.train_times.dtype.kind == "M"
        return cls(made.split, preparation, seen, series.coordinates, notes, made.levelled, names, dated)

    @classmethod
    def _of_pairs(cls, named: NamedPairs, options: DataOptions, seed: int, *, scaled: bool) -> "Dataset":
        shuffle = generator_for(seed, "split") if options.shuffle else None
        if not scaled:
            require_inputs(named)
        each = named.split(options.fractions, generator=shuffle)
        scale = scaled if options.scale is None else options.scale
        zero = bool(options.from_zero)
        preparation = PairsPreparation.measured(
            each[0], scale=scale, fills=scaled, shuffled=options.shuffle, from_zero=zero
        )
        split = Split(*(preparation.scaled(part) for part in each))
        unknown = False if split.train.observed is None else split.train.observed == 0
        inputs = split.train.inputs[:, :, : preparation.in_channels]
        if each[0].missing is not None:
            inputs = inputs.masked_fill(torch.from_numpy(each[0].missing), torch.nan)
        seen = SeenRows(split.train.targets.masked_fill(torch.as_tensor(unknown), torch.nan), inputs)
        return cls(split, preparation, seen, notes=named.notes + preparation.gap_notes(named))


def usual_scale(series: Series, fraction: float) -> ScaleBy:
    """Return the scaling of several series before edges are known: one for all unless they differ much."""
    if series.num_series == 1:
        return "all"
    if deviations_differ(series, fraction):
        return "series"
    return "level" if levels_apart(series, fraction) else "all"


def usual_window(series: Series) -> int:
    """Return the default window: each lag adds weights, so few rows allow only few lags.

    For several series it is at most a quarter of their median length, so that each series has enough windows.
    """
    window = USUAL_WINDOW if int(chosen_rows(series).sum()) >= ROWS_FOR_THE_USUAL else SHORT_WINDOW
    lengths = series.lengths or (len(series),)
    return max(1, min(window, int(np.median(lengths)) // 4))


def longest_window(content: Series | NamedPairs) -> int | None:
    """Return the longest default window of the evidence; None without time, or with much data."""
    if isinstance(content, NamedPairs):
        return None
    if content.values.size * LONGEST_WINDOW > MOST_VALUES:
        return None
    return max(1, min(LONGEST_WINDOW, int(np.median(content.lengths or (len(content),))) // 4))


def network_window(content: Series | NamedPairs, needed: int) -> int:
    """Return the default window of a network: the usual one, and at least that of the evidence."""
    return max(needed, usual_window(content)) if isinstance(content, Series) else needed


def _seen_rows(made: SeriesPairs) -> SeenRows:
    """Return the rows of each series up to its last training target; later rows may not be used for candidates."""
    series, horizon = made.used, made.horizon
    chosen = [series.channels.index(name) for name in made.scaling.variables[: made.out_channels]]
    targets, inputs = [], []
    for part, end in zip(series.parts, made.train_ends, strict=True):
        values = part.values[:end]
        counts = np.maximum((~np.isnan(values)).sum(0), 1)
        values = values - np.nansum(values, 0) / counts  # different levels of series are not correlation
        season = chosen_rows(part)[horizon:end, None, None]
        targets.append(np.where(season, values[horizon:][:, :, chosen], np.nan))
        inputs.append(values[: max(0, end - horizon)])
    return SeenRows(torch.from_numpy(np.concatenate(targets)), torch.from_numpy(np.concatenate(inputs)))


def _require_learnable(split: Split, nodes: tuple[str, ...]) -> None:
    """Refuse data that would fail later: a single node, a node without targets, a part without targets."""
    require(len(nodes) > 0, "a graph must have two nodes or more, got none; pass some")
    require(len(nodes) > 1, f"a graph must have two nodes or more, got one, '{nodes[0]}'; add others")
    for name in ("train", "validation", "test"):
        part: Pairs = getattr(split, name)
        require(
            part.observed is None or bool(part.observed.any()),
            f"no target of the {name} part is known; pass more rows, or set other fractions",
        )
    if split.train.observed is None:
        return
    counts = split.train.observed.sum(0).amin(1)  # of the rarest channel of each node
    fewest = int(counts.argmin())
    require(
        bool(counts[fewest] >= FEWEST_OBSERVED),
        f"node '{nodes[fewest]}' requires {FEWEST_OBSERVED} known targets or more in the training part, "
        f"got {int(counts[fewest])}; leave it out, or train on a larger fraction",
    )

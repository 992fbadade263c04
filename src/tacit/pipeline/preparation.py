"""Preparation of data as pairs, for training and for new data; units of covariates; how pairs are resampled."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.config import AssessmentOptions
from tacit.data import (
    NO_BACKGROUND,
    Background,
    ChannelUnits,
    NamedPairs,
    NewPairs,
    Pairs,
    Scaling,
    Series,
    SeriesUnits,
    Windows,
    num_known,
    require_resamplable,
    usual_block,
)
from tacit.errors import InputError, require
from tacit.pipeline.sources import Source, about
from tacit.predictors import Sizes


class CovariateUnits(NamedTuple):
    """Names of covariates, and the mean and deviation by which each was scaled."""

    names: tuple[str, ...] = ()
    mean: Float[np.ndarray, " covariate"] = np.zeros(0)
    deviation: Float[np.ndarray, " covariate"] = np.zeros(0)

    @classmethod
    def of(cls, train: NamedPairs) -> "CovariateUnits":
        """Return the units of the covariates of a training part."""
        if train.pairs.covariates is None:
            return cls()
        values = train.pairs.covariates.double().numpy()
        deviation = values.std(axis=0)
        return cls(train.covariate_names, values.mean(axis=0), np.where(deviation > 0, deviation, 1.0))

    def scaled(self, named: NamedPairs) -> Float[Tensor, "pair covariate"] | None:
        """Return the covariates of pairs in these units; refuse pairs with other covariates."""
        if not self.names:
            return None
        require(
            named.covariate_names == self.names and named.pairs.covariates is not None,
            f"covariates must be those of the training data, {', '.join(self.names)}, got "
            f"{', '.join(named.covariate_names) or 'none'}; pass them too",
        )
        assert named.pairs.covariates is not None
        return torch.from_numpy((named.pairs.covariates.double().numpy() - self.mean) / self.deviation).float()

    def to_dict(self) -> dict[str, Any]:
        """Return the units as strings and lists."""
        return {"names": list(self.names), "mean": self.mean.tolist(), "deviation": self.deviation.tolist()}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "CovariateUnits":
        """Return the units from the result of :meth:`to_dict`."""
        return cls(tuple(stored["names"]), np.array(stored["mean"], float), np.array(stored["deviation"], float))


NO_COVARIATES = CovariateUnits()


ROUNDING = 1e-4  # largest difference between units computed in single and in double precision


@runtime_checkable
class OfSeries(Protocol):
    """Pairs or origins of paths: the series of each, and the units of the series if they differ."""

    @property
    def series(self) -> Int[Tensor, " pair"] | None:
        """The number of the series of each pair or origin."""

    @property
    def units(self) -> SeriesUnits | None:
        """The units of each series."""


@dataclass(frozen=True, eq=False)
class SeriesPreparation:
    """Windows over a series, in the units of its training part, with the columns of a background."""

    windows: Windows
    scaling: Scaling
    background: Background = NO_BACKGROUND

    is_series = True
    row_name = "time"

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return self.scaling.nodes

    @property
    def sizes(self) -> Sizes:
        """Sizes that a predictor is built with."""
        scaling, known = self.scaling, num_known(self.scaling, self.background)
        return Sizes(
            len(self.nodes),
            self.windows.window,
            scaling.num_features,
            scaling.out_channels,
            known,
            self.background.num_levels,
            self.background.size,
        )

    @property
    def horizon(self) -> int:
        """Steps from the last one seen to the one predicted."""
        return self.windows.horizon

    @property
    def reach(self) -> int:
        """Steps that one pair covers."""
        return self.windows.window + self.windows.horizon

    @property
    def covariate_units(self) -> CovariateUnits:
        """Names, means and deviations of the covariates, in the order of ``Pairs.covariates``."""
        scaling = self.scaling
        return CovariateUnits(scaling.covariate_names, scaling.covariate_mean, scaling.covariate_deviation)

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of the predicted variables."""
        return self.scaling.variables[: self.scaling.out_channels]

    def spread(self, pairs: Pairs) -> Tensor:
        """Size of a scaled unit, per node and predicted variable, or per pair too where series differ."""
        if pairs.units is not None and pairs.series is not None:
            return pairs.units.spread(pairs.series).float()
        return torch.from_numpy(self.scaling.deviation[:, : self.scaling.out_channels]).float()

    def to_units(self, values: Tensor, pairs: OfSeries) -> Tensor:
        """Return scaled predictions of some pairs in the units of the data."""
        if pairs.units is not None and pairs.series is not None:
            return pairs.units.restored(values, pairs.series.to(values.device))
        return self.scaling.to_units(values)

    def has_units_of(self, other: "Preparation") -> bool:
        """Return whether nodes, means and deviations equal those of another preparation, up to rounding."""
        if not isinstance(other, SeriesPreparation) or self.nodes != other.nodes:
            return False
        ours, theirs = self.scaling, other.scaling
        series = (ours.series_mean, ours.series_deviation), (theirs.series_mean, theirs.series_deviation)
        return _same_units((ours.mean, ours.deviation), (theirs.mean, theirs.deviation)) and _same_units(*series)

    def completed(self, source: Source, label: str | None = None) -> Source:
        """Return new data for a run of several series: one file is one series, and series may lack nodes.

        ``label``  the name of the file
        """
        content = source.content
        if not isinstance(content, Series) or not self.scaling.series_names:
            return source
        if label is not None and not content.lengths:
            content = replace(Series.joined([content], [label]), notes=content.notes)
        missing = tuple(node for node in self.nodes if node not in content.nodes)
        if missing and len(missing) < len(self.nodes):
            note = f"nodes that are not in the data are missing values: {_few(missing)}"
            content = replace(content.over((*content.nodes, *missing)), notes=(*content.notes, note))
        return replace(source, content=content)

    def apply(self, source: Source) -> NewPairs:
        """Return a pair for every window of new data."""
        if not isinstance(source.content, Series):
            raise InputError(f"{source.name}: this run learned from a series; pass a table with the same nodes")
        with about(source.name):
            return self.windows.apply(source.content, self.scaling, self.background)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        background = {"background": self.background.to_dict()} if self.background.terms else {}
        return {"kind": "series", "windows": asdict(self.windows), "scaling": self.scaling.to_dict(), **background}


@dataclass(frozen=True, eq=False)
class PairsPreparation:
    """Pairs with each channel scaled by its training part; ``shuffled`` before they were split.

    ``fill``   replacement of a missing input: the mean of node and channel over the training part, in the units of the
               data; None for predictors that get unscaled numbers, which require all inputs
    ``flags``  channels with missing inputs in the training data, which have a further input: 1 if observed
    ``covariates``  covariates that graphs may depend on, with the units of the training part
    """

    nodes: tuple[str, ...]
    input_units: ChannelUnits
    target_units: ChannelUnits
    shuffled: bool = True
    fill: Float[np.ndarray, "node in_channel"] | None = None
    flags: tuple[int, ...] = ()
    covariates: CovariateUnits = NO_COVARIATES

    is_series = False
    row_name = "pair"
    horizon = 1
    background = NO_BACKGROUND

    @property
    def sizes(self) -> Sizes:
        """Sizes that a predictor is built with; the window is one step."""
        return Sizes(len(self.nodes), 1, self.in_channels + len(self.flags), len(self.target_units.mean))

    @property
    def in_channels(self) -> int:
        """Channels of x."""
        return len(self.input_units.mean)

    @classmethod
    def measured(
        cls, train: NamedPairs, *, scale: bool, fills: bool, shuffled: bool, from_zero: bool = False
    ) -> "PairsPreparation":
        """Return the preparation of a training part; with ``fills`` missing inputs are filled.

        ``from_zero``  inputs and targets are not centred, as for counts: an input of 0 has no effect
        """
        known = _known_targets(train.pairs)
        inputs = train.pairs.inputs.double().numpy()
        if train.missing is not None:
            inputs = np.where(train.missing, np.nan, inputs)
        units = [
            ChannelUnits.of(values) if scale else ChannelUnits.unchanged(values.shape[2]) for values in (inputs, known)
        ]
        units = [replace(one, mean=np.zeros_like(one.mean)) for one in units] if from_zero else units
        gaps = np.isnan(inputs)
        for node, channel in np.argwhere(gaps.all(axis=0))[:1]:
            raise InputError(
                f"x of node '{train.nodes[node]}' (channel {channel}) is missing throughout the training part, so "
                "missing inputs cannot be filled; leave it out, or train on a larger fraction"
            )
        flags = tuple(np.flatnonzero(gaps.any(axis=(0, 1))).tolist())
        mean = np.nanmean(inputs, axis=0)
        fill, flags = (mean, flags) if fills else (None, ())
        return cls(train.nodes, units[0], units[1], shuffled, fill, flags, CovariateUnits.of(train))

    @property
    def reach(self) -> int:
        """Steps that one pair covers; 0 because pairs have no order."""
        return 0 if self.shuffled else 1

    @property
    def covariate_units(self) -> CovariateUnits:
        """Names, means and deviations of the covariates, in the order of ``Pairs.covariates``."""
        return self.covariates

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of the target channels."""
        channels = len(self.target_units.mean)
        return ("y",) if channels == 1 else tuple(f"y{channel}" for channel in range(channels))

    def spread(self, pairs: Pairs) -> Tensor:
        """Size of a scaled unit, per node and channel; the same for all pairs."""
        del pairs
        return torch.from_numpy(self.target_units.deviation).float().expand(len(self.nodes), -1).contiguous()

    def to_units(self, values: Tensor, pairs: OfSeries) -> Tensor:
        """Return scaled predictions in the units of the data, the same for all pairs."""
        del pairs
        return torch.from_numpy(self.target_units.restored(values.double().cpu().numpy())).to(values)

    def has_units_of(self, other: "Preparation") -> bool:
        """Return whether nodes, means and deviations equal those of another preparation, up to rounding."""
        if not isinstance(other, PairsPreparation) or self.nodes != other.nodes:
            return False
        both = (self.input_units, other.input_units), (self.target_units, other.target_units)
        same = all(_same_units((ours.mean, ours.deviation), (theirs.mean, theirs.deviation)) for ours, theirs in both)
        return same and self.flags == other.flags

    def scaled(self, named: NamedPairs) -> Pairs:
        """Return scaled pairs, with missing inputs filled and flagged."""
        pairs, missing = named.pairs, named.missing
        values = pairs.inputs.double().numpy()
        there = np.ones(values.shape, dtype=bool)
        if missing is not None and self.fill is not None:
            values, there = np.where(missing, self.fill, values), ~missing
        else:
            require_inputs(named)
        numbers = np.concatenate([self.input_units.scaled(values), there[:, :, list(self.flags)]], axis=-1)
        inputs = torch.from_numpy(numbers).float()
        targets = torch.from_numpy(self.target_units.scaled(pairs.targets.double().numpy())).float()
        covariates = self.covariates.scaled(named)
        if pairs.observed is None:
            return Pairs(inputs, targets, covariates=covariates)
        observed = pairs.observed.float()
        targets = targets * observed  # 0 where nothing was observed
        return Pairs(inputs, targets, observed, covariates=covariates)

    def gap_notes(self, named: NamedPairs) -> tuple[str, ...]:
        """Return a note on missing inputs."""
        if named.missing is None:
            return ()
        flagged = " and flagged for the predictor" if self.flags else ""
        return (f"{int(named.missing.sum())} missing inputs were replaced by the mean of node and channel{flagged}",)

    def completed(self, source: Source, label: str | None = None) -> Source:
        """Return new data unchanged."""
        del label
        return source

    def apply(self, source: Source) -> NewPairs:
        """Return new pairs; absent targets are missing values."""
        if not isinstance(source.content, NamedPairs):
            raise InputError(
                f"{source.name}: this run learned from pairs; pass an .npz file with x, or a table with columns x:NODE"
            )
        pairs, nodes, sizes = source.content.pairs, source.content.nodes, self.sizes
        require(
            nodes == self.nodes,
            f"{source.name}: must have the nodes that the run was trained on, {_few(self.nodes)}, got {_few(nodes)}; "
            "pass data of the same kind",
        )
        for name, values, need in (("x", pairs.inputs, self.in_channels), ("y", pairs.targets, sizes.out_channels)):
            require(
                values.shape[2] == need,
                f"{source.name}: array '{name}' must have {need} channels as in training, got {values.shape[2]}; "
                "pass data of the same kind",
            )
        actual = pairs.targets.double().numpy()
        if pairs.observed is not None:
            actual = np.where(pairs.observed.numpy() > 0, actual, np.nan)
        with about(source.name):
            made, notes = self.scaled(source.content), self.gap_notes(source.content)
            return NewPairs(made, np.arange(len(pairs)), actual, notes=notes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        units = {"input_units": self.input_units.to_dict(), "target_units": self.target_units.to_dict()}
        fill = None if self.fill is None else self.fill.tolist()
        gaps = {"fill": fill, "flags": list(self.flags)}
        known = {"covariates": self.covariates.to_dict()} if self.covariates.names else {}
        return {"kind": "pairs", "nodes": list(self.nodes), **units, "shuffled": self.shuffled, **gaps, **known}


Preparation = SeriesPreparation | PairsPreparation


def stored_preparation(stored: Mapping[str, Any]) -> Preparation:
    """Return what :meth:`to_dict` gave."""
    if stored["kind"] == "series":
        windows = {**stored["windows"], "fractions": tuple(stored["windows"]["fractions"])}
        background = Background.from_dict(stored["background"]) if "background" in stored else NO_BACKGROUND
        return SeriesPreparation(Windows(**windows), Scaling.from_dict(stored["scaling"]), background)
    inputs, targets = (ChannelUnits.from_dict(stored[name]) for name in ("input_units", "target_units"))
    fill = None if stored["fill"] is None else np.array(stored["fill"], dtype=np.float64)
    flags = tuple(int(channel) for channel in stored["flags"])
    covariates = CovariateUnits.from_dict(stored["covariates"]) if "covariates" in stored else NO_COVARIATES
    shuffled = bool(stored["shuffled"])
    return PairsPreparation(tuple(stored["nodes"]), inputs, targets, shuffled, fill, flags, covariates)


def require_inputs(named: NamedPairs) -> None:
    """Refuse missing inputs, for a predictor that gets unscaled numbers."""
    if named.missing is not None:
        pair, node, channel = np.argwhere(named.missing)[0]
        raise InputError(
            "x must be a number everywhere for 'hops' and for custom modules, which get unscaled numbers, "
            f"got NaN at pair {pair}, node '{named.nodes[node]}', channel {channel} ({int(named.missing.sum())} such "
            "values); fill them, or choose another predictor"
        )


def _known_targets(pairs: Pairs) -> Float[np.ndarray, "pair node channel"]:
    """Return targets, with NaN for missing ones."""
    targets = pairs.targets.double().numpy()
    return targets if pairs.observed is None else np.where(pairs.observed.numpy() > 0, targets, np.nan)


def _same_units(ours: tuple[np.ndarray, np.ndarray], theirs: tuple[np.ndarray, np.ndarray]) -> bool:
    """Compare means and deviations; means may differ by a small fraction of the deviation."""
    if ours[0].shape != theirs[0].shape:
        return False
    close = np.abs(ours[0] - theirs[0]) <= ROUNDING * (theirs[1] + np.abs(theirs[0]))
    close |= np.isnan(ours[0]) & np.isnan(theirs[0])  # levels that are not known
    return bool(close.all()) and np.allclose(ours[1], theirs[1], rtol=ROUNDING, atol=0.0)


def _few(names: tuple[str, ...], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def block_length(options: AssessmentOptions, preparation: Preparation, num_pairs: int) -> int:
    """Return the number of neighbouring pairs that are resampled together; in a series, at least its reach."""
    if options.block is not None:
        return options.block
    return usual_block(num_pairs, preparation.reach) if preparation.reach else 1


def score_block(preparation: Preparation, num_pairs: int) -> int:
    """Return the block length for comparing forecasts on test pairs.

    Overlapping forecasts have correlated errors, so it is at least the horizon; it is 1 for pairs without order.
    """
    return usual_block(num_pairs, preparation.horizon) if preparation.reach else 1


def require_resampling(options: AssessmentOptions, preparation: Preparation, train: Pairs) -> None:
    """Raise :class:`InputError` before any work if standard errors are requested but not possible."""
    if options.replicas:
        require_resamplable(len(train), block_length(options, preparation, len(train)), train.series)
    elif options.block is not None and options.enabled:
        raise InputError("block in [assessment] requires bootstrap_replicas, got 0; set bootstrap_replicas = 16")

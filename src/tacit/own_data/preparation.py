"""From a file to pairs, the same way for training and for new data: what a run must remember of its data."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tacit.config import DataConfig
from tacit.config.own_data import TABLE_KEYS
from tacit.data import NewPairs, Pairs, Scaling, Windows, load_beijing_air, read_named_pairs, read_series
from tacit.data.units import ChannelUnits
from tacit.errors import InputError, require

SHIPPED = {"beijing-air": load_beijing_air}


@dataclass(frozen=True, eq=False)
class SeriesPreparation:
    """Windows over a series, in the units of its training part."""

    windows: Windows
    scaling: Scaling

    is_series = True
    row_name = "time"

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return self.scaling.nodes

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Window, features of a step and predicted variables."""
        return self.windows.window, self.scaling.num_features, self.scaling.out_channels

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of the predicted variables."""
        return self.scaling.variables[: self.scaling.out_channels]

    @property
    def spread(self) -> Tensor:
        """Size of a scaled unit, per node and predicted variable."""
        return torch.from_numpy(self.scaling.deviation[:, : self.scaling.out_channels]).float()

    def to_units(self, values: Tensor) -> Tensor:
        """Return scaled predictions in the units of the data."""
        return self.scaling.to_units(values)

    def apply(self, source: str, config: DataConfig) -> NewPairs:
        """Return a pair for every window of new data."""
        require(
            Path(source).suffix != ".npz", f"{source}: this run learned from a series; pass a table with the same nodes"
        )
        series = read_source(source, config, piece=True)
        with about(source):
            return self.windows.apply(series, self.scaling)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"kind": "series", "windows": asdict(self.windows), "scaling": self.scaling.to_dict()}


@dataclass(frozen=True, eq=False)
class PairsPreparation:
    """Pairs as they are, each channel in the units of its training part."""

    nodes: tuple[str, ...]
    input_units: ChannelUnits
    target_units: ChannelUnits

    is_series = False
    row_name = "pair"

    @property
    def sizes(self) -> tuple[int, int, int]:
        """A window of one step, input channels and target channels."""
        return 1, len(self.input_units.mean), len(self.target_units.mean)

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of the target channels."""
        channels = len(self.target_units.mean)
        return ("y",) if channels == 1 else tuple(f"y{channel}" for channel in range(channels))

    @property
    def spread(self) -> Tensor:
        """Size of a scaled unit, per node and channel."""
        return torch.from_numpy(self.target_units.deviation).float().expand(len(self.nodes), -1).contiguous()

    def to_units(self, values: Tensor) -> Tensor:
        """Return scaled predictions in the units of the data."""
        return torch.from_numpy(self.target_units.restored(values.double().cpu().numpy())).to(values)

    def scaled(self, pairs: Pairs) -> Pairs:
        """Return pairs in the units of training."""
        inputs, targets = (
            torch.from_numpy(units.scaled(values.double().numpy())).float()
            for units, values in ((self.input_units, pairs.inputs), (self.target_units, pairs.targets))
        )
        if pairs.observed is None:
            return Pairs(inputs, targets)
        observed = pairs.observed.float()
        return Pairs(inputs, targets * observed, observed)  # where nothing was observed any number does

    def apply(self, source: str, _config: DataConfig) -> NewPairs:
        """Return the pairs of a file; without y, all targets are missing."""
        _, in_channels, out_channels = self.sizes
        require(bool(source), "DATA needs an .npz file with x, got ''; check the path")
        require(Path(source).suffix == ".npz", f"{source}: this run learned from pairs; pass an .npz file with x")
        named = read_named_pairs(source, out_channels=out_channels)
        pairs = named.pairs
        require(
            named.nodes == self.nodes,
            f"{source}: needs the nodes that the run was trained on, {_few(self.nodes)}, got {_few(named.nodes)}; "
            "pass data of the same kind",
        )
        for name, values, need in (("x", pairs.inputs, in_channels), ("y", pairs.targets, out_channels)):
            require(
                values.shape[2] == need,
                f"{source}: array '{name}' needs {need} channels as in training, got {values.shape[2]}; "
                "pass data of the same kind",
            )
        return NewPairs(self.scaled(pairs), np.arange(len(pairs)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        units = {"input_units": self.input_units.to_dict(), "target_units": self.target_units.to_dict()}
        return {"kind": "pairs", "nodes": list(self.nodes), **units}


Preparation = SeriesPreparation | PairsPreparation


def stored_preparation(stored: Mapping[str, Any]) -> Preparation:
    """Return what :meth:`to_dict` gave."""
    if stored["kind"] == "series":
        windows = {**stored["windows"], "fractions": tuple(stored["windows"]["fractions"])}
        return SeriesPreparation(Windows(**windows), Scaling.from_dict(stored["scaling"]))
    units = (ChannelUnits.from_dict(stored[name]) for name in ("input_units", "target_units"))
    return PairsPreparation(tuple(stored["nodes"]), *units)


@contextmanager
def about(source: str) -> Iterator[None]:
    """Begin the messages of errors with the file that they are about.

    >>> with about("levels.csv"):
    ...     raise InputError("needs more rows")
    Traceback (most recent call last):
    ...
    tacit.errors.InputError: levels.csv: needs more rows
    """
    try:
        yield
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def read_source(source: str, config: DataConfig, *, piece: bool = False) -> Any:
    """Return the series of a table or of a data set that ships with the package, or the named pairs of an .npz file."""
    require(bool(source), "DATA needs a file (.csv, .parquet, .npz), got ''; check the path")
    if source in SHIPPED and not Path(source).exists():
        config.require_unset(TABLE_KEYS, source, "which is no table")
        return SHIPPED[source]()
    if Path(source).suffix == ".npz":
        return read_named_pairs(source)
    if Path(source).suffix == "" and not Path(source).exists():
        raise InputError(
            f"DATA needs a file (.csv, .parquet, .npz) or {', '.join(SHIPPED)}, got '{source}'; check the path"
        )
    return read_series(
        source,
        layout=config.layout,
        time=config.time,
        node=config.node,
        value=config.value,
        covariates=config.covariates,
        sep=config.separator,
        series=config.series,
        piece=piece,
    )


def _few(names: tuple[str, ...], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")

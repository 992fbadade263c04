"""Pairs (x, y) from arrays in memory or from an .npz file."""

import math
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool
from torch import Generator

from tacit.data.cells import require_file
from tacit.data.levels import Levels
from tacit.data.pairs import Pairs
from tacit.data.series import LARGEST, RESCALE, require_unique
from tacit.errors import InputError, require

DENSEST = 1100  # upper limit of the compression ratio: slightly more than is possible


@dataclass(frozen=True)
class NamedPairs:
    """Pairs and the names of their nodes.

    ``missing``  true where an input is missing (it is 0 in ``pairs``); None if no input is missing
    ``notes``    messages of the reader on what it left out
    ``covariate_names``  names of the columns of ``pairs.covariates``; indicators of ``levels`` come last
    """

    pairs: Pairs
    nodes: tuple[str, ...]
    missing: Bool[np.ndarray, "pair node in_channel"] | None = None
    notes: tuple[str, ...] = ()
    covariate_names: tuple[str, ...] = ()
    levels: Levels = field(default_factory=dict)

    def split(self, fractions: tuple[float, float], *, generator: Generator | None) -> "tuple[NamedPairs, ...]":
        """Return the parts for training, validation and test; see :meth:`Pairs.split`."""
        gaps = np.zeros((*self.pairs.inputs.shape[:2], 0)) if self.missing is None else self.missing
        inputs, width = self.pairs.inputs, self.pairs.inputs.shape[2]
        both = replace(self.pairs, inputs=torch.cat([inputs, torch.from_numpy(gaps).to(inputs)], -1))
        split = both.split(fractions, generator=generator)
        return tuple(
            replace(
                self,
                pairs=replace(part, inputs=part.inputs[..., :width].contiguous()),
                missing=None if self.missing is None else part.inputs[..., width:].numpy() > 0,
            )
            for part in (split.train, split.validation, split.test)
        )


def read_named_pairs(path: str | Path, *, out_channels: int | None = None) -> NamedPairs:
    """Read pairs from an .npz file with arrays ``x`` and ``y`` of shape (pair, node, channel), or (pair, node).

    NaN in ``x`` is a missing input, and in ``y`` a missing target. Pickled objects are never loaded. An array ``nodes``
    gives the names; without it the nodes are called "0", "1", ... With ``out_channels`` the file may lack ``y``, as for
    predictions: that number of targets per node is then missing.
    """
    path = Path(path)
    arrays = load_arrays(path)
    required = ("x", "y") if out_channels is None else ("x",)
    for name in required:
        require(
            name in arrays,
            f"{path}: must have an array '{name}', got {', '.join(arrays) or 'none'}; save it as {name}=",
        )
    try:
        return pairs_from_arrays(arrays["x"], arrays.get("y"), nodes=arrays.get("nodes"), out_channels=out_channels)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def pairs_from_arrays(
    x: np.ndarray,
    y: np.ndarray | None,
    *,
    nodes: Sequence[str] | np.ndarray | None = None,
    out_channels: int | None = None,
) -> NamedPairs:
    """Return pairs from arrays of shape (pair, node, channel), or (pair, node), as if read from an .npz file.

    They are in double precision. NaN in ``x`` is a missing input, and in ``y`` a missing target. Without ``y``, as
    for predictions, ``out_channels`` targets of every node are missing. The nodes are called "0", "1", ... unless
    ``nodes`` names them.

    >>> made = pairs_from_arrays(np.ones((4, 3, 2)), np.ones((4, 3)), nodes=("a", "b", "c"))
    >>> tuple(made.pairs.inputs.shape), tuple(made.pairs.targets.shape), made.nodes
    ((4, 3, 2), (4, 3, 1), ('a', 'b', 'c'))
    """
    inputs = _numbers("x", x)
    missing = np.isnan(inputs)
    if y is None:
        require(out_channels is not None, "y must be an array of targets, got None; pass it, or out_channels")
        targets = np.full((*inputs.shape[:2], out_channels or 1), np.nan)
    else:
        targets = _numbers("y", y)
    try:
        pairs = Pairs.with_missing(torch.from_numpy(np.where(missing, 0.0, inputs)), torch.from_numpy(targets))
    except InputError as error:
        raise InputError(str(error).replace("inputs", "x").replace("targets", "y")) from None
    if np.isfinite(targets).all():
        pairs = replace(pairs, observed=None)
    return NamedPairs(pairs, _names(nodes, pairs.num_nodes), missing if missing.any() else None)


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file by name; pickled objects are never loaded, and headers are checked."""
    require_file(path)
    require(zipfile.is_zipfile(path), f"{path}: must be an .npz file; write it with np.savez(x=, y=)")
    try:
        with zipfile.ZipFile(path) as archive, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers of old versions
            members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
            return {member.filename.removesuffix(".npy"): _array(archive, member) for member in members}
    except MemoryError:
        raise InputError(f"{path}: does not fit in memory; pass fewer pairs") from None
    except Exception as error:  # a broken archive or header can make the readers raise anything
        reason = "it contains Python objects" if "allow_pickle" in str(error) else str(error) or type(error).__name__
        raise InputError(f"{path}: cannot be read as arrays of numbers: {reason}; write it with np.savez") from None


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """Read one array, after checking that the size in its header is possible for this file."""
    with archive.open(member) as stream:
        old = np.lib.format.read_magic(stream) == (1, 0)
        read = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
    declared, largest = math.prod(shape) * dtype.itemsize, min(member.file_size, DENSEST * member.compress_size + 10**6)
    if min(shape, default=0) < 0 or declared > largest:
        raise ValueError(
            f"array '{member.filename}' has shape {shape} in its header, which does not match the size of the file"
        )
    with archive.open(member) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def _numbers(name: str, values: np.ndarray) -> np.ndarray:
    """Return an array with a channel axis, in double precision, so that a large offset can be subtracted exactly."""
    require(
        isinstance(values, np.ndarray),
        f"array '{name}' must be a NumPy array, got {type(values).__name__}; use np.asarray({name}, dtype=float)",
    )
    require(
        values.dtype.kind in "fiu",
        f"array '{name}' must have numbers, got type {values.dtype}; use np.asarray({name}, dtype=float)",
    )
    require(
        values.ndim in (2, 3),
        f"array '{name}' must have shape (pair, node, channel) or (pair, node), got {values.shape}; reshape it",
    )
    finite = values[np.isfinite(values)]
    large = max(abs(float(end)) for end in (finite.max(initial=0), finite.min(initial=0)))
    require(
        large <= LARGEST,
        f"array '{name}' must have numbers of at most {LARGEST:g}, got one of size {large:.3g}; {RESCALE}",
    )
    return (values if values.ndim == 3 else values[:, :, None]).astype(np.float64)


def _names(names: Sequence[str] | np.ndarray | None, num_nodes: int) -> tuple[str, ...]:
    if names is None:
        return tuple(str(node) for node in range(num_nodes))
    shape = np.shape(names)
    require(
        shape == (num_nodes,), f"array 'nodes' must have one name for each of the {num_nodes} nodes, got shape {shape}"
    )
    words = tuple(str(name) for name in names)
    require_unique("array 'nodes'", words)
    return words

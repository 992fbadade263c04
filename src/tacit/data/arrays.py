"""Arrays of a user: pairs (x, y) from an .npz file."""

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from tacit.data.cells import require_file
from tacit.data.pairs import Pairs
from tacit.data.series import LARGEST, RESCALE, require_unique
from tacit.errors import InputError, require


@dataclass(frozen=True)
class NamedPairs:
    """Pairs and the names of their nodes."""

    pairs: Pairs
    nodes: tuple[str, ...]


def read_pairs(path: str | Path) -> Pairs:
    """Read pairs from an .npz file with arrays ``x`` and ``y`` of shape (pair, node, channel), or (pair, node).

    NaN in ``y`` is a missing target; ``x`` has none. Pickled objects are never opened.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder) / "pairs.npz", x=np.ones((4, 3, 2)), y=np.ones((4, 3)))
    ...     pairs = read_pairs(Path(folder) / "pairs.npz")
    >>> tuple(pairs.inputs.shape), tuple(pairs.targets.shape)
    ((4, 3, 2), (4, 3, 1))
    """
    return read_named_pairs(path).pairs


def read_named_pairs(path: str | Path, *, out_channels: int | None = None) -> NamedPairs:
    """Read pairs as :func:`read_pairs` does, with the names in array ``nodes``, or "0", "1", ... without one.

    With ``out_channels`` the file may lack ``y``, as where it is to be predicted: so many targets are then missing.
    """
    path = Path(path)
    arrays = load_arrays(path)
    if out_channels is not None and "x" in arrays:
        arrays = {"y": np.full((*arrays["x"].shape[:2], out_channels), np.nan), **arrays}
    for name in ("x", "y"):
        require(
            name in arrays, f"{path}: needs an array '{name}', got {', '.join(arrays) or 'none'}; save it as {name}="
        )
    x, y = (_numbers(path, name, arrays[name]) for name in ("x", "y"))
    _require_present(path, x)
    try:
        pairs = Pairs.with_missing(torch.from_numpy(x), torch.from_numpy(y))
    except InputError as error:
        raise InputError(f"{path}: {str(error).replace('inputs', 'x').replace('targets', 'y')}") from None
    if np.isfinite(y).all():
        pairs = Pairs(pairs.inputs, pairs.targets)
    return NamedPairs(pairs, _names(path, arrays.get("nodes"), pairs.num_nodes))


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file by name; pickled objects are never opened."""
    require_file(path)
    require(
        zipfile.is_zipfile(path), f"{path}: is no .npz file, which holds arrays by name; write it with np.savez(x=, y=)"
    )
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        reason = "it holds Python objects" if "allow_pickle" in str(error) else str(error)
        raise InputError(f"{path}: cannot be read as arrays of numbers: {reason}; write it with np.savez") from None


def _numbers(path: Path, name: str, values: np.ndarray) -> np.ndarray:
    """Return an array as float32 with a channel axis."""
    require(
        values.dtype.kind in "fiu",
        f"{path}: array '{name}' needs numbers, got type {values.dtype}; use np.asarray({name}, dtype=float)",
    )
    require(
        values.ndim in (2, 3),
        f"{path}: array '{name}' needs shape (pair, node, channel) or (pair, node), got {values.shape}; reshape it",
    )
    large = float(np.abs(values[np.isfinite(values)].astype(np.longdouble)).max(initial=0))
    require(
        large <= LARGEST,
        f"{path}: array '{name}' needs numbers of at most {LARGEST:g}, got one of size {large:.3g}; {RESCALE}",
    )
    return (values if values.ndim == 3 else values[:, :, None]).astype(np.float32)


def _require_present(path: Path, x: np.ndarray) -> None:
    missing = np.argwhere(np.isnan(x))
    if len(missing):
        pair, node, channel = missing[0]
        raise InputError(
            f"{path}: array 'x' needs a number everywhere, got NaN at pair {pair}, node {node}, channel {channel} "
            f"({len(missing)} such values); fill them (only 'y' may have missing values)"
        )


def _names(path: Path, names: np.ndarray | None, num_nodes: int) -> tuple[str, ...]:
    if names is None:
        return tuple(str(node) for node in range(num_nodes))
    require(
        names.shape == (num_nodes,),
        f"{path}: array 'nodes' needs one name for each of the {num_nodes} nodes, got shape {names.shape}",
    )
    words = tuple(str(name) for name in names)
    require_unique(f"{path}: array 'nodes'", words)
    return words

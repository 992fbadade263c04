import zipfile

import numpy as np
import pytest
import torch

from tacit.data import pairs_from_arrays, read_named_pairs
from tacit.errors import InputError

X, Y = np.arange(24.0).reshape(4, 3, 2), np.arange(12.0).reshape(4, 3)


def test_pairs(tmp_path):
    np.savez(tmp_path / "p.npz", x=X, y=Y, nodes=np.array(["a", "b", "c"]))
    read = read_named_pairs(tmp_path / "p.npz")
    assert read.nodes == ("a", "b", "c")
    assert torch.equal(read.pairs.inputs, torch.from_numpy(X).float())
    assert torch.equal(read.pairs.targets, torch.from_numpy(Y).float()[:, :, None])
    assert read.pairs.observed is None


def test_flat_inputs_whole_numbers_and_missing_targets(tmp_path):
    missing = Y.copy()
    missing[2, 1] = np.nan
    np.savez_compressed(tmp_path / "p.npz", x=X[:, :, 0].astype(int), y=missing)
    pairs = read_named_pairs(tmp_path / "p.npz").pairs
    assert pairs.inputs.shape == (4, 3, 1)
    assert (1 - pairs.observed).nonzero().tolist() == [[2, 1, 0]]
    assert read_named_pairs(tmp_path / "p.npz").nodes == ("0", "1", "2")


def with_cell(array, cell):
    changed = array.copy()
    changed.flat[5] = cell
    return changed


REFUSALS = {
    "must have an array 'y', got x; save it as y=": {"x": X},
    "x must have finite numbers, got inf": {"x": with_cell(X, np.inf), "y": Y},
    "array 'x' must have numbers of at most 1e.15, got one of size 1e.300": {"x": with_cell(X, 1e300), "y": Y},
    "y must have finite numbers, got -inf": {"x": X, "y": with_cell(Y, -np.inf)},
    "array 'x' must have numbers, got type <U1": {"x": np.array([["a"]]), "y": Y},
    r"array 'y' must have shape \(pair, node, channel\) or \(pair, node\), got \(4,\)": {"x": X, "y": Y[:, 0]},
    r"x and y must have the same number of pairs and nodes, got \(4, 3\) and \(3, 3\)": {"x": X, "y": Y[:3]},
    "x must have at least one pair, got none": {"x": X[:0], "y": Y[:0]},
    r"array 'nodes' must have one name for each of the 3 nodes, got shape \(2,\)": {
        "x": X,
        "y": Y,
        "nodes": ["a", "b"],
    },
    "array 'nodes' must have different names, got 'a' twice": {"x": X, "y": Y, "nodes": ["a", "a", "b"]},
}


@pytest.mark.parametrize("message", REFUSALS)
def test_bad_arrays(message, tmp_path, unchecked):
    np.savez(tmp_path / "p.npz", **REFUSALS[message])
    with pytest.raises(InputError, match=rf"p\.npz: {message}"):
        read_named_pairs(tmp_path / "p.npz")


def test_bad_files(tmp_path):
    np.savez(tmp_path / "objects.npz", x=np.array([{"a": 1}], dtype=object), y=Y)
    np.save(tmp_path / "one.npy", X)
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    (tmp_path / "text.npz").write_text("time,a\n")
    (tmp_path / "empty.npz").write_text("")
    np.savez(tmp_path / "broken.npz", x=X, y=Y)
    stored = bytearray((tmp_path / "broken.npz").read_bytes())
    stored[300] ^= 255  # in the numbers of x
    (tmp_path / "broken.npz").write_bytes(stored)
    messages = {
        "none.npz": "there is no such file",
        "objects.npz": "cannot be read as arrays of numbers: it contains Python objects; write it with np.savez",
        "one.npz": "must be an .npz file",
        "text.npz": "must be an .npz file",
        "empty.npz": "must be an .npz file",
        "broken.npz": "cannot be read as arrays of numbers: Bad CRC",
    }
    for name, message in messages.items():
        with pytest.raises(InputError, match=rf"{name}: {message}"):
            read_named_pairs(tmp_path / name)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000, 1000)}",
            r"shape \(1000000000, 1000, 1000\)",
        ),
        (
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-4, 3)}",
            r"shape \(-4, 3\) in its header, which does not match",
        ),
        ("{'descr': '<U1000000', 'fortran_order': False, 'shape': (3,)}", "which does not match the size of the file"),
        ("{" * 50, "cannot be read as arrays of numbers"),
        ("", "cannot be read as arrays of numbers"),
    ],
)
def test_headers_that_lie(tmp_path, header, message):
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(96)
    with zipfile.ZipFile(tmp_path / "p.npz", "w") as archive:
        archive.writestr("x.npy", data)
    with pytest.raises(InputError, match=message):
        read_named_pairs(tmp_path / "p.npz")


def test_members_that_are_no_arrays_are_passed_over(tmp_path):
    np.savez(tmp_path / "p.npz", y=Y)
    with zipfile.ZipFile(tmp_path / "p.npz", "a") as archive:
        archive.writestr("x", b"not an array")
    with pytest.raises(InputError, match="must have an array 'x', got y; save it as x="):
        read_named_pairs(tmp_path / "p.npz")


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_arrays_in_memory_give_what_a_file_gives(dtype, flat, missing, tmp_path):
    rng = np.random.default_rng(0)
    x = (10 * rng.normal(size=(6, 3) if flat else (6, 3, 2))).astype(dtype)
    y = (10 * rng.normal(size=(6, 3))).astype(dtype)
    if missing and dtype != np.int64:
        y[2, 1] = np.nan
    np.savez(tmp_path / "p.npz", x=x, y=y, nodes=np.array(["a", "b", "c"]))
    before = x.copy(), y.copy()
    read, made = read_named_pairs(tmp_path / "p.npz"), pairs_from_arrays(x, y, nodes=["a", "b", "c"])
    assert read.nodes == made.nodes
    for name in ("inputs", "targets", "observed"):
        one, other = getattr(read.pairs, name), getattr(made.pairs, name)
        assert (one is None and other is None) or torch.equal(one, other)
    assert np.array_equal(x, before[0])
    assert np.array_equal(y, before[1], equal_nan=True)
    made.pairs.inputs.zero_()  # they are the fit's own
    assert np.array_equal(x, before[0])


def test_no_targets_yet(tmp_path):
    np.savez(tmp_path / "p.npz", x=X)
    read, made = read_named_pairs(tmp_path / "p.npz", out_channels=2), pairs_from_arrays(X, None, out_channels=2)
    assert torch.equal(read.pairs.observed, made.pairs.observed)
    assert made.pairs.targets.shape == (4, 3, 2)
    assert made.pairs.observed.sum() == 0


@pytest.mark.parametrize("message", REFUSALS)
def test_bad_arrays_in_memory(message, unchecked):
    arrays = REFUSALS[message]
    if "y" in arrays:
        with pytest.raises(InputError, match=rf"^{message}") as refusal:
            pairs_from_arrays(**arrays)
        assert "\n" not in str(refusal.value)


def test_bad_calls_in_memory(unchecked):
    for message, call in {
        "y must be an array of targets, got None; pass it, or out_channels": lambda: pairs_from_arrays(X, None),
        "array 'x' must be a NumPy array, got list; use np.asarray": lambda: pairs_from_arrays(X.tolist(), Y),
    }.items():
        with pytest.raises(InputError, match=message):
            call()

"""Arrays in .npz files and tables in .parquet files: odd types and shapes, lies in headers, broken archives."""

import decimal
import io
import pickle
import struct
import zipfile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fuzz_judge import Case
from fuzz_tables import quick
from fuzz_words import damaged, odd_words
from hypothesis import strategies as st

DTYPES = ("f8", "f4", "f2", "g", "i1", "i8", "u8", "?", "c8", "U3", "S3", "M8[s]", "m8[s]", "O", "V4", ">f8", ">i4")
SHAPES = (
    (30, 3, 2),
    (30, 3),
    (30,),
    (),
    (0, 3, 1),
    (30, 0, 1),
    (30, 3, 0),
    (30, 1, 1),
    (1, 3, 1),
    (2, 3, 1),
    (30, 3, 2, 2),
)


@st.composite
def arrays(draw: Any, usual: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers of a shape, with something odd about them or nothing."""
    odd = draw(st.sampled_from(("none", "none", "type", "shape", "value", "constant")))
    shape = draw(st.sampled_from(SHAPES)) if odd == "shape" else shape
    base = (
        np.arange(int(np.prod(shape)), dtype=float).reshape(shape) * 7 % 11
        + 0.25 * np.arange(int(np.prod(shape))).reshape(shape) % 3
    )
    if odd == "constant":
        base = np.full(shape, draw(st.sampled_from((0.0, 1.0, 1e-300, 1e14))))
    if odd == "value" and base.size:
        bad = draw(st.sampled_from((np.nan, np.inf, -np.inf, 1e300, 1e39, 1e15, 1e-320, -1e16)))
        base.flat[draw(st.lists(st.integers(0, base.size - 1), min_size=1, max_size=3))] = bad
    kind = draw(st.sampled_from(DTYPES)) if odd == "type" else usual
    try:
        return base.astype(kind)
    except (TypeError, ValueError):
        return np.zeros(shape, dtype=kind)


def npy(array: np.ndarray) -> bytes:
    """Return an array as .npy."""
    data = io.BytesIO()
    np.save(data, array, allow_pickle=array.dtype.kind == "O")
    return data.getvalue()


def lying(array: bytes, header: str) -> bytes:
    """Return an .npy file with another header."""
    text = header.encode("latin-1", "replace") + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", min(len(text), 65535)) + text + array[128:]


LIES = (
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000, 1000), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999, 3), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 3, 2), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2000000000,), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (30, 3, 2), }",
    "{'descr': '<U1000000000', 'fortran_order': False, 'shape': (3,), }",
    "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (30, 3), }",
    "{'descr': '<f8', 'shape': (30, 3), }",
    "__import__('os').system('touch pwned')",
    "{" * 500,
    "((((" * 200,
    "",
)


class Hostile:
    """An object whose loading would leave a trace."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, ("pwned", "w"))


@st.composite
def archives(draw: Any) -> bytes:
    """Return an .npz file."""
    members = {"x.npy": npy(draw(arrays("f8", (30, 3, 2)))), "y.npy": npy(draw(arrays("f8", (30, 3))))}
    what = draw(
        st.sampled_from(
            ("plain", "plain", "plain", "names", "lie", "pickle", "missing", "other", "damage", "bomb", "dup")
        )
    )
    match what:
        case "names":
            names = draw(st.lists(odd_words, min_size=2, max_size=4))
            kinds = {
                "words": np.array([name.encode("utf-8", "replace").decode() for name in names]),
                "numbers": np.arange(3),
            }
            members["nodes.npy"] = npy(draw(st.sampled_from(list(kinds.values()))))
        case "lie":
            name = draw(st.sampled_from(("x.npy", "y.npy")))
            members[name] = lying(members[name], draw(st.sampled_from(LIES)))
        case "pickle":
            members[draw(st.sampled_from(("x.npy", "nodes.npy", "evil")))] = pickle.dumps(Hostile())
        case "missing":
            members.pop(draw(st.sampled_from(("x.npy", "y.npy"))))
        case "other":
            members[draw(st.sampled_from(("z.npy", "x", "X.npy", "../x.npy", "")))] = draw(st.binary(max_size=40))
        case "bomb":
            zeros = np.zeros((3000, 3000)) if draw(st.booleans()) else np.zeros((100_000, 3, 30))
            members[draw(st.sampled_from(("x.npy", "z.npy")))] = npy(zeros)
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", draw(st.sampled_from((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))) as archive:
        for name, member in members.items():
            archive.writestr(zipfile.ZipInfo(name), member, zipfile.ZIP_DEFLATED if what == "bomb" else None)
    return draw(damaged(data.getvalue())) if what == "damage" else data.getvalue()


def untouched(folder: Any, _out: str) -> None:
    """Refuse a trace of an object that was loaded."""
    assert not list(folder.rglob("pwned")), "code of a file was run"


@st.composite
def pairs(draw: Any) -> Case:
    """An .npz file."""
    words = quick("model", "training", "assessment") + (["--window", "2"] if draw(st.integers(1, 10)) == 1 else [])
    arguments = ("fit", "p.npz", "--out", "run", "--quiet", *words)
    return Case(arguments, {"p.npz": draw(archives())}, look=untouched, trains=draw(st.integers(1, 8)) == 1)


ROWS = 30
COLUMNS = {
    "floats": pa.array([float(row * 7 % 11) for row in range(ROWS)]),
    "halves": pa.array(np.arange(ROWS, dtype=np.float16) % 7),
    "whole": pa.array([row * row % 7 for row in range(ROWS)]),
    "nullable": pa.array([None if row % 5 == 0 else row * 3 % 7 for row in range(ROWS)]),
    "unsigned": pa.array([2**63 + row for row in range(ROWS)], pa.uint64()),
    "decimal": pa.array([decimal.Decimal(row * 7 % 11) / 4 for row in range(ROWS)], pa.decimal128(10, 2)),
    "bools": pa.array([row % 2 == 0 for row in range(ROWS)]),
    "words": pa.array([f"{row * 7 % 11}" for row in range(ROWS)]),
    "category": pa.array(["3", "5", "7"] * 10).dictionary_encode(),
    "lists": pa.array([[1.0, 2.0]] * ROWS),
    "structs": pa.array([{"a": 1}] * ROWS),
    "bytes": pa.array([b"1"] * ROWS),
    "nothing": pa.nulls(ROWS),
    "times": pa.array(np.arange(ROWS), pa.timestamp("s")),
    "nanos": pa.array(np.arange(ROWS), pa.timestamp("ns", "Europe/Berlin")),
    "dates": pa.array(np.arange(ROWS, dtype=np.int32), pa.date32()),
    "early": pa.array(np.arange(ROWS) - 10**15, pa.timestamp("s")),
    "clock": pa.array(np.arange(ROWS), pa.time64("us")),
    "duration": pa.array(np.arange(ROWS), pa.duration("s")),
    "nan": pa.array([float("nan")] * ROWS),
    "infinite": pa.array([float("inf")] * 2 + [1.0, 2.0] * 14),
    "huge": pa.array([1e300 * (row % 3) for row in range(ROWS)]),
}


@st.composite
def parquets(draw: Any) -> Case:
    """A .parquet file."""
    first = draw(st.sampled_from(("whole times", "times", "times", *COLUMNS)))
    kinds = draw(st.lists(st.sampled_from(("floats", "floats", "whole", *COLUMNS)), min_size=1, max_size=4))
    column = pa.array(range(ROWS)) if first == "whole times" else COLUMNS[first]
    names = draw(
        st.sampled_from((("time", "a", "b", "c", "d"),) * 4 + (("time", "a", "a", "b", "b"), ("", "", "x", "y", "z")))
    )
    table = pa.table([column, *(COLUMNS[kind] for kind in kinds)], names=list(names[: 1 + len(kinds)]))
    table = table.slice(0, draw(st.sampled_from((ROWS, ROWS, ROWS, ROWS, 0, 1, 4))))
    data = io.BytesIO()
    pq.write_table(table, data)
    file = draw(damaged(data.getvalue())) if draw(st.integers(1, 5)) == 1 else data.getvalue()
    words = quick("model", "training", "assessment")
    arguments = ("fit", "t.parquet", "--out", "run", "--quiet", *words)
    return Case(arguments, {"t.parquet": file}, trains=draw(st.integers(1, 8)) == 1)


def cases() -> st.SearchStrategy[Case]:
    """All of them."""
    return st.one_of(pairs(), parquets())

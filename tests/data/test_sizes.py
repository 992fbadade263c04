"""Numbers that single precision cannot hold, alone or squared, are refused by name; so is what hardly moves."""

import numpy as np
import pytest

from tacit.data import Series, Windows, read_named_pairs, read_series
from tacit.errors import InputError


def write(path, a, b=lambda row: row % 7):
    path.write_text("time,a,b\n" + "".join(f"{row},{a(row)!r},{b(row)!r}\n" for row in range(30)))
    return path


@pytest.mark.parametrize("value", [1e300, -1e300, 1e16])
def test_a_cell_that_is_too_large(tmp_path, value):
    path = write(tmp_path / "t.csv", lambda row: value if row == 4 else float(row % 5))
    message = (
        f"t.csv: column 'a' must have numbers of at most 1e.15, got '{value!r}' in row 5; write the numbers in another"
    )
    with pytest.raises(InputError, match=message.replace("+", r"\+")):
        read_series(path)


@pytest.mark.parametrize("small", [1e-310, 1e-20])
def test_numbers_without_a_spread(tmp_path, small):
    series = read_series(write(tmp_path / "t.csv", lambda row: row % 5 * small))
    with pytest.raises(InputError, match=r"node 'a' .* hardly varies in the training part: by .* around"):
        Windows(2).prepare(series)


def test_a_constant_but_for_rounding(tmp_path):
    series = read_series(write(tmp_path / "t.csv", lambda row: 1.0 + (row == 9) * 1e-15))
    with pytest.raises(InputError, match=r"node 'a' .* hardly varies in the training part"):
        Windows(2).prepare(series)


def test_new_numbers_far_from_those_of_training():
    values = np.stack([np.arange(30.0) % 5 * 1e-3, np.arange(30.0) % 7], axis=-1)[:, :, None]
    made = Windows(2).prepare(Series(values, ("a", "b")))
    values[3, 0] = 9e14
    with pytest.raises(
        InputError, match=r"node 'a' .* must have numbers like those of the training part.*deviations away at 3"
    ):
        Windows(2).apply(Series(values, ("a", "b")), made.scaling)


@pytest.mark.parametrize("kind", [np.float64, np.longdouble])
def test_arrays_that_are_too_large(tmp_path, kind):
    x = np.ones((10, 2, 1), dtype=kind)
    x[3] = 1e300
    np.savez(tmp_path / "p.npz", x=x, y=x)
    with pytest.raises(
        InputError, match=r"p.npz: array 'x' must have numbers of at most 1e\+15, got one of size 1e\+300"
    ):
        read_named_pairs(tmp_path / "p.npz")


def test_a_node_without_a_name():
    values = np.stack([np.arange(30.0) % 5, np.arange(30.0) % 7], axis=-1)[:, :, None]
    with pytest.raises(InputError, match="every node must have a name, got an empty one"):
        Series(values, ("a", ""))

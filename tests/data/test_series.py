import numpy as np
import pytest

from tacit.data import Series
from tacit.errors import InputError


def values(time=4, node=2, channel=1):
    return np.random.default_rng(0).normal(size=(time, node, channel))


def test_counts():
    gappy = values()
    gappy[1, 0] = np.nan
    series = Series(gappy, ("a", "b"))
    assert (len(series), series.num_nodes, np.isnan(series.values).sum()) == (4, 2, 1)
    assert series.row_times.tolist() == [0, 1, 2, 3]
    assert Series(gappy, ("a", "b"), times=np.array([2, 4, 6, 8])).row_times.tolist() == [2, 4, 6, 8]


def with_cell(cell, where=(2, 1, 0)):
    changed = values()
    changed[where] = cell
    return changed


def constant(cell):
    changed = values(channel=2)
    changed[:, 1, 1] = cell
    changed[0, 1, 1] = np.nan
    return changed


REFUSALS = {
    r"values needs a numpy array of float64, got list; use np.asarray": lambda: Series([[[1.0]]], ("a",)),
    r"values needs a numpy array of float64, got float32": lambda: Series(values().astype(np.float32), ("a", "b")),
    r"values needs shape \(time, node, channel\), got \(4, 2\); add the missing axis": lambda: Series(
        values()[:, :, 0], ("a", "b")
    ),
    "values needs at least one row": lambda: Series(values(time=0), ("a", "b")),
    "nodes needs one name for each of the 2 in values, got 1": lambda: Series(values(), ("a",)),
    "channels needs one name for each of the 2 in values, got 1": lambda: Series(values(channel=2), ("a", "b")),
    "nodes needs different names, got 'a' twice": lambda: Series(values(), ("a", "a")),
    "channels needs different names, got 'u' twice": lambda: Series(values(channel=2), ("a", "b"), ("u", "u")),
    r"got -inf for node 'b' in row 2 \(1 such values\)": lambda: Series(with_cell(-np.inf), ("a", "b")),
    "node 'b' is missing at every time; leave it out": lambda: Series(with_cell(np.nan, np.s_[:, 1]), ("a", "b")),
    r"node 'b' \(variable 'v'\) is constant \(7.0 wherever it is observed\)": lambda: Series(
        constant(7.0), ("a", "b"), ("u", "v")
    ),
    r"times needs one time for each of the 4 rows of values, got shape \(3,\)": lambda: Series(
        values(), ("a", "b"), times=np.arange(3)
    ),
    r"covariates needs 4 rows and one column for each of covariate_names \('h',\), got shape \(4, 2\)": lambda: Series(
        values(), ("a", "b"), covariates=np.ones((4, 2)), covariate_names=("h",)
    ),
    r"covariates needs 4 rows .*got shape None; pass both or neither": lambda: Series(
        values(), ("a", "b"), covariate_names=("h",)
    ),
    "covariates needs finite numbers, got nan for 'h' in row 0": lambda: Series(
        values(), ("a", "b"), covariates=np.full((4, 1), np.nan), covariate_names=("h",)
    ),
    r"coordinates needs shape \(2, 2\), two numbers per node, got \(2, 3\)": lambda: Series(
        values(), ("a", "b"), coordinates=np.ones((2, 3))
    ),
    "coordinates needs two finite numbers for node 'b'": lambda: Series(
        values(), ("a", "b"), coordinates=np.array([[1.0, 2.0], [3.0, np.nan]])
    ),
}


@pytest.mark.parametrize("message", REFUSALS)
def test_refusals(message, unchecked):
    with pytest.raises(InputError, match=message):
        REFUSALS[message]()


def test_a_piece_may_stand_still_but_not_be_infinite():
    assert len(Series(constant(7.0), ("a", "b"), ("u", "v"), piece=True)) == 4
    assert len(Series(with_cell(np.nan, np.s_[:, 1]), ("a", "b"), piece=True)) == 4
    with pytest.raises(InputError, match="got inf"):
        Series(with_cell(np.inf), ("a", "b"), piece=True)

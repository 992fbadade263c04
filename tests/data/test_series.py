import numpy as np

from tacit.data import Series


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


def test_refusals(unchecked, refused):
    refused(Series, [[[1.0]]], ("a",))
    refused(Series, values().astype(np.float32), ("a", "b"))
    refused(Series, values()[:, :, 0], ("a", "b"))
    refused(Series, values(time=0), ("a", "b"))
    refused(Series, values(), ("a",))
    refused(Series, values(channel=2), ("a", "b"))
    refused(Series, values(), ("a", "a"))
    refused(Series, values(channel=2), ("a", "b"), ("u", "u"))
    refused(Series, with_cell(-np.inf), ("a", "b"))
    refused(Series, with_cell(np.nan, np.s_[:, 1]), ("a", "b"))
    refused(Series, constant(7.0), ("a", "b"), ("u", "v"))
    refused(Series, values(), ("a", "b"), times=np.arange(3))
    refused(Series, values(), ("a", "b"), covariates=np.ones((4, 2)), covariate_names=("h",))
    refused(Series, values(), ("a", "b"), covariate_names=("h",))
    refused(Series, values(), ("a", "b"), covariates=np.full((4, 1), np.nan), covariate_names=("h",))
    refused(Series, values(), ("a", "b"), coordinates=np.ones((2, 3)))
    refused(Series, values(), ("a", "b"), coordinates=np.array([[1.0, 2.0], [3.0, np.nan]]))


def test_a_piece_may_stand_still_but_not_be_infinite(refused):
    assert len(Series(constant(7.0), ("a", "b"), ("u", "v"), piece=True)) == 4
    assert len(Series(with_cell(np.nan, np.s_[:, 1]), ("a", "b"), piece=True)) == 4
    refused(Series, with_cell(np.inf), ("a", "b"), piece=True)

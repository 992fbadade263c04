"""Covariates of words: indicators of their levels, the same columns for new data."""

import numpy as np
import pandas as pd
import pytest

from tacit.data import Series, Windows, read_frame
from tacit.errors import InputError

REGIMES = ["wet", "dry", "dry", "mud", "wet", "dry"]


def table(regimes, **others):
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.normal(size=(len(regimes), 2)), columns=list("ab")).assign(regime=regimes, **others)


def test_an_indicator_for_each_level_but_the_first():
    frame = table(REGIMES, load=np.arange(6.0))
    series = read_frame(frame, covariates=["regime", "load"])
    assert series.covariate_names == ("load", "regime=mud", "regime=wet")
    expected = [[i, regime == "mud", regime == "wet"] for i, regime in enumerate(REGIMES)]
    np.testing.assert_array_equal(series.covariates, np.array(expected, dtype=float))
    assert series.levels == {"regime": ("dry", "mud", "wet")}
    long = frame.reset_index(names="time").melt(["time", "regime", "load"], var_name="node")
    np.testing.assert_array_equal(read_frame(long, covariates=["regime", "load"]).covariates, series.covariates)


def test_new_data_has_the_columns_of_the_levels_given():
    given = {"regime": ("wet", "dry", "snow")}
    series = read_frame(table(["dry", "wet"]), covariates=["regime"], levels=given, piece=True)
    assert series.covariate_names == ("regime=dry", "regime=snow")
    np.testing.assert_array_equal(series.covariates, [[1, 0], [0, 0]])
    words = "covariate 'regime' must have the levels of the training data, wet, dry, snow, got 'mud' in row 4"
    with pytest.raises(InputError, match=words):
        read_frame(table(REGIMES), covariates=["regime"], levels=given)


def test_steps_put_in_have_the_level_before():
    frame = table(REGIMES).set_index(pd.Index([0, 1, 2, 5, 6, 7]))
    series = read_frame(frame, covariates=["regime"])
    np.testing.assert_array_equal(series.covariates[:, 1], [1, 0, 0, 0, 0, 0, 1, 0])


def test_several_tables_share_their_levels():
    tables = (["wet", "wet"], ["dry", "mud"], ["mud", "wet"])
    parts = [read_frame(table(regimes, load=1.0), covariates=["regime", "load"], piece=True) for regimes in tables]
    joined = Series.joined(parts)
    assert joined.covariate_names == ("load", "regime=mud", "regime=wet")
    np.testing.assert_array_equal(joined.covariates[:, 1:], [[0, 1], [0, 1], [0, 0], [1, 0], [1, 0], [0, 1]])
    assert joined.levels == {"regime": ("dry", "mud", "wet")}
    lone = Series.joined([read_frame(table(["x", "x"]), covariates=["regime"], piece=True)] * 2)
    assert lone.covariates is None


def test_levels_that_the_training_part_does_not_have():
    regimes = ["dry", "wet"] * 10 + ["mud"] * 5
    made = Windows(1).prepare(read_frame(table(regimes), covariates=["regime"]))
    assert "levels that do not occur in the training part have no effect: regime=mud" in made.notes


def test_true_and_false_are_levels():
    series = read_frame(table([True, False, True]), covariates=["regime"])
    assert series.covariate_names == ("regime=True",)
    assert series.covariates[:, 0].tolist() == [1, 0, 1]


def test_wrong_cells():
    with pytest.raises(InputError, match="column 'regime' must have numbers, got 'x' in row 2"):
        read_frame(table(["1", "x", "3"]), covariates=["regime"])
    with pytest.raises(InputError, match="column 'regime' must have a name in every row, got an empty cell in row 2"):
        read_frame(table(["dry", None, "wet"]), covariates=["regime"])
    with pytest.raises(InputError, match="must have at most 30 levels, got 31 different words"):
        read_frame(table([f"r{i}" for i in range(31)]), covariates=["regime"])
    with pytest.raises(InputError, match="levels must be of covariates, got 'x'"):
        read_frame(table(["1", "2"]), levels={"x": ("a",)})

"""Covariates of words: indicators of their levels, the same columns for new data."""

import numpy as np
import pandas as pd
import pytest

from tacit.data import Series, Windows, read_frame, read_series
from tacit.data.columns import with_yes_no
from tacit.data.files import Table

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


def test_new_data_has_the_columns_of_the_levels_given(refused):
    given = {"regime": ("wet", "dry", "snow")}
    series = read_frame(table(["dry", "wet"]), covariates=["regime"], levels=given, piece=True)
    assert series.covariate_names == ("regime=dry", "regime=snow")
    np.testing.assert_array_equal(series.covariates, [[1, 0], [0, 0]])
    refused(read_frame, table(REGIMES), covariates=["regime"], levels=given)


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


def test_wrong_cells(refused):
    refused(read_frame, table(["1", "x", "3"]), covariates=["regime"])
    refused(read_frame, table(["dry", None, "wet"]), covariates=["regime"])
    refused(read_frame, table([f"r{i}" for i in range(31)]), covariates=["regime"])
    refused(read_frame, table(["1", "2"]), levels={"x": ("a",)})


# ---------------------------------------------------------------- columns of yes and no are numbers


def table_yes_no(**columns):
    frame = pd.DataFrame(columns)
    return Table("table.csv", tuple(columns), frame.set_axis(range(len(columns)), axis="columns"))


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["yes", "no", "yes"], [1, 0, 1]),
        (["No", " YES ", None], [0, 1, np.nan]),
        (["True", "false", "TRUE"], [1, 0, 1]),
        ([True, False, True], [1, 0, 1]),
        (["yes", "yes", "yes"], [1, 1, 1]),  # a few new rows may hold one of the words
    ],
)
def test_the_two_words_are_1_and_0(cells, numbers):
    read = with_yes_no(table_yes_no(alarm=cells), ["alarm"])
    np.testing.assert_array_equal(read.numbers("alarm"), numbers)
    assert len(read.notes) == 1


@pytest.mark.parametrize("cells", [["yes", "no", "maybe"], ["yes", "true", "no"], ["y", "n", "y"], ["1", "0", "1"]])
def test_other_columns_stay_as_they_are(cells):
    before = table_yes_no(alarm=cells)
    assert with_yes_no(before, ["alarm"]) is before


def test_a_column_that_is_not_asked_for_stays_words():
    before = table_yes_no(holiday=["yes", "no", "no"], alarm=["yes", "no", "no"])
    read = with_yes_no(before, ["alarm"])
    assert read.cells("holiday").tolist() == ["yes", "no", "no"]
    assert before.cells("alarm").tolist() == ["yes", "no", "no"]  # the table that was passed is not changed


def test_a_file_and_a_frame_with_answers_are_series(tmp_path):
    frame = pd.DataFrame({"time": range(4), "level": [1.0, 2.0, 4.0, 3.0], "alarm": ["no", "no", "yes", "no"]})
    frame.to_csv(tmp_path / "table.csv", index=False)
    for series in (read_series(tmp_path / "table.csv"), read_frame(frame)):
        assert series.nodes == ("level", "alarm")
        assert series.values[:, 1, 0].tolist() == [0, 0, 1, 0]
        assert "yes and no were read as 1 and 0: 'alarm'" in series.notes


def test_a_covariate_of_yes_and_no_keeps_its_levels(tmp_path):
    frame = pd.DataFrame(
        {"time": range(4), "a": [1.0, 2, 4, 3], "b": [2.0, 1, 4, 3], "holiday": ["no", "no", "yes", "no"]}
    )
    frame.to_csv(tmp_path / "table.csv", index=False)
    series = read_series(tmp_path / "table.csv", covariates=["holiday"])
    assert series.covariate_names == ("holiday=yes",)

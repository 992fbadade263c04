"""Columns of yes and no are numbers; other words are not."""

import numpy as np
import pandas as pd
import pytest

from tacit.data import read_frame, read_series
from tacit.data.columns import with_yes_no
from tacit.data.files import Table


def table(**columns):
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
    read = with_yes_no(table(alarm=cells), ["alarm"])
    np.testing.assert_array_equal(read.numbers("alarm"), numbers)
    assert len(read.notes) == 1


@pytest.mark.parametrize("cells", [["yes", "no", "maybe"], ["yes", "true", "no"], ["y", "n", "y"], ["1", "0", "1"]])
def test_other_columns_stay_as_they_are(cells):
    before = table(alarm=cells)
    assert with_yes_no(before, ["alarm"]) is before


def test_a_column_that_is_not_asked_for_stays_words():
    before = table(holiday=["yes", "no", "no"], alarm=["yes", "no", "no"])
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

"""Whole numbers that are typed: what is none is shown, with one that would do."""

import pytest
import typer

from tacit.cli.options import at_least, whole_number


@pytest.mark.parametrize("text", ["two", "1.5", "", "-3", "0", "1e3", "9" * 5000, "--3", "½"])
def test_what_is_none(text):
    with pytest.raises(typer.BadParameter, match=r"must be an integer of at least 1, got '.*'; pass for example 2"):
        at_least(1)(text)


def test_what_is_one():
    assert [at_least(1)("7"), at_least(0)(0), at_least(-5)("-5"), whole_number("0"), whole_number(10**15)] == [
        7,
        0,
        -5,
        0,
        10**15,
    ]

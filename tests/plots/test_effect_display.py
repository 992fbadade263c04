"""Impulse responses of an estimator or of a run directory."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from tacit import EffectDisplay
from tiny_fits import random_pairs, regressor


def axes():
    return Figure().subplots()


def test_the_lines_are_the_responses(fitted, run_directory):
    display = EffectDisplay.from_estimator(fitted, {"b": 1.0}, steps=5, ax=axes())
    expected = fitted.effect({"b": 1.0}, steps=5)
    assert display.nodes[0] == "b"
    for node, line in zip(display.nodes, display.ax_.get_lines()[1:], strict=True):
        np.testing.assert_array_equal(line.get_ydata(), expected[expected["node"] == node]["response"])
    assert len(display.ax_.collections) == len(display.nodes)  # a band each
    stored = EffectDisplay.from_run(run_directory, {"b": 1.0}, steps=5, nodes=["a", "<c>"], ax=axes())
    assert [text.get_text() for text in stored.ax_.get_legend().get_texts()] == ["a", "<c>"]
    pd.testing.assert_frame_equal(stored.table, expected)


def test_without_intervals_there_are_no_bands(fitted):
    table = fitted.effect({"b": 1.0}, steps=5).assign(low=np.nan, high=np.nan)
    assert not EffectDisplay(table, most=2).plot(axes()).ax_.collections


def test_what_cannot_be_drawn_is_refused(fitted, refused):
    table = fitted.effect({"b": 1.0}, steps=2)
    refused(EffectDisplay, table, nodes=["d"])
    refused(EffectDisplay, table, most=0)
    refused(EffectDisplay, pd.concat([table.assign(series="one"), table.assign(series="two")]))
    x, y = random_pairs(60)
    refused(EffectDisplay.from_estimator, regressor().fit(x, y), {"0": 1.0})

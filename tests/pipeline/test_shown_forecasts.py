"""The forecasts that a run keeps: those of predict, of the end of the test part, bounded, read back as written."""

import numpy as np
import pandas as pd
import pytest
import torch

from tacit import LatentGraphForecaster
from tacit.data import Pairs
from tacit.edges import EdgeTable
from tacit.pipeline.forecasts import MOST_GRAPHS, MOST_ROWS, last_rows, row_labels, shown_nodes
from tacit.records import FORECAST_NUMBERS, QUANTILES, ForecastTable, read_forecasts


def water(rows=1100):
    rng = np.random.default_rng(0)
    values = np.zeros((rows, 3))
    for row in range(1, rows):
        first, second, _ = values[row - 1]
        values[row] = np.array([0.5 * first, 0.3 * second + 0.8 * first, 0.0]) + rng.normal(size=3)
    times = pd.date_range("2026-01-01", periods=rows, freq="h", name="time")
    return pd.DataFrame(100 + values, columns=["a", "b", "c"], index=times)


def test_they_are_the_end_of_the_test_part_and_what_predict_says(tmp_path):
    table = water()
    table.iloc[-5, 1] = np.nan
    model = LatentGraphForecaster(random_state=0, point_graphs=MOST_GRAPHS).fit(table)
    found = model._fitted.run.forecasts
    assert found.rows[-1] == str(table.index[-1].isoformat())
    assert (len(found.rows), found.nodes) == (MOST_ROWS, [0, 1, 2])
    actual = found.numbers[:, :, 0, FORECAST_NUMBERS.index("actual")]
    np.testing.assert_allclose(actual, table.to_numpy()[-MOST_ROWS:], rtol=1e-5)
    assert np.isnan(actual[-5, 1])
    median = found.numbers[:, :, 0, FORECAST_NUMBERS.index("median")]
    wanted = model.predict(table, point="median").loc[table.index[-MOST_ROWS:]]
    np.testing.assert_allclose(median, wanted.to_numpy(), atol=0.25)  # other graphs and noise, errors of deviation 1
    quantiles = found.numbers[..., : len(QUANTILES)]
    assert (np.diff(quantiles, axis=-1) >= 0).all()
    inside = (actual >= found.numbers[:, :, 0, 1]) & (actual <= found.numbers[:, :, 0, 5])
    assert np.mean(inside[~np.isnan(actual)]) == pytest.approx(0.8, abs=0.06)
    model.save(tmp_path / "model")
    again = LatentGraphForecaster.load(tmp_path / "model")._fitted.run.forecasts
    np.testing.assert_array_equal(again.numbers, found.numbers)


def test_the_last_rows_of_each_series():
    pairs = Pairs(torch.zeros(600, 2, 1), torch.zeros(600, 2, 1), series=torch.arange(4).repeat_interleave(150))
    rows = last_rows(pairs)
    assert rows.tolist() == [row for end in (150, 300, 450, 600) for row in range(end - 50, end)]
    many = Pairs(torch.zeros(900, 2, 1), torch.zeros(900, 2, 1), series=torch.arange(30).repeat_interleave(30))
    assert len(last_rows(many)) == MOST_ROWS


@pytest.mark.parametrize(("step", "second"), [(1.0, "1970-01-01T00:00:01"), (0.1, "1970-01-01T00:00:00.100")])
def test_times_within_a_second_differ(step, second):
    times = step * torch.arange(3, dtype=torch.float64)
    labels = row_labels(Pairs(torch.zeros(3, 2, 1), torch.zeros(3, 2, 1), times=times), dated=True)
    assert labels[1] == second
    assert len(set(labels)) == 3


def test_of_many_nodes_those_with_the_most_expected_inputs():
    probs = torch.zeros(4, 4)
    probs[3, :3], probs[1, 0] = 0.9, 0.5
    edges = EdgeTable.of_matrices("abcd", probability=probs)
    assert shown_nodes(edges, 4) == [0, 1, 2, 3]
    assert shown_nodes(edges, 2) == [1, 3]
    assert shown_nodes(EdgeTable.of_matrices("abcd", probability=probs, exists=probs.flip(0)), 2) == [0, 2]


def test_it_is_read_as_it_was_written():
    numbers = np.arange(48.0).reshape(2, 2, 1, 12)[..., : len(FORECAST_NUMBERS)].copy()
    numbers[0, 0, 0, -1] = np.nan
    table = ForecastTable("time", ["2026-01-01T00:00:00", "7"], ["x", "y"], [2, 0], ["NA"], numbers)
    names = ["null", "b", 'a,\n"q"']
    read = read_forecasts(table.text(names), names)
    assert (read.row_name, read.rows, read.series, read.nodes, read.variables) == (
        "time", table.rows, ["x", "y"], [2, 0], ["NA"],
    )  # fmt: skip
    np.testing.assert_array_equal(read.numbers, numbers)
    with pytest.raises(ValueError, match="names a node that is not in record"):
        read_forecasts(table.text(names), ["b", "c"])

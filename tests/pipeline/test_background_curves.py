"""The curve of the background: columns times weights, means of neighbouring rows, what is kept of a run."""

import numpy as np
import pandas as pd
import pytest
import torch

from commands import call
from tacit.assessment.evidence import Backgrounds, Clock, Term
from tacit.assessment.evidence.backgrounds import TargetBackground
from tacit.config import DataOptions
from tacit.data import DAY
from tacit.pipeline import Dataset, Fitted, read_table
from tacit.pipeline.backgrounds import MOST_CURVES, MOST_POINTS, background_curves
from tacit.pipeline.evidence import all_pairs
from tacit.records import read_background, read_run

CPU = torch.device("cpu")
DAILY = Term("wave", place=DAY)


def made(rows, nodes=3, series=1, terms=(DAILY,), seed=0):
    """A data set whose values are a level, a trend and a daily cycle, and noise; its backgrounds; the table."""
    rng, parts = np.random.default_rng(seed), []
    for number in range(series):
        hours = np.arange(rows)[:, None]
        values = 10 * number + 0.01 * hours + 2 * np.sin(2 * np.pi * hours / 24 + np.arange(nodes))
        times = pd.date_range("2026-01-01", periods=rows, freq="h")
        names = [f"n{k}" for k in range(nodes)]
        part = pd.DataFrame(values + rng.normal(size=values.shape), columns=names).assign(time=times)
        parts.append(part.assign(series=f"s{number}") if series > 1 else part)
    table = pd.concat(parts, ignore_index=True)
    options = DataOptions(window=2, **({"series": "series"} if series > 1 else {}))
    indexed = table if series > 1 else table.set_index("time")
    dataset = Dataset.prepare(read_table(indexed, options), options, seed=0, scaled=True)
    clock = Clock.of(all_pairs(dataset.split), dated=True)
    of_target = [[TargetBackground(tuple(terms), 1.0)] for _ in range(nodes)]
    return dataset, Backgrounds(clock, of_target), table


def test_the_curve_is_columns_times_weights():
    terms = (Term("trend"), DAILY, Term("shift", place=1767225600.0 + 300 * 3600))
    dataset, backgrounds, table = made(500, terms=terms)
    found, said = background_curves(backgrounds, dataset)
    rows = table.iloc[2:]  # with a window before them
    hours = np.arange(2, 500)
    angle = 2 * np.pi * (hours % 24) / 24
    columns = np.stack([np.ones(498), hours, np.sin(angle), np.cos(angle), hours >= 300], 1)
    values = rows[["n0", "n1", "n2"]].to_numpy()
    curve = columns @ np.linalg.lstsq(columns, values, rcond=None)[0]
    assert found.rows == [1] * 498
    assert found.times == [str(time) for time in rows["time"].to_numpy().astype("datetime64[s]")]
    np.testing.assert_allclose(found.numbers[..., 0], values, atol=1e-5)
    np.testing.assert_allclose(found.numbers[..., 1], curve, atol=1e-4)
    share = 1 - ((values - curve) ** 2).sum(0) / ((values - values.mean(0)) ** 2).sum(0)
    assert [said[f"n{k}"]["share"] for k in range(3)] == pytest.approx(share.tolist(), abs=1e-4)
    assert said["n1"]["terms"] == ["slow trend", "daily cycle", "level shift"]


def test_a_long_table_has_means_and_its_last_rows():
    dataset, backgrounds, table = made(2602)
    found, _ = background_curves(backgrounds, dataset)
    rows = np.array(found.rows)
    assert sorted(set(found.rows)) == [1, 6]
    assert len(rows) <= MOST_POINTS
    values = table[["n0", "n1", "n2"]].to_numpy()[2:]
    np.testing.assert_allclose(found.numbers[rows == 1][..., 0], values[-500:], atol=1e-5)
    blocks = values[: 6 * (len(values) // 6)].reshape(-1, 6, 3).mean(1)
    np.testing.assert_allclose(found.numbers[rows == 6][: len(blocks), :, 0], blocks, atol=1e-5)


def test_series_have_their_own_level_and_many_nodes_are_cut():
    dataset, backgrounds, _ = made(120, nodes=25, series=3)
    found, said = background_curves(backgrounds, dataset)
    assert len(said) == 25
    assert len(found.nodes) == MOST_CURVES
    assert sorted(set(found.series)) == ["s0", "s1", "s2"]
    kept = {f"n{node}" for node in found.nodes}
    assert min(said[name]["share"] for name in kept) >= max(said[name]["share"] for name in set(said) - kept)
    series = np.array(found.series)
    for number in range(3):
        mean = found.numbers[series == f"s{number}"].mean(0)
        np.testing.assert_allclose(mean[:, 0], mean[:, 1], atol=1e-4)


def test_a_missing_value_is_missing_and_its_background_is_not():
    dataset, backgrounds, table = made(300)
    table = table.set_index("time")
    table.iloc[100, 1] = np.nan
    options = DataOptions(window=2)
    dataset = Dataset.prepare(read_table(table, options), options, seed=0, scaled=True)
    found, _ = background_curves(backgrounds, dataset)
    assert np.argwhere(np.isnan(found.numbers)).tolist() == [[98, 1, 0]]


def test_without_a_background_there_is_no_curve():
    dataset, backgrounds, _ = made(120, terms=())
    assert background_curves(backgrounds, dataset) == (None, {})
    assert background_curves(None, dataset) == (None, {})


def test_a_table_that_names_another_node():
    dataset, backgrounds, _ = made(120)
    found, _ = background_curves(backgrounds, dataset)
    text = found.text(["n0", "n1", "n2"])
    again = read_background(text, ["n0", "n1", "n2"])
    assert (again.times, again.rows, again.series, again.nodes) == (found.times, found.rows, [], [0, 1, 2])
    np.testing.assert_allclose(again.numbers, found.numbers, rtol=1e-5)
    with pytest.raises(ValueError, match="node"):
        read_background(text, ["n0", "n1", "n3"])


def test_a_run_keeps_its_background(tmp_path):
    _, _, table = made(400)
    table.to_csv(tmp_path / "table.csv", index=False)
    assert call("fit", tmp_path / "table.csv", "--out", tmp_path / "run", "--quick", "--quiet") == 0
    run = read_run(tmp_path / "run")
    assert set(run.record.background) == {"n0", "n1", "n2"}
    assert run.background.nodes == [0, 1, 2]
    fitted = Fitted.read_all(tmp_path / "run", CPU)
    text, tensors = fitted.to_parts()
    again = Fitted.from_parts(text, tensors, CPU)
    np.testing.assert_allclose(again.background.numbers, run.background.numbers, rtol=1e-5)
    assert 'class="plot beside"' in (tmp_path / "run" / "report.html").read_text()

"""Events as counts per bin: exact against a slow loop, units, neighbours, spans, the bin, and refusals."""

import numpy as np
import pandas as pd
import pytest

from tacit.data import Columns, Table, chosen_rows, open_table, read_events
from tacit.data import events as module
from tacit.data.events import choose_bin, order_of_types
from tacit.errors import InputError


def table_of(frame: pd.DataFrame, name: str = "events.csv") -> Table:
    return Table(name, tuple(frame.columns), frame.set_axis(range(frame.shape[1]), axis="columns"))


def made(seed: int = 0, events: int = 200, span: int = 6000) -> pd.DataFrame:
    """Bursts of events of three types on four units; times are whole seconds."""
    rng = np.random.default_rng(seed)
    burst = rng.integers(0, span, size=12)[rng.integers(12, size=events)]
    frame = pd.DataFrame(
        {
            "time": burst + rng.integers(0, 200, size=events),
            "type": rng.choice(["a", "b", "c"], size=events, p=[0.5, 0.3, 0.2]),
            "unit": rng.choice(["p", "q", "r", "s"], size=events),
        }
    )
    return frame.sort_values("time", ignore_index=True)


def slow_counts(frame: pd.DataFrame, unit: str, kind: str, moment: float, length: float) -> int:
    """The events of a type on a unit from a moment on, over the length of a bin."""
    number = 0
    for one in frame.itertuples():
        number += one.unit == unit and one.type == kind and moment <= one.time < moment + length
    return number


def test_counts_are_those_of_a_slow_loop():
    frame = made()
    series = read_events(table_of(frame), Columns(), bin=30, window=3)
    assert series.nodes == ("a", "b", "c")
    assert series.series_names == tuple(frame["unit"].unique())
    assert series.values.sum() == len(frame)
    for part, unit in zip(series.parts, series.series_names, strict=True):
        assert (part.times % 30 == 0).all()
        for row, moment in enumerate(part.times.tolist()):
            expected = [slow_counts(frame, unit, kind, moment, 30) for kind in series.nodes]
            assert part.values[row, :, 0].tolist() == expected


def test_targets_are_the_bins_shortly_after_events_and_windows_have_no_gap():
    frame, window = made(), 3
    series = read_events(table_of(frame), Columns(), bin=30, window=window)
    assert series.where.text == "bins_since_event <= 3 or bins_since_event == 13"
    last = 30 * (frame["time"].max() // 30)
    for part, unit in zip(series.parts, series.series_names, strict=True):
        bins = set((30 * (frame.loc[frame["unit"] == unit, "time"] // 30)).tolist())
        expected = {moment + 30 * lag for moment in bins for lag in range(1, window + 1)}
        quiet = {moment + 30 * 13 for moment in bins if not {moment + 30 * lag for lag in range(1, 13)} & bins}
        targets = part.times[chosen_rows(part)]
        assert set(targets.tolist()) == {moment for moment in expected | quiet if moment <= last}
        there = set(part.times.tolist())
        first = 30 * (frame["time"].min() // 30)
        for moment in targets.tolist():
            before = {moment - 30 * lag for lag in range(1, window + 1)}
            assert {one for one in before if one >= first} <= there


def test_a_condition_of_the_user_counts_too():
    every = read_events(table_of(made()), Columns(), bin=30)
    some = read_events(table_of(made()), Columns(where="time < 3000"), bin=30)
    assert np.array_equal(chosen_rows(some), chosen_rows(every) & (every.times < 3000))
    again = read_events(table_of(made()), Columns(where=some.settled["where"]), bin=30)
    assert again.where.text == some.where.text


def test_dates_and_a_duration():
    frame = made().assign(time=lambda one: pd.Timestamp("2026-03-01") + pd.to_timedelta(one["time"], unit="s"))
    plain = read_events(table_of(made()), Columns(), bin=60, window=2)
    dated = read_events(table_of(frame), Columns(), bin="1min", window=2)
    assert np.array_equal(plain.values, dated.values)
    assert dated.settled["bin"] == "1min"
    assert np.array_equal(dated.times, np.datetime64("2026-03-01") + plain.times.astype("timedelta64[s]"))


def test_without_units_there_is_one_series():
    series = read_events(table_of(made().drop(columns="unit")), Columns(), bin=30)
    assert series.lengths == ()
    assert series.values.sum() == 200


def test_a_span_counts_in_each_bin_that_it_covers():
    frame = made()
    frame["cleared"] = frame["time"] + np.random.default_rng(1).integers(0, 100, size=200)
    series = read_events(table_of(frame), Columns(), bin=30, end="cleared", window=1)
    assert read_events(table_of(frame), Columns(), bin=30, window=1).values.sum() == 200  # without: its start
    for part, unit in zip(series.parts, series.series_names, strict=True):
        for row, moment in enumerate(part.times.tolist()):
            mine = frame[(frame["unit"] == unit) & (frame["time"] < moment + 30) & (frame["cleared"] >= moment)]
            assert part.values[row, :, 0].tolist() == [int((mine["type"] == kind).sum()) for kind in series.nodes]


def test_neighbours_are_a_second_variable_and_keep_units_without_events(tmp_path):
    (tmp_path / "units.csv").write_text("unit,neighbour\np,q\nq,t\nr,\ns,\nalone,\n")
    frame = made()
    series = read_events(table_of(frame), Columns(), bin=30, units=tmp_path / "units.csv")
    assert series.channels == ("count", "neighbours")
    assert series.settled["targets"] == ("count",)
    assert set(series.series_names) == {"p", "q", "r", "s", "t"}
    assert "1 units have no events near them, and no rows" in series.notes
    beside = {"p": "q", "q": "pt", "r": "", "s": "", "t": "q"}
    for part, unit in zip(series.parts, series.series_names, strict=True):
        for row, moment in enumerate(part.times.tolist()):
            for place, kind in enumerate(series.nodes):
                own = slow_counts(frame, unit, kind, moment, 30)
                near = sum(slow_counts(frame, other, kind, moment, 30) for other in beside[unit])
                assert part.values[row, place].tolist() == [own, near]


def test_a_frequent_type_is_thinned_and_a_rare_one_is_not(monkeypatch):
    rng = np.random.default_rng(0)
    often, rare = rng.choice(100_000, size=2000, replace=False), rng.choice(100_000, size=30, replace=False)
    frame = pd.DataFrame({"time": [*often, *rare], "type": ["often"] * 2000 + ["rare"] * 30})
    monkeypatch.setattr(module, "MOST_TARGETS", 2 * 500)
    monkeypatch.setattr(module, "FEWEST_EVENTS", 1)
    series = read_events(table_of(frame), Columns(), bin=1, window=2)
    used = chosen_rows(series)
    assert 450 < used.sum() <= 500
    after = {moment + lag for moment in rare.tolist() for lag in (1, 2)}
    assert {moment for moment in after if moment <= frame["time"].max()} <= set(series.times[used].tolist())
    for row in np.flatnonzero(used):  # rows that are left out are not in a window
        there = (frame["time"] == series.times[row]).sum()
        assert series.values[row].sum() == there


def test_new_events_have_the_types_of_the_fit():
    series = read_events(table_of(made()), Columns(), bin=30, nodes=("c", "z"))
    assert series.nodes == ("c", "z")
    assert series.values[:, 1].sum() == 0
    assert "left out: types that the fit does not have, a, b" in series.notes


def test_rare_types_are_left_out():
    frame = pd.concat([made(), pd.DataFrame({"time": [5], "type": ["odd"], "unit": ["p"]})])
    series = read_events(table_of(frame), Columns(), bin=30)
    assert series.nodes == ("a", "b", "c")
    assert "left out: types with fewer than 20 events after others, odd" in series.notes


def test_order_of_types_against_a_slow_loop():
    frame = made(3, events=120, span=400)
    bins, types = frame["time"].to_numpy() // 10, frame["type"].map({"a": 0, "b": 1, "c": 2}).to_numpy()
    units = frame["unit"].map({"p": 0, "q": 1, "r": 2, "s": 3}).to_numpy()
    stretches, low, wide = 50, bins.min(), bins.max() - bins.min() + 3
    there = {(unit, one, kind) for unit, one, kind in zip(units.tolist(), bins.tolist(), types.tolist(), strict=True)}
    total, squares = np.zeros((3, 3)), np.zeros((3, 3))
    for block in range(4 * stretches):
        after = np.zeros((3, 3))
        for unit, one, kind in there:
            if unit * stretches + (one - low) * stretches // wide == block:
                for other in range(3):
                    after[kind, other] += sum((unit, one + lag, other) in there for lag in (1, 2))
        total += after - after.T
        squares += (after - after.T) ** 2
    pairs = [(i, j) for i in range(3) for j in range(i) if squares[i, j] > 0]
    expected = sum(total[pair] ** 2 / squares[pair] - 1 for pair in pairs)
    assert order_of_types(bins, types, units, 2) == pytest.approx(expected)


@pytest.mark.parametrize("delay", [3, 60, 1500])
def test_the_bin_follows_the_delay(delay):
    rng = np.random.default_rng(delay)
    first = np.sort(rng.uniform(0, 4e6, size=2000))
    moments = np.concatenate([first, first + rng.exponential(delay, size=2000)])
    types = np.repeat([0, 1], 2000)
    found, why = choose_bin(moments, types, np.zeros(4000, dtype=int), 2, dated=False)
    assert delay / 4 <= found <= 4 * delay
    assert "order" in why


def test_the_bin_without_any_order():
    rng = np.random.default_rng(0)
    moments = np.sort(rng.integers(0, 100_000, size=500))
    found, why = choose_bin(moments, np.zeros(500, dtype=int), np.zeros(500, dtype=int), 2, dated=False)
    assert 50 <= found <= 500
    assert "no type follows" in why


def test_columns_of_an_alarm_log(tmp_path):
    frame = made().rename(columns={"time": "start_timestamp", "type": "alarm_id", "unit": "device_id"})
    frame["alarm_id"] = frame["alarm_id"].map({"a": 10, "b": 2, "c": 0})
    frame.assign(end_timestamp=frame["start_timestamp"] + 5).to_csv(tmp_path / "log.csv.gz", index=False)
    series = read_events(open_table(tmp_path / "log.csv.gz"), Columns())
    assert series.nodes == ("0", "2", "10")
    assert "read as events: time = start_timestamp, type = alarm_id, unit = device_id" in series.notes


@pytest.mark.parametrize(
    ("change", "options", "named"),
    [
        (lambda one: one.assign(time=one["time"].where(one.index != 3)), {}, "column 'time'"),
        (lambda one: one, {"bin": "7000"}, "bin must be shorter than the record"),
        (lambda one: one, {"bin": "10min"}, "bin must be a positive number"),
        (lambda one: one, {"bin": -1}, "bin must be a positive number"),
        (lambda one: one, {"bin": float("nan")}, "bin must be a positive number"),
        (lambda one: one.drop(columns="type").assign(x=1.5, y=2.5), {}, "one column of types"),
        (lambda one: one.drop(columns="time"), {}, "a column of times"),
        (lambda one: one.assign(device=one["unit"]), {}, "at most one column of units"),
        (lambda one: one.assign(stop=one["time"] - 1), {"end": "stop"}, "column 'stop' must not be before 'time'"),
        (lambda one: one.assign(stop=one["time"] + 10**9), {"end": "stop", "bin": 1}, "bin must give at most"),
        (lambda one: one[:10], {}, "at least 20 events"),
        (lambda one: one.assign(time=7), {}, "two different times"),
        (lambda one: one, {"end": "stop"}, "end names the column 'stop'"),
        (lambda one: one, {"window": -1}, "window must be at least 1"),
        (lambda one: one, {"bin": 1e-30}, "bin must give at most"),
        (lambda one: one, {"nodes": ("x", "y")}, "must have a type of the fit (x, y)"),
        (lambda one: one.drop(columns="unit"), {"units": "units.csv"}, "units requires a column of units"),
        (lambda one: one.drop(columns="type").assign(x=1.5, y=2.5), {}, "--set data.node=NAME"),
        (lambda one: one.drop(columns="time"), {}, "--set data.time=NAME"),
    ],
)
def test_refusals(change, options, named):
    with pytest.raises(InputError) as raised:
        read_events(table_of(change(made())), Columns(), **options)
    assert named in str(raised.value)
    assert str(raised.value).count("\n") == 0


def test_units_must_be_complete(tmp_path):
    (tmp_path / "units.csv").write_text("unit\np\nq\nr\n")
    with pytest.raises(InputError, match="none for 's'"):
        read_events(table_of(made()), Columns(), units=tmp_path / "units.csv")


def test_names_that_differ_by_spaces_or_type_are_one_name():
    frame = made()
    expected = read_events(table_of(frame), Columns(), bin=30)
    spaced = frame.assign(unit=frame["unit"].where(frame.index != 1, frame["unit"] + " "))
    found = read_events(table_of(spaced), Columns(), bin=30)
    assert found.series_names == expected.series_names
    assert np.array_equal(found.values, expected.values)
    numbers = frame.assign(unit=frame["unit"].map({"p": 1, "q": 2, "r": 3, "s": 4}).astype(object))
    mixed = numbers.assign(unit=[str(one) if row % 2 else one for row, one in enumerate(numbers["unit"])])
    one, other = (read_events(table_of(each), Columns(), bin=30) for each in (numbers, mixed))
    assert sorted(one.series_names) == sorted(other.series_names) == ["1", "2", "3", "4"]
    assert np.array_equal(one.values, other.values)


def test_columns_that_are_not_used_are_named():
    frame = made().assign(text="x", stop=lambda one: one["time"] + 1)
    notes = read_events(table_of(frame), Columns(node="type", series="unit"), bin=30).notes
    assert "not used: text, stop" in notes
    assert "events count where they start; --end stop makes them spans" in notes
    notes = read_events(table_of(frame), Columns(node="type", series="unit"), bin=30, end="stop").notes
    assert "not used: text" in notes

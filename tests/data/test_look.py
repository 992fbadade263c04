"""The look at a table: every defect is found at its node and row, and plain data have no findings."""

import numpy as np
import pytest

from tacit.data import Condition, Series, load_beijing_air, look_at

ROWS = 600


def series(values, **options):
    nodes = tuple(f"n{number}" for number in range(values.shape[1]))
    return Series(np.ascontiguousarray(values[:, :, None], dtype=float), nodes, piece=True, **options)


def autoregression(rng, phi=0.8, rows=ROWS, nodes=5, coupling=0.0, heavy=False):
    noise = rng.standard_t(4, size=(rows, nodes)) if heavy else rng.normal(size=(rows, nodes))
    for t in range(1, rows):
        noise[t] += phi * noise[t - 1] + coupling * np.roll(noise[t - 1], 1)
    return noise


def sticky(rng):
    changes = rng.random((ROWS, 5)) < 0.03
    return np.cumsum(changes, axis=0) % 2


PLAIN = {
    "white noise": lambda rng: rng.normal(size=(ROWS, 5)),
    "AR(1)": autoregression,
    "VAR": lambda rng: autoregression(rng, 0.4, coupling=0.5),
    "random walks": lambda rng: rng.normal(size=(ROWS, 5)).cumsum(axis=0),
    "prices": lambda rng: 100 * np.exp(0.02 * rng.normal(size=(ROWS, 5)).cumsum(axis=0)),
    "heavy tails": lambda rng: autoregression(rng, heavy=True),
    "log-normal": lambda rng: np.exp(rng.normal(size=(ROWS, 5))),
    "counts": lambda rng: rng.poisson(3, size=(ROWS, 5)),
    "rare counts": lambda rng: rng.poisson(0.1, size=(ROWS, 5)),
    "wide counts": lambda rng: rng.negative_binomial(0.5, 0.05, size=(ROWS, 5)),
    "yes or no": lambda rng: rng.random((ROWS, 5)) < 0.2,
    "yes or no that stays": sticky,
    "a day and noise": lambda rng: 3 * np.sin(np.arange(ROWS) / 24 * 2 * np.pi)[:, None] + rng.normal(size=(ROWS, 5)),
    "weekends": lambda rng: 100 - 60.0 * (np.arange(ROWS) % 7 >= 5)[:, None] + 5 * rng.normal(size=(ROWS, 5)),
    "trend": lambda rng: np.linspace(0, 20, ROWS)[:, None] + rng.normal(size=(ROWS, 5)),
    "rounded to tenths": lambda rng: np.round(20 + autoregression(rng), 1),
    "few rows": lambda rng: autoregression(rng, rows=60),
}


@pytest.mark.parametrize("kind", PLAIN)
def test_plain_data_have_no_findings(kind):
    found = [one for seed in range(10) for one in look_at(series(PLAIN[kind](np.random.default_rng(seed))))]
    assert found == []


def test_beijing_has_only_a_short_stretch_at_the_limit_of_detection():
    (one,) = look_at(load_beijing_air())
    assert (one.kind, one.nodes, one.numbers) == ("stuck", ("Huairou",), {"value": 3.0})
    assert one.rows[1] - one.rows[0] == 20


@pytest.mark.parametrize("factor", [10, 0.01, 1000, 25.4, 3.6])
def test_a_unit_that_changes(factor):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        values, row = 100 + 5 * autoregression(rng, 0.5), int(rng.integers(100, 500))
        values[row:, 2] *= factor
        (one,) = look_at(series(values))
        assert (one.kind, one.nodes, one.rows) == ("unit", ("n2",), (row,))
        assert one.numbers["unit"] == max(factor, 1 / factor)
        assert one.numbers["after"] == pytest.approx(100 * factor, rel=0.1)


def test_a_unit_that_changes_for_a_while():
    values = 100 + 5 * autoregression(np.random.default_rng(0), 0.5)
    values[200:300, 1] *= 1000
    assert [(one.kind, one.nodes, one.rows) for one in look_at(series(values))] == [
        ("unit", ("n1",), (200,)),
        ("unit", ("n1",), (300,)),
    ]


def test_a_level_that_jumps_and_stays():
    values = np.random.default_rng(1).normal(size=(ROWS, 5))
    values[400:, 3] += 20
    (one,) = look_at(series(values))
    assert (one.kind, one.nodes, one.rows) == ("jump", ("n3",), (400,))
    assert one.numbers["change"] == pytest.approx(20, abs=0.5)


def test_spikes():
    values = autoregression(np.random.default_rng(2))
    values[[100, 350], 4] = [-80, 999]
    (one,) = look_at(series(values))
    assert (one.kind, one.nodes, one.rows, one.numbers["value"]) == ("spikes", ("n4",), (350, 100), 999)


@pytest.mark.parametrize(
    ("noise", "kind"), [(0.0, "copy"), (0.01, "near_copy"), (0.05, "near_copy"), (0.5, None)], ids=str
)
@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_copies_with_another_unit_and_gaps(noise, kind, gaps):
    rng = np.random.default_rng(3)
    values = autoregression(rng, 0.4, coupling=0.4)
    values[:, 4] = -1.8 * values[:, 1] + 32 + noise * rng.normal(size=ROWS)
    values[rng.random(values.shape) < gaps] = np.nan
    assert [(one.kind, one.nodes) for one in look_at(series(values))] == [(kind, ("n1", "n4"))][: kind is not None]


def test_several_copies_are_one_finding():
    values = autoregression(np.random.default_rng(4))
    values[:, 2] = values[:, 0]
    values[:, 3] = values[:, 0] / 1000
    assert [one.nodes for one in look_at(series(values))] == [("n0", "n2", "n3")]


def test_columns_without_common_rows_are_no_copies():
    values = autoregression(np.random.default_rng(5))
    values[300:, 0] = np.nan
    values[:297, 1] = np.nan
    values[297:300, 1] = values[297:300, 0]
    assert look_at(series(values)) == []


@pytest.mark.parametrize("value", [None, 0.0])
def test_a_sensor_that_is_stuck(value):
    values = 20 + autoregression(np.random.default_rng(6))
    values[250:300, 2] = values[250, 2] if value is None else value
    (one,) = look_at(series(values))
    assert (one.kind, one.nodes, one.rows) == ("stuck", ("n2",), (250, 299))
    assert one.numbers == {"value": values[250, 2]}


def test_columns_that_hardly_vary_zeros_and_rounding():
    rng = np.random.default_rng(7)
    values = rng.normal(size=(ROWS, 5))
    values[:, 0] = np.arange(ROWS) == 77
    values[:, 1] = np.where(rng.random(ROWS) < 0.6, 0, rng.gamma(1, size=ROWS))
    values[:, 2] = rng.choice([0.5, 1.0, 1.5], ROWS)
    values[:, 3] = 1e6 + 0.01 * values[:, 3]
    found = {one.nodes[0]: (one.kind, one.numbers) for one in look_at(series(values))}
    assert found.keys() == {"n0", "n1", "n2", "n3"}
    assert [found[node][0] for node in sorted(found)] == ["still", "zeros", "rounded", "still"]
    assert found["n0"][1]["fraction"] == pytest.approx(1 - 1 / ROWS)
    assert found["n1"][1]["fraction"] == pytest.approx((values[:, 1] == 0).mean())
    assert found["n2"][1] == {"step": 0.5, "values": 3.0}


def test_series_are_not_compared_across_their_ends():
    rng = np.random.default_rng(8)
    values = np.concatenate([20 + autoregression(rng), 100 + autoregression(rng)])
    both = {"lengths": (ROWS, ROWS), "series_names": ("a", "b")}
    assert look_at(series(values, **both)) == []
    assert {one.kind for one in look_at(series(values))} == {"jump"}
    values[ROWS + 100, 1] += 500
    values[ROWS + 300 :, 2] *= 10
    found = look_at(series(values, **both))
    assert [(one.kind, one.nodes, one.rows) for one in found] == [
        ("unit", ("n2",), (ROWS + 300,)),
        ("spikes", ("n1",), (ROWS + 100,)),
    ]


def test_variables_are_named_and_rows_of_a_condition_are_used():
    rng = np.random.default_rng(9)
    values = 100 + autoregression(rng, nodes=4).reshape(ROWS, 2, 2)
    values[300:, 1, 0] *= 60
    both = Series(values, ("north", "south"), ("flow", "rain"))
    assert [one.nodes for one in look_at(both)] == [("south:flow",)]
    early = Series(values, ("north", "south"), ("flow", "rain"), where=Condition.read("time < 300"))
    assert look_at(early) == []


def test_short_and_empty_columns():
    values = np.full((ROWS, 5), np.nan)
    values[:, 0] = np.random.default_rng(10).normal(size=ROWS)
    values[:10, 1] = 1.0
    assert look_at(series(values)) == []
    assert look_at(series(values[:5])) == []

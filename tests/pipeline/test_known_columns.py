"""Covariates act at the time of the target, and a background is columns of the pairs: fits, controls and forecasts."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

from tacit.config import FitConfig, override
from tacit.data import DAY, Background, Category, Level, Wave, time_numbers
from tacit.pipeline import Dataset, Fitted, forecast_table, learn, path_table, read_new, read_table, resolve, run_fit
from tacit.pipeline.fitting import conclude

CPU = torch.device("cpu")
NODES = ["river", "lake", "well"]
BACKGROUND = Background(
    (Wave(DAY, 2), Category("weekend"), Level(12.0)),
    np.array([[True, True, True], [True, False, True], [False, False, False]]),
)


def river_table(rows=700, seed=0):
    """A river driven by the rain of the same day, which feeds a lake; the rain also falls on the well."""
    rng = np.random.default_rng(seed)
    rain, noise = rng.gamma(0.5, 2.0, rows), 0.2 * rng.normal(size=(rows, 3))
    values = np.zeros((rows, 3))
    for row in range(1, rows):
        before = values[row - 1]
        values[row] = [0.6 * before[0], 0.5 * before[1] + 0.3 * before[0], 0.4 * before[2]] + noise[row]
        values[row, 0] += 0.5 * rain[row]
        values[row, 2] += 0.2 * rain[row - 1]
    times = pd.date_range("2024-01-01", periods=rows, freq="6h", name="time")
    return pd.DataFrame(values, columns=NODES, index=times).assign(rain=rain)


def plan_of(table, **sections):
    config = override(FitConfig(), {"assessment": {"bootstrap_replicas": 0, "controls": True}, **sections})
    return resolve(read_table(table, config.data), config, seed=0, device=CPU, command="tests")


def least_squares_mae(plan, sources):
    """Mean absolute error on the test part in units, on all columns of a node and the windows of its sources."""
    split, preparation = plan.dataset.split, plan.dataset.preparation
    sizes, spread = preparation.sizes, preparation.spread(split.test)
    sent = torch.arange(sizes.window) * sizes.num_features
    errors = []
    for node in range(sizes.num_nodes):
        others = [one for one in sources(node) if one != node]

        def design(part, node=node, others=others):
            read = part.inputs[:, others][..., sent].flatten(1)
            return torch.cat([part.inputs[:, node], read, torch.ones(len(part), 1)], 1).double()

        known = split.train.with_mask().observed[:, node, 0] > 0
        target = split.train.targets[known, node].double()
        weights = torch.linalg.lstsq(design(split.train)[known], target, driver="gelsd").solution
        there = split.test.with_mask().observed[:, node, 0] > 0
        error = (design(split.test) @ weights - split.test.targets[:, node])[there].abs() * spread[node]
        errors.append(error.flatten())
    return float(torch.cat(errors).mean())


def words(table):
    return table.assign(rain=np.where(table["rain"] > 1, "wet", "dry"))


def gaps(table):
    return table.mask(np.random.default_rng(3).random(table.shape) < 0.05).assign(rain=table["rain"])


FORMS = {
    "number": (river_table, {"data": {"covariates": ["rain"], "window": 2}}),
    "words": (
        lambda: words(river_table()),
        {"data": {"covariates": ["rain"], "window": 2}, "observation": {"kind": "gaussian"}},
    ),
    "calendar": (lambda: river_table().drop(columns="rain"), {"data": {"calendar": ["hour", "weekday"], "window": 2}}),
    "all": (river_table, {"data": {"covariates": ["rain"], "calendar": ["hour"], "window": 3}}),
    "gaps": (lambda: gaps(river_table()), {"data": {"covariates": ["rain"], "window": 2}}),
    "two ahead": (river_table, {"data": {"covariates": ["rain"], "window": 2, "horizon": 2}}),
    "heavy tails": (river_table, {"data": {"covariates": ["rain"], "window": 2}, "observation": {"kind": "student_t"}}),
}


@pytest.mark.parametrize("form", FORMS)
def test_controls_are_least_squares_on_the_same_columns(form):
    made, sections = FORMS[form]
    plan = plan_of(made(), **sections)
    record = conclude(learn(plan)).record
    found = {name: record.references[name]["point_mae"] for name in ("no graph", "full graph")}
    none, full = least_squares_mae(plan, lambda _: []), least_squares_mae(plan, lambda _: range(3))
    assert found["no graph"] == pytest.approx(none, rel=0.01)
    assert found["full graph"] == pytest.approx(full, rel=0.01)


def test_the_rain_of_the_same_day_drives_the_river():
    plan = plan_of(river_table(), data={"covariates": ["rain"], "window": 2})
    record = conclude(learn(plan)).record
    edges = {1: [0]}
    assert record.metrics["point_mae"] == pytest.approx(
        least_squares_mae(plan, lambda node: edges.get(node, [])), rel=0.03
    )
    assert record.metrics["point_mae"] < 0.9 * least_squares_mae(
        plan_of(river_table().drop(columns="rain"), data={"window": 2}), lambda _: range(3)
    )


@pytest.fixture(scope="module")
def river(tmp_path_factory):
    """The directory of a run with rain and calendar, and its table."""
    folder = tmp_path_factory.mktemp("river")
    river_table().to_csv(folder / "river.csv")
    data = {"covariates": ["rain"], "calendar": ["hour"], "window": 2}
    config = override(FitConfig(), {"data": data, "assessment": {"bootstrap_replicas": 0, "controls": False}})
    return run_fit(str(folder / "river.csv"), config, folder / "run", device=CPU).directory, folder


def with_rain(folder, rain):
    table = pd.read_csv(folder / "river.csv", parse_dates=["time"])
    coming = table["time"].iloc[-1] + pd.to_timedelta(6 * np.arange(1, len(rain) + 1), "h")
    path = folder / "coming.csv"
    pd.concat([table, pd.DataFrame({"time": coming, "rain": rain})]).to_csv(path, index=False)
    return path


def test_a_future_table_moves_the_forecast(river):
    directory, folder = river
    fitted = Fitted.read(directory, CPU)
    dry, wet = (
        path_table(fitted, read_new(fitted, [str(with_rain(folder, [rain, 0.0, 0.0]))]), 3) for rain in (0.0, 40.0)
    )
    moved = (wet["mean"] - dry["mean"]).to_numpy().reshape(3, 3)  # (step, node)
    assert moved[0].tolist() == pytest.approx([20.0, 0.0, 0.0], abs=1.0)
    assert moved[1] == pytest.approx([12.0, 6.0, 8.0], abs=1.0)
    one = forecast_table(fitted, read_new(fitted, [str(with_rain(folder, [40.0]))]))
    last = one[one["time"] == one["time"].iloc[-1]].reset_index(drop=True)
    first = wet[wet["step"] == 1].reset_index(drop=True)
    pd.testing.assert_frame_equal(first[last.columns], last, rtol=1e-5)


def test_an_unknown_covariate_is_named(river, refused):
    directory, folder = river
    fitted = Fitted.read(directory, CPU)
    refused(path_table, fitted, read_new(fitted, [str(folder / "river.csv")]), 2)
    found = forecast_table(fitted, read_new(fitted, [str(folder / "river.csv")]))
    assert found["time"].max() == pd.Timestamp("2024-06-23 18:00")
    (note,) = [note for note in found.attrs["notes"] if "rain" in note]
    assert note.startswith("no forecast after the last row, where covariate 'rain' is not known")
    refused(read_new, fitted, [str(with_rain(folder, [1.0, np.nan, np.nan]))])


def drifting(rows=500, seed=1):
    """Slow random walks with a daily cycle, for the first two nodes; the third is noise."""
    rng = np.random.default_rng(seed)
    times = pd.date_range("2024-01-01", periods=rows, freq="6h", name="time")
    cycle = np.sin(np.arange(rows) * np.pi / 2 + 0.4)[:, None] * [1.0, 0.5, 0.0]
    walks = (0.3 * rng.normal(size=(rows, 3)) * [1, 1, 0]).cumsum(0)
    return pd.DataFrame(cycle + walks + 0.5 * rng.normal(size=(rows, 3)), columns=NODES, index=times)


@pytest.fixture(params=[1, 2])
def leveled(request, tmp_path, monkeypatch):
    """A finished fit with a background given by hand, its directory, and the file of its table."""
    monkeypatch.setattr(Dataset, "prepare", partial(Dataset.prepare, background=BACKGROUND))
    drifting().to_csv(tmp_path / "drift.csv")
    data = {"window": 2, "horizon": request.param, "background": "none"}
    config = override(FitConfig(), {"data": data, "assessment": {"bootstrap_replicas": 0}})
    made = run_fit(str(tmp_path / "drift.csv"), config, tmp_path / "run", device=CPU)
    monkeypatch.undo()
    return made, tmp_path


def test_a_saved_run_has_its_background(leveled):
    made, folder = leveled
    fitted = Fitted.read(made.directory, CPU)
    stored = fitted.preparation.background
    assert stored.to_dict() == BACKGROUND.to_dict()
    assert fitted.preparation.sizes.known == BACKGROUND.size == 6
    source = read_new(fitted, [str(folder / "drift.csv")])
    pairs, horizon = fitted.preparation.apply(source).pairs, fitted.preparation.horizon
    values = fitted.preparation.scaling.scaled(source.content)[..., 0]
    levels = values[:1].copy()
    for value in values[1:]:
        levels = np.concatenate([levels, levels[-1:] + Level(12.0).rate * (value - levels[-1:])])
    end = len(values) - 1  # the newest row of the last pair, whose target is after the table
    number = time_numbers(source.content.times[end:] + horizon * np.timedelta64(6, "h")).numpy()
    wave, weekend = Wave(DAY, 2).columns(number)[0], Category("weekend").columns(number)[0]
    expected = [[*wave, *weekend, levels[end, 0]], [*wave, 0.0, levels[end, 1]], [0.0] * 6]
    np.testing.assert_allclose(pairs.inputs[-1, :, 2:], np.array(expected), atol=1e-5)
    assert (fitted.model.predictor.own[2, 2:].detach() == 0).all()  # a term that a node does not use has no weight
    controls = fitted.record.references
    assert controls["no graph"]["point_mae"] < controls["the last value"]["point_mae"]


def test_forecasts_of_a_background(leveled):
    """The first step of a path is the forecast of one pair, samples move the level, and intervals grow with it."""
    made, folder = leveled
    fitted = Fitted.read(made.directory, CPU)
    source = read_new(fitted, [str(folder / "drift.csv")])
    plain, found = forecast_table(fitted, source), path_table(fitted, source, 40)
    horizon = fitted.preparation.horizon
    ahead = plain[plain["time"] > drifting().index[-1]].reset_index(drop=True)
    near = found[found["step"] <= horizon].reset_index(drop=True)
    columns = ["time", "node", "mean"]
    pd.testing.assert_frame_equal(near[columns], ahead[columns], rtol=1e-4)
    width = (found["q97.5"] - found["q2.5"]).to_numpy().reshape(40, 3)
    assert (width[-1, :2] > 1.3 * width[0, :2]).all()
    assert width[-1, 2] < 1.2 * width[0, 2]


def test_samples_of_a_path_move_its_level(leveled):
    """Each path's samples, appended to the table as rows, give the mean of its next step as a plain window does."""
    from tacit.assessment.evaluation import SharedDraws
    from tacit.pipeline import paths
    from tacit.pipeline.paths import find_origins
    from tacit.randomness import generator_for

    made, folder = leveled
    fitted = Fitted.read(made.directory, CPU)
    origins = find_origins(fitted.preparation, read_new(fitted, [str(folder / "drift.csv")]), 5)
    steps = list(paths.path_steps(fitted.model, origins, 3, seed=0))
    table, units = drifting(), fitted.preparation.scaling.to_units
    coming = table.index[-1] + pd.to_timedelta(6 * np.arange(1, 6), "h")
    for path in range(3):
        values = [units(step.values[0, path].double()).flatten().numpy() for step in steps]
        rows = pd.concat([table, pd.DataFrame(values, columns=NODES, index=coming.rename("time"))])
        rows.to_csv(folder / "appended.csv")
        pairs = fitted.preparation.apply(read_new(fitted, [str(folder / "appended.csv")])).pairs
        for number, step in enumerate(steps):
            end = len(pairs) - 5 + number - fitted.preparation.horizon
            draws = SharedDraws(fitted.model, 3, generator_for(0, paths._purpose(number)))
            expected = fitted.model.observation.mean(draws.described(pairs[end : end + 1]))[0, path]
            assert torch.allclose(step.means[0, path], expected, atol=2e-4)

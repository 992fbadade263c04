"""Forecast paths: moments against those of a VAR, feeding back against appended rows, and what is refused."""

import numpy as np
import pandas as pd
import pytest
import torch

from own_files import NODES, learn, series
from tacit import LatentGraphForecaster
from tacit.assessment.evaluation import SharedDraws
from tacit.config import AssessmentOptions, DataOptions, TrainingOptions
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise
from tacit.pipeline import Fitted, forecast_table, path_samples, path_table, paths, read_new, read_table
from tacit.pipeline.paths import Origins, find_origins, path_steps
from tacit.predictors import GraphFilter
from tacit.randomness import generator_for
from tacit.training import LatentGraphModel

CPU = torch.device("cpu")
OWN = torch.tensor([[0.2, 0.5], [0.0, 0.6]])  # (node, lag), the oldest lag first
EDGES = torch.zeros(2, 2, 2)  # (receiving node, sending node, lag)
EDGES[0, 1] = torch.tensor([-0.3, 0.8])
SIGMA = 0.5


def var_model(gate):
    """Two nodes and two lags; node 0 reads node 1 through a gate."""
    predictor = GraphFilter(2, window=2, num_features=1, residual=False)
    predictor = predictor.with_weights(OWN[..., None], EDGES[..., None])
    probs = torch.tensor([[0.0, gate], [0.0, 0.0]])
    graph = BernoulliGraph(probs, fixed=torch.ones(2, 2, dtype=torch.bool))
    return LatentGraphModel(graph, predictor, EnergyScore(), observation=GaussianNoise(2, initial_sigma=SIGMA))


def origins_of(history, steps, window=2):
    """Origins without series, covariates and flags."""
    count, horizon = len(history), history.shape[1] - window + 1
    times = np.tile(np.arange(steps), (count, 1))
    actual = np.full((count, steps, 2, 1), np.nan)
    numbers = torch.from_numpy(times).double()
    none = torch.zeros(count, steps, 0), torch.zeros(count, steps, 2, 0), torch.zeros(count, horizon, 2, 0)
    return Origins(window, history, *none, numbers, None, np.zeros(count), times, actual)


def moments(history, gate, steps):
    """Mean and variance of every step, by sums over both graphs: E[W S W'] for the second moments of the state."""
    state = history[0, :, :, 0].double().flip(0).flatten()  # newest row first
    noise = torch.zeros(4, 4, dtype=torch.float64)
    noise[:2, :2] = SIGMA**2 * torch.eye(2)
    companions = []
    for present in (0.0, 1.0):
        companion = torch.zeros(4, 4, dtype=torch.float64)
        for lag in range(2):
            part = torch.diag(OWN[:, 1 - lag]) + present * EDGES[:, :, 1 - lag]
            companion[:2, 2 * lag : 2 * lag + 2] = part
        companion[2:, :2] = torch.eye(2)
        companions.append(companion)
    second, found = torch.outer(state, state), []
    for _ in range(steps):
        state = (1 - gate) * companions[0] @ state + gate * companions[1] @ state
        terms = [chance * one @ second @ one.mT for chance, one in zip((1 - gate, gate), companions, strict=True)]
        second = sum(terms) + noise
        found.append((state[:2], second.diagonal()[:2] - state[:2].square()))
    return found


@pytest.mark.parametrize("gate", [1.0, 0.6])
def test_moments_are_those_of_the_var(gate):
    """Means and deviations over 40,000 paths, 6 steps x 2 nodes x 2: each within 5 standard errors."""
    history = torch.tensor([[1.0, -2.0], [3.0, 2.0]]).view(1, 2, 2, 1)
    count, model = 40_000, var_model(gate)
    steps = list(path_steps(model, origins_of(history, 6), count, seed=0))
    for (mean, variance), step in zip(moments(history, gate, 6), steps, strict=True):
        values = step.values[0, :, :, 0].double()
        error = (variance / count).sqrt()
        assert bool(((values.mean(0) - mean).abs() < 5 * error).all())
        assert bool(((step.means[0, :, :, 0].double().mean(0) - mean).abs() < 5 * error).all())
        fourth = (values - values.mean(0)).pow(4).mean(0)
        assert bool(((values.var(0) - variance).abs() < 5 * ((fourth - variance.square()) / count).sqrt()).all())


def test_every_path_draws_a_new_graph_at_every_step():
    """Without noise a step has two values, with and without the edge; the two steps of a path are independent."""
    model = var_model(0.5)
    with torch.no_grad():
        model.observation.log_sigma.fill_(-30.0)
    history = torch.ones(1, 2, 2, 1)
    first, second = (step.values[0, :, 0, 0] for step in path_steps(model, origins_of(history, 2), 4000, seed=0))
    acted = first > first.mean()
    on, off = (second[chosen] for chosen in (acted, ~acted))
    shares = [float((part > (part.max() + part.min()) / 2).double().mean()) for part in (on, off)]
    assert shares == pytest.approx([0.5, 0.5], abs=5 * 0.5 / np.sqrt(1900))


@pytest.fixture(scope="module")
def stored(certain):
    return Fitted.read(certain[0].directory, CPU)


@pytest.fixture(scope="module")
def random(plain):
    return Fitted.read(plain[0].directory, CPU)


def table_of(fitted, path, steps, **options):
    return path_table(fitted, read_new(fitted, [str(path)]), steps, **options)


def test_the_first_step_is_the_forecast_of_one_step(random, folder):
    source = read_new(random, [str(folder / "wide.csv")])
    plain = forecast_table(random, source, seed=3)
    found = path_table(random, source, 3, every=1, seed=3)
    first = found[found["step"] == 1].reset_index(drop=True)
    pd.testing.assert_frame_equal(first[plain.columns], plain, check_exact=True)


def test_the_table_and_its_actual_values(stored, folder):
    found = table_of(stored, folder / "wide.csv", 24, origin="2024-01-05 12:00")
    assert list(found.columns) == [
        *("origin", "step", "time", "node", "variable"),
        *("mean", "q2.5", "q10", "median", "q90", "q97.5", "actual"),
    ]
    assert len(found) == 24 * 4
    assert set(found["origin"]) == {pd.Timestamp("2024-01-05 12:00")}
    hours = (found["time"] - found["origin"]) / pd.Timedelta("1h")
    assert (hours == found["step"]).all()
    actual = found["actual"].to_numpy().reshape(24, 4)
    assert (actual[:11] == pd.read_csv(folder / "wide.csv")[list(NODES)].to_numpy()[-11:]).all()
    assert np.isnan(actual[11:]).all()
    last = table_of(stored, folder / "wide.csv", 2)
    assert last["time"].iloc[0] == pd.Timestamp("2024-01-06 00:00")
    assert last["actual"].isna().all()


def test_a_path_does_not_depend_on_other_origins(random, folder, monkeypatch):
    whole = table_of(random, folder / "wide.csv", 5, every=7, num_samples=2)
    quantiles = [column for column in whole.columns if not column.startswith("sample")]
    alone = table_of(random, folder / "wide.csv", 5, origin=whole["origin"].iloc[-1])
    pd.testing.assert_frame_equal(alone, whole[quantiles].iloc[-len(alone) :].reset_index(drop=True), rtol=1e-5)
    monkeypatch.setattr(paths, "MOST_NUMBERS", 1)  # one origin after another
    pd.testing.assert_frame_equal(table_of(random, folder / "wide.csv", 5, every=7), whole[quantiles], rtol=1e-5)
    spread = whole[whole["step"] == 1].pivot(index="origin", columns="node", values="sample_0")
    shared = whole[whole["step"] == 1].pivot(index="origin", columns="node", values="mean")
    assert len(np.unique(((spread - shared) / spread.std()).round(6))) > 3 * len(NODES)  # a noise of each one's own


@pytest.mark.parametrize(("horizon", "layout"), [(1, "matrix"), (2, "matrix"), (1, "table")])
def test_samples_are_inputs_like_observed_rows(horizon, layout, folder, tmp_path):
    """Each path's samples, appended to the table as rows, give the mean of its next step as a plain window does."""
    table = pd.read_csv(folder / "two.csv", parse_dates=["time"])
    table.iloc[30:33, 2] = np.nan  # flags become features
    table.to_csv(tmp_path / "two.csv", index=False)
    data = {"separator": ":", "covariates": "hour", "horizon": horizon}
    layouts = {"matrix": {}, "table": {"layout": "table", "k_correlated": 2}}
    made, _ = learn(tmp_path / "two.csv", tmp_path / "run", data=data, graph=layouts[layout])
    fitted = Fitted.read(made.directory, CPU)
    source = read_new(fitted, [str(tmp_path / "two.csv")])
    origins = find_origins(fitted.preparation, source, 5, "2024-01-05 12:00")
    place = int(table.index[table["time"] == "2024-01-05 12:00"][0])
    steps = list(path_steps(fitted.model, origins, 3, seed=0))
    columns, units = [name for name in table.columns if ":" in name], fitted.preparation.scaling.to_units
    for path in range(3):
        rows = table.iloc[: place + 1 + 5].copy()
        for number, step in enumerate(steps):
            rows.loc[place + 1 + number, columns] = units(step.values[0, path].double()).flatten().numpy()
        rows.to_csv(tmp_path / "appended.csv", index=False)
        pairs = fitted.preparation.apply(read_new(fitted, [str(tmp_path / "appended.csv")])).pairs
        for number, step in enumerate(steps):
            end = len(pairs) - 5 + number  # the last pair has the last row as its target
            draws = SharedDraws(fitted.model, 3, generator_for(0, paths._purpose(number)))
            expected = fitted.model.observation.mean(draws.described(pairs[end : end + 1]))[0, path]
            assert torch.allclose(step.means[0, path], expected, atol=2e-4)
            assert float(origins.time_numbers[0, number]) == float(pairs.times[end])


def test_covariates_to_come_are_rows_without_values(folder, tmp_path, refused):
    data = {"separator": ":", "covariates": "hour"}
    made, _ = learn(folder / "two.csv", tmp_path / "run", data=data)
    fitted = Fitted.read(made.directory, CPU)
    refused(table_of, fitted, folder / "two.csv", 4)
    table = pd.read_csv(folder / "two.csv", parse_dates=["time"])
    coming = pd.DataFrame({"time": table["time"].iloc[-1] + pd.to_timedelta(range(1, 5), "h"), "hour": range(4)})
    pd.concat([table, coming]).to_csv(tmp_path / "more.csv", index=False)
    found = table_of(fitted, tmp_path / "more.csv", 4)
    assert found["origin"].iloc[0] == table["time"].iloc[-1]
    assert found["time"].iloc[-1] == pd.Timestamp("2024-01-06 03:00")
    others = pd.concat([table, coming.assign(hour=[0, 9, 9, 9])])
    others.to_csv(tmp_path / "others.csv", index=False)
    changed = table_of(fitted, tmp_path / "others.csv", 4)["mean"] != found["mean"]
    assert changed.tolist() == [False] * 8 + [True] * 24  # the first step has the same hour


def test_calendar_features_to_come_follow_from_the_times(folder, tmp_path):
    """The hours after the table as calendar features equal those of rows that hold these hours."""
    made, _ = learn(folder / "wide.csv", tmp_path / "run", data={"calendar": "hour"})
    fitted = Fitted.read(made.directory, CPU)
    table = pd.read_csv(folder / "wide.csv", parse_dates=["time"])
    coming = pd.DataFrame({"time": table["time"].iloc[-1] + pd.to_timedelta(range(1, 4), "h")})
    pd.concat([table, coming]).to_csv(tmp_path / "more.csv", index=False)
    found, expected = (table_of(fitted, file, 4) for file in (folder / "wide.csv", tmp_path / "more.csv"))
    pd.testing.assert_frame_equal(found, expected)
    assert found["time"].iloc[-1] == table["time"].iloc[-1] + pd.Timedelta(4, "h")


def several(lengths):
    parts = [pd.DataFrame(series(rows, seed), columns=NODES) for seed, rows in enumerate(lengths)]
    return pd.concat(parts, keys=[f"day {number}" for number in range(len(parts))], names=["day", "time"])


@pytest.fixture(scope="module")
def forecaster():
    quick = {"training": TrainingOptions(replicas=1, epochs=1), "assessment": AssessmentOptions(enabled=False)}
    return LatentGraphForecaster(window=2, **quick).fit(several([60, 50, 40]))


def test_the_same_in_python_for_several_series(forecaster, refused):
    data = several([20, 1, 15])
    found = forecaster.predict(data, steps=6)
    assert found.index.names == ["series", "time"]
    assert found.index.get_level_values("time").tolist() == [*range(20, 26), *range(15, 21)]
    (note,) = found.attrs["notes"]
    assert note == "1 of 3 series were left out: they are shorter up to the origin than the 2 rows of a window of 2"
    table = forecaster.forecast(data, steps=6, num_samples=5)
    assert (table["series"].unique() == ["day 0", "day 2"]).all()
    assert table["mean"].to_numpy() == pytest.approx(found.to_numpy().flatten())
    drawn = forecaster.sample(data, 5, steps=6)
    assert drawn.shape == (2, 5, 6, 4)
    columns = [f"sample_{number}" for number in range(5)]
    assert table[columns].to_numpy() == pytest.approx(drawn.transpose(0, 2, 3, 1).reshape(-1, 5))
    assert forecaster.forecast(data, steps=3, every=4)["origin"].nunique() == 5
    plain = forecaster.predict(data)
    assert plain.index[-1] == ("day 2", 15)
    refused(forecaster.forecast, data, steps=3, origin=0.5)
    refused(forecaster.forecast, data, every=4)


def test_series_with_levels_of_their_own():
    """Levels differ by far: the first step is the plain forecast, and nothing after an origin is known to its path."""
    shifts = np.repeat([0.0, 500.0, -500.0], 40)[:, None]
    table = several([40, 40, 40]) + shifts
    quick = {"training": TrainingOptions(replicas=1, epochs=1), "assessment": AssessmentOptions(enabled=False)}
    model = LatentGraphForecaster(window=2, data=DataOptions(scale_by="level"), **quick).fit(table)
    plain, found = model.forecast(table), model.forecast(table, steps=4, every=1)
    first = found[found["step"] == 1].reset_index(drop=True)
    pd.testing.assert_frame_equal(first[plain.columns], plain, rtol=1e-5)
    assert (found.groupby("series")["mean"].mean().diff().abs().iloc[1:] > 400).all()
    new = (several([30]) + 2000.0).rename(index={"day 0": "another day"})
    changed = new.copy()
    changed.iloc[21:] += 50.0
    one, other = (model.forecast(rows, steps=4, origin=20) for rows in (new, changed))
    pd.testing.assert_frame_equal(one.drop(columns="actual"), other.drop(columns="actual"))
    assert one.attrs["notes"][-1].startswith("one series that was not in the training data: the level is the mean")
    assert one["mean"].between(1000, 3000).all()


def test_samples_of_a_step_spread_as_quantiles_say(stored, folder):
    source = read_new(stored, [str(folder / "wide.csv")])
    drawn = path_samples(stored, source, 3, num_samples=2000)[0, :, 2, :, 0]
    table = path_table(stored, source, 3)
    last = table[table["step"] == 3]
    inside = (drawn > last["q10"].to_numpy()) & (drawn < last["q90"].to_numpy())
    assert inside.mean(0) == pytest.approx([0.8] * 4, abs=0.06)  # 5 standard errors of both


@pytest.mark.parametrize(
    "options",
    [
        {"steps": 0},
        {"steps": 10**12},
        {"steps": 3, "every": 0},
        {"steps": 3, "origin": "2030-01-01"},
        {"steps": 3, "origin": "2024-01-01"},
        {"steps": 3, "origin": "03/01/2024"},
        {"steps": 3, "origin": "noon"},
    ],
)
def test_what_is_refused(options, stored, folder, refused):
    refused(path_table, stored, read_new(stored, [str(folder / "wide.csv")]), **options)


def test_pairs_and_partial_targets_are_refused(folder, tmp_path, refused):
    made, _ = learn(folder / "pairs.npz", tmp_path / "pairs")
    fitted = Fitted.read(made.directory, CPU)
    refused(table_of, fitted, folder / "pairs.npz", 3)
    data = {"separator": ":", "covariates": "hour", "targets": "a", "horizon": 2}
    made, _ = learn(folder / "two.csv", tmp_path / "part", data=data)
    fitted = Fitted.read(made.directory, CPU)
    found = table_of(fitted, folder / "two.csv", 2, origin="2024-01-05 20:00")
    assert len(found) == 2 * 4  # all inputs are observed
    refused(table_of, fitted, folder / "two.csv", 3)
    short = pd.DataFrame(series(1), columns=NODES)
    made, _ = learn(folder / "wide.csv", tmp_path / "wide")
    fitted = Fitted.read(made.directory, CPU)
    refused(path_table, fitted, read_table(short, fitted.config.data, piece=True), 2)

"""Fits of events: the command and Python agree, new events, neighbours, refusals, and `tacit check`."""

import json

import numpy as np
import pandas as pd
import pytest

from commands import call
from tacit import LatentGraphForecaster
from tacit.config import AssessmentOptions, DataOptions

OFF = AssessmentOptions(enabled=False)


def made(seed: int = 0, *, next_unit: bool = False) -> pd.DataFrame:
    """Faults, of which 70% cause a stop about a minute later (on the next machine), and doors."""
    rng = np.random.default_rng(seed)
    when, machine = rng.uniform(0, 8 * 86400, size=(2, 500)), rng.integers(1, 6, size=(2, 500))
    followed = rng.random(500) < 0.7
    stops = when[0, followed] + rng.exponential(60, size=followed.sum())
    log = pd.DataFrame({"event": ["fault"] * 500 + ["door"] * 500 + ["stop"] * followed.sum()})
    log["machine"] = [*machine.ravel(), *(machine[0, followed] + next_unit)]
    log["time"] = pd.Timestamp("2026-03-01") + pd.to_timedelta(np.round([*when.ravel(), *stops]), unit="s")
    return log.sort_values("time", ignore_index=True)


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made().to_csv("log.csv", index=False)
    return tmp_path


def test_the_command_and_python_give_the_same(there, capsys):
    assert call("fit", "log.csv", "--events", "--bin", "1min", "--quick", "--out", "run", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert {"acts", "background", "predictor", "observation"} <= {one["option"] for one in printed["choices"]}
    model = LatentGraphForecaster(data=DataOptions(events=True, bin="1min"), assessment=OFF).fit(made())
    edges = pd.read_csv("run/edges.csv").merge(model.edges_, on=["source", "target"])
    assert len(edges) >= 6
    assert edges["exists_x"].to_numpy() == pytest.approx(edges["exists_y"].to_numpy(), abs=1e-5)
    listed = model.listed_edges()
    assert listed[["source", "target", "probability"]].values.tolist() == [["fault", "stop", 1.0]]

    made().assign(event="other").to_csv("other.csv", index=False)
    assert call("predict", "run", "other.csv") == 2
    assert "must have a type of the fit (door, fault, stop)" in capsys.readouterr().err

    # New events have the bins, the types and the columns of the run.
    new = made(1)[:200]
    new.to_csv("new.csv", index=False)
    assert call("predict", "run", "new.csv", "--out", "forecasts.csv") == 0
    forecasts = pd.read_csv("forecasts.csv")
    assert set(forecasts["node"]) == {"door", "fault", "stop"}
    assert forecasts["actual"].sum() > 20
    predicted = model.forecast(new)
    assert predicted["mean"].to_numpy() == pytest.approx(forecasts["mean"].to_numpy(), rel=1e-5)


def test_an_effect_on_neighbours_is_found_with_the_file_of_units(tmp_path):
    units = tmp_path / "units.csv"
    units.write_text("machine,next\n" + "".join(f"{one},{one + 1}\n" for one in range(1, 6)) + "6,\n")
    data = DataOptions(events=True, bin="1min", units=str(units))
    model = LatentGraphForecaster(data=data, assessment=OFF).fit(made(next_unit=True))
    assert model.listed_edges()[["source", "target"]].values.tolist() == [["fault", "stop"]]
    alone = LatentGraphForecaster(data=DataOptions(events=True, bin="1min"), assessment=OFF).fit(made(next_unit=True))
    assert len(alone.listed_edges()) == 0


def test_a_check_reads_events_and_refuses_them_without_the_option(there, capsys):
    assert call("check", "log.csv", "--events", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["nodes"], found["series"], found["findings"]) == (["door", "fault", "stop"], 5, [])
    assert call("check", "log.csv", "--events") == 0
    assert "nothing was found" not in capsys.readouterr().out
    assert call("check", "log.csv") == 2
    assert "--events" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--bin", "1min"], "bin"),
        (["--events", "--bin", "60D"], "bin"),
        (["--events", "--bin", "soon"], "bin"),
        (["--events", "--bin", "4D"], "a shorter bin (--bin)"),
        (["--events", "--set", "data.node=colour"], "node"),
        (["--events", "--set", "data.layout=wide"], "layout"),
        (["--events", "--calendar", "hour"], "calendar"),
        (["--events", "--units", "missing.csv"], "missing.csv"),
    ],
)
def test_refusals(there, capsys, options, named):
    assert call("fit", "log.csv", *options, "--out", "run") == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("tacit: ")
    assert named in error


def test_several_files_are_refused(there, capsys):
    made(1).to_csv("other.csv", index=False)
    assert call("fit", "log.csv", "other.csv", "--events", "--out", "run") == 2
    assert "one file" in capsys.readouterr().err


def test_acts_is_chosen_only_where_it_is_not_learned(there, capsys):
    options = ("--events", "--bin", "1min", "--quick", "--set", "training.epochs=2", "--out", "run", "--json")
    assert call("fit", "log.csv", *options) == 0
    assert "acts" not in {one["option"] for one in json.loads(capsys.readouterr().out)["choices"]}

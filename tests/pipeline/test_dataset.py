"""What is read: parts, units, rules; and what is refused, by name."""

import numpy as np
import pandas as pd
import pytest
import torch

from own_files import NODES, plan_of, quick, series
from tacit.pipeline import Dataset, read_source
from tacit.predictors import Sizes


def read(path, **sections):
    """The data of a file in its parts."""
    config = quick(path, **sections)
    return Dataset.prepare(read_source(str(path), config.data), config.data, seed=0, scaled=True)


def rules_of(path, **sections):
    return plan_of(path, **sections).rules


def test_wide_long_and_parquet_are_one_problem(folder):
    problems = [read(folder / name) for name in ("wide.csv", "wide.parquet", "long.csv")]
    for problem in problems:
        assert problem.nodes == NODES
        assert torch.equal(problem.split.train.inputs, problems[0].split.train.inputs)
    values = series()
    rows = round(0.7 * (len(values) - 2)) + 2  # up to the last training target
    scaling = problems[0].preparation.scaling
    assert scaling.mean[:, 0] == pytest.approx(values[:rows].mean(0))
    assert scaling.deviation[:, 0] == pytest.approx(values[:rows].std(0))


def test_covariates_targets_and_horizon(folder):
    sections = {"separator": ":", "covariates": "hour", "targets": "b", "horizon": 3}
    problem = read(folder / "two.csv", data=sections)
    sizes = problem.preparation.sizes
    assert (sizes.num_nodes, sizes.window, sizes.num_features, sizes.out_channels) == (4, 2, 2, 1)
    assert sizes.in_channels == 2 * 2 + sizes.known
    assert sizes.known == 2  # the hour of the target and the one before
    assert problem.preparation.target_names == ("b",)
    assert problem.preparation.scaling.feature_names == ("b", "a")
    first = problem.preparation.to_units(problem.split.train.targets[:1], problem.split.train[:1])[0, :, 0]
    assert first.numpy() == pytest.approx(2 * series()[1 + 3], rel=1e-5)  # the last row of the window is row 1


def test_missing_values_are_flagged_and_masked(folder):
    problem = read(folder / "holes.csv")
    assert problem.preparation.scaling.flagged
    assert 0 < float((problem.split.train.observed == 0).float().mean()) < 0.2


def test_pairs_are_scaled_by_the_training_part(folder):
    problem = read(folder / "pairs.npz", data={"shuffle": False})
    x = np.load(folder / "pairs.npz")["x"]
    assert problem.preparation.sizes == Sizes(num_nodes=4, window=1, num_features=2, out_channels=1)
    assert problem.nodes == NODES
    assert [len(part) for part in vars(problem.split).values()] == [84, 12, 24]
    assert problem.preparation.input_units.mean == pytest.approx(x[:84].mean((0, 1)), abs=1e-6)
    assert problem.preparation.input_units.deviation == pytest.approx(x[:84].std((0, 1)), abs=1e-6)
    assert problem.split.test.inputs.numpy() == pytest.approx(
        (x[96:] - x[:84].mean((0, 1))) / x[:84].std((0, 1)), abs=1e-5
    )


def test_nearest_others_are_the_candidates(folder, tmp_path):
    """Four places on a line; with one nearest each, the two in the middle read each other."""
    (tmp_path / "places.csv").write_text("node,x,y\nnorth,0,0\neast,2,0\nsouth,3,0\nwest,9,0\n")
    graph = {"coordinates": str(tmp_path / "places.csv"), "k_nearest": 1, "metric": "euclidean"}
    plan = plan_of(folder / "wide.csv", graph=graph)
    expected = torch.zeros(4, 4, dtype=torch.bool)
    for target, source in ((0, 1), (1, 2), (2, 1), (3, 2)):
        expected[target, source] = True
    assert torch.equal(plan.rules.allowed, expected)
    assert plan.coordinates.tolist()[3] == [9, 0]
    both = rules_of(folder / "wide.csv", graph=graph | {"symmetric": True})
    assert torch.equal(both.allowed, expected | expected.mT)


def frame(rows=40, **columns):
    return pd.DataFrame({"time": range(rows), "a": np.arange(rows) % 3, "b": np.arange(rows) ** 2 % 7, **columns})


@pytest.mark.parametrize(
    ("table", "sections"),
    [
        (frame().drop(columns="b"), {}),
        (frame(3), {}),
        (frame(2), {}),
        (frame(c=1), {"data": {"columns": ["a", "c"]}}),
        (frame(c=np.nan), {"data": {"columns": ["a", "c"]}}),
        (frame(c=[1, 2] + [np.nan] * 38), {}),
        (frame(), {"data": {"targets": "z"}}),
    ],
)
def test_tables_that_cannot_be_learned_from(table, sections, tmp_path, refused):
    path = tmp_path / "table.csv"
    table.to_csv(path, index=False)
    refused(read, path, **sections)


@pytest.mark.parametrize(
    "sections",
    [
        {"data": {"window": 3}},
        {"data": {"horizon": 2}},
        {"data": {"covariates": "a"}},
        {"data": {"train_fraction": 0.95}},
        {"graph": {"k_nearest": 1}},
    ],
)
def test_choices_that_pairs_have_no_use_for(sections, folder, refused):
    refused(plan_of, folder / "pairs.npz", **sections)


def test_pairs_without_known_targets(tmp_path, refused):
    x, y = np.random.default_rng(0).normal(size=(2, 40, 3, 1))
    y[32:] = np.nan
    np.savez(tmp_path / "a.npz", x=x, y=y)
    refused(read, tmp_path / "a.npz", data={"shuffle": False})
    y[32:] = 0
    y[:28, 1] = np.nan
    np.savez(tmp_path / "b.npz", x=x, y=y)
    refused(read, tmp_path / "b.npz", data={"shuffle": False})


def test_shipped_data_is_no_table(tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    refused(read, "beijing-air", data={"separator": ":"})
    refused(read, "beijing")


def test_rules_from_the_file_and_from_the_config_add_up(folder, tmp_path, refused):
    (tmp_path / "rules.csv").write_text("source,target,kind,probability\nnorth,east,forbidden,\neast,west,prior,0.9\n")
    graph = {"edges": str(tmp_path / "rules.csv"), "required": [["north", "south"]], "forbidden": [["west", "east"]]}
    graph["priors"] = [["west", "north", 0.2]]
    rules = rules_of(folder / "wide.csv", graph=graph)
    built = rules.build(generator=torch.Generator().manual_seed(0)).edge_probs
    assert built[1, 0] == built[1, 3] == 0
    assert built[2, 0] == 1
    prior = rules.prior(1.0)
    assert prior.probs[3, 1] == pytest.approx(0.9)
    assert prior.probs[0, 3] == pytest.approx(0.2)
    refused(rules_of, folder / "wide.csv", graph=graph | {"required": [["north", "east"]]})
    refused(rules_of, folder / "wide.csv", graph={"forbidden": [["nort", "east"]]})


def test_two_answers_to_which_edges_can_be(folder, tmp_path, refused):
    (tmp_path / "places.csv").write_text("node,x,y\nnorth,0,0\neast,2,0\nsouth,3,0\nwest,9,0\n")
    (tmp_path / "rules.csv").write_text("source,target,kind\nnorth,east,candidate\n")
    graph = {"coordinates": str(tmp_path / "places.csv"), "k_nearest": 1, "edges": str(tmp_path / "rules.csv")}
    refused(rules_of, folder / "wide.csv", graph=graph)


def test_pairs_without_any_node(tmp_path, refused):
    np.savez(tmp_path / "p.npz", x=np.zeros((30, 0, 1)), y=np.zeros((30, 0, 1)))
    refused(read, tmp_path / "p.npz")

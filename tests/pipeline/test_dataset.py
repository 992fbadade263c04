"""What is read: parts, units, rules; and what is refused, by name."""

import numpy as np
import pandas as pd
import pytest
import torch

from own_files import NODES, plan_of, quick, series
from tacit.errors import InputError
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
    ("table", "sections", "message"),
    [
        (frame().drop(columns="b"), {}, "a graph must have two nodes or more, got one, 'a'; add others"),
        (
            frame(3),
            {},
            r"fractions \(0.7, 0.1\) must leave at least one pair for each of training, validation and test",
        ),
        (frame(2), {}, "the series must have at least 3 rows for a window of 2 and a horizon of 1, got 2"),
        (frame(c=1), {"data": {"columns": ["a", "c"]}}, "node 'c' is constant"),
        (frame(c=np.nan), {"data": {"columns": ["a", "c"]}}, "node 'c' is missing at every time"),
        (frame(c=[1, 2] + [np.nan] * 38), {}, "node 'c' requires 2 known targets or more in the training part, got 0"),
        (frame(), {"data": {"targets": "z"}}, "targets names 'z', which is not a variable of the series"),
    ],
)
def test_tables_that_cannot_be_learned_from(table, sections, message, tmp_path):
    path = tmp_path / "table.csv"
    table.to_csv(path, index=False)
    with pytest.raises(InputError, match=f"table.csv: {message}"):
        read(path, **sections)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"data": {"window": 3}}, "window in .data. has no meaning for .*pairs.npz, which has pairs x and y"),
        ({"data": {"horizon": 2}}, "horizon in .data. has no meaning"),
        ({"data": {"covariates": "a"}}, "covariates names 'a', but there are no covariates"),
        ({"data": {"train_fraction": 0.95}}, "must have a sum below 1, got 0.95 and 0.1; lower one"),
        ({"graph": {"k_nearest": 1}}, "nearest in .graph. requires coordinates, and the data has"),
    ],
)
def test_choices_that_pairs_have_no_use_for(sections, message, folder):
    with pytest.raises(InputError, match=message):
        plan_of(folder / "pairs.npz", **sections)


def test_pairs_without_known_targets(tmp_path):
    x, y = np.random.default_rng(0).normal(size=(2, 40, 3, 1))
    y[32:] = np.nan
    np.savez(tmp_path / "a.npz", x=x, y=y)
    with pytest.raises(InputError, match=r"a.npz: no target of the test part is known; pass more rows"):
        read(tmp_path / "a.npz", data={"shuffle": False})
    y[32:] = 0
    y[:28, 1] = np.nan
    np.savez(tmp_path / "b.npz", x=x, y=y)
    with pytest.raises(
        InputError, match=r"b.npz: node '1' requires 2 known targets or more in the training part, got 0"
    ):
        read(tmp_path / "b.npz", data={"shuffle": False})


def test_shipped_data_is_no_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"separator in .data. has no meaning for beijing-air, which is not a table"):
        read("beijing-air", data={"separator": ":"})
    with pytest.raises(InputError, match=r"DATA must be a file \(.csv, .parquet, .npz\) or beijing-air, got 'beijing'"):
        read("beijing")


def test_rules_from_the_file_and_from_the_config_add_up(folder, tmp_path):
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
    with pytest.raises(InputError, match="required and forbidden both name edge 'north -> east'; drop one of them"):
        rules_of(folder / "wide.csv", graph=graph | {"required": [["north", "east"]]})
    with pytest.raises(InputError, match=r"forbidden names unknown node 'nort'; did you mean 'north'\?"):
        rules_of(folder / "wide.csv", graph={"forbidden": [["nort", "east"]]})


def test_two_answers_to_which_edges_can_be(folder, tmp_path):
    (tmp_path / "places.csv").write_text("node,x,y\nnorth,0,0\neast,2,0\nsouth,3,0\nwest,9,0\n")
    (tmp_path / "rules.csv").write_text("source,target,kind\nnorth,east,candidate\n")
    graph = {"coordinates": str(tmp_path / "places.csv"), "k_nearest": 1, "edges": str(tmp_path / "rules.csv")}
    with pytest.raises(
        InputError, match=r"nearest in .graph. and candidates in .*rules.csv both define the candidate edges"
    ):
        rules_of(folder / "wide.csv", graph=graph)


def test_pairs_without_any_node(tmp_path):
    np.savez(tmp_path / "p.npz", x=np.zeros((30, 0, 1)), y=np.zeros((30, 0, 1)))
    with pytest.raises(InputError, match=r"p.npz: a graph must have two nodes or more, got none; pass some"):
        read(tmp_path / "p.npz")

"""Studies on data with a known graph: a small folder in the format of the originals, refusals, and honest choices."""

import json

import numpy as np
import pytest
import torch
from benchmarks.studies import STUDIES
from benchmarks.studies.__main__ import main
from benchmarks.studies.dream4 import DREAM4, SETTINGS
from benchmarks.studies.known_data import KnownGraph, read_dream4
from benchmarks.studies.known_graphs import BLOCKS, Problem, blockwise_errors, compare, sparse
from benchmarks.studies.lorenz96 import GROUPS, Lorenz96, chosen_window

from tacit.data.regression import regress, ridge_path
from tacit.data.series import Series
from tacit.errors import InputError
from tacit.experiments import runner
from tacit.experiments.study import Listener, Options

NODES = tuple("abcdef")
EDGES = {(0, 1): 0.8, (1, 2): -0.8, (2, 3): 0.7}  # (target, source): weight


def run_study(name, directory, options, **how):
    runner.run_studies([STUDIES[name]], directory, options, **how)
    return runner.section(STUDIES[name], directory)


def simulated(steps, seed, *, lag=1):
    """A signed VAR on six nodes, two of them alone, that read others ``lag`` steps back."""
    random = np.random.default_rng(seed)
    weights = np.zeros((6, 6))
    for (target, source), weight in EDGES.items():
        weights[target, source] = weight
    values = np.zeros((steps + lag, 6))
    for step in range(lag, steps + lag):
        values[step] = 0.2 * values[step - 1] + weights @ values[step - lag] + 0.5 * random.normal(size=6)
    return values[lag:], weights != 0


@pytest.fixture
def dream4_folder(tmp_path):
    folder = tmp_path / "here" / "genes"
    folder.mkdir(parents=True)
    names = [f"G{number}" for number in range(6)]
    for size in (10, 100):
        lines = ["\t".join(f'"{name}"' for name in ["Time", *names]), ""]
        for experiment in range(5):
            values, adjacency = simulated(9, experiment)
            lines += ["\t".join(map(str, [50.0 * time, *row])) for time, row in enumerate(values)]
        (folder / f"insilico_size{size}_1_timeseries.tsv").write_text("\n".join(lines) + "\n")
        gold = [
            f"{names[source]}\t{names[target]}\t{int(adjacency[target, source])}"
            for source in range(6)
            for target in range(6)
            if source != target
        ]
        (folder / f"insilico_size{size}_1_goldstandard.tsv").write_text("\n".join(gold) + "\n")
    return folder


@pytest.fixture
def lorenz_folder(tmp_path):
    folder = tmp_path / "here" / "lorenz"
    folder.mkdir(parents=True)
    for number, group in enumerate(GROUPS):
        values, adjacency = simulated(60, number)
        np.savez(folder / f"{group}_dataset_1.npz", X_np=values.T, Gref=adjacency | np.eye(6, dtype=bool))
    return folder


@pytest.fixture
def known():
    values, adjacency = simulated(200, 0)
    return KnownGraph((Series(values[:, :, None], NODES),), adjacency)


@pytest.mark.parametrize(("name", "fixture"), [("dream4", "dream4_folder"), ("lorenz96", "lorenz_folder")])
def test_a_study_runs_draws_and_continues_and_keeps_no_path(name, fixture, tmp_path, request, monkeypatch, unchecked):
    monkeypatch.setattr("benchmarks.studies.known_graphs.QUICK_STEPS", 3)
    monkeypatch.setattr("benchmarks.studies.known_graphs.LASSO_PENALTIES", (0.01, 0.1))
    monkeypatch.setattr("benchmarks.studies.lorenz96.GROUPS", GROUPS[:2])
    data = request.getfixturevalue(fixture)
    options = Options(seeds=2, quick=True, data=str(data))
    text = run_study(name, tmp_path / "out", options)
    study = {"dream4": DREAM4(), "lorenz96": Lorenz96()}[name]
    records = runner.read_records(tmp_path / "out" / name)
    assert set(records) == {task.name for task in study.tasks()}
    assert {values["options"]["data"] for values in records.values()} == {data.name}
    assert str(tmp_path) not in json.dumps(records)
    assert "cut short (--quick)" in text
    for method in ("mean of the starts", "ridge", "lasso"):
        assert f"| {method} |" in text
    for table in study.tables(records):
        assert all(len(row) == len(table.columns) for row in table.rows)
    assert (tmp_path / "out" / name / "probabilities.png").is_file()
    paths = sorted((tmp_path / "out" / name / "records").iterdir())
    times = [path.stat().st_mtime_ns for path in paths]
    run_study(name, tmp_path / "out", options)
    assert [path.stat().st_mtime_ns for path in paths] == times


def test_data_is_asked_for_and_has_to_be_there(tmp_path, capsys):
    for arguments, message in (
        (
            [],
            "dream4 requires the folder of DREAM4, with insilico_size10_1_timeseries.tsv and the like, "
            "got no data; pass",
        ),
        (["--data", str(tmp_path / "no")], "data must be an existing file or folder, got"),
        (["--data", str(tmp_path)], "insilico_size10_1_timeseries.tsv"),
    ):
        with pytest.raises(SystemExit) as stop:
            main(["dream4", "--out", str(tmp_path / "out"), *arguments])
        assert stop.value.code == 2
        assert message in capsys.readouterr().err
    with pytest.raises(
        InputError, match=r"data must be files F_10_T_250_dataset_\*.npz, got none in .*; correct --data"
    ):
        run_study("lorenz96", tmp_path / "out", Options(quick=True, data=str(tmp_path)))


def test_all_pairs_in_order_and_none_across_experiments(dream4_folder):
    known = read_dream4(dream4_folder, 10, 1)
    problem = Problem.of(known, 2)
    assert len(problem.pairs) == 5 * (9 - 2)
    raw = np.stack([series.values[:, :, 0] for series in known.experiments])  # (experiment, time, node)
    targets = problem.pairs.targets.view(5, 7, 6).numpy()
    scale = np.polyfit(raw[:, 2:, 0].ravel(), targets[:, :, 0].ravel(), 1)  # one line for all pairs of a node
    assert np.allclose(np.polyval(scale, raw[:, 2:, 0]), targets[:, :, 0], atol=1e-5)
    newest = problem.newest(1).pairs
    assert torch.equal(newest.inputs, problem.pairs.inputs[..., 1:])
    assert np.allclose(np.polyval(scale, raw[:, 1:-1, 0]), newest.inputs.view(5, 7, 6)[..., 0], atol=1e-5)


def test_left_out_blocks_as_a_loop(known):
    pairs = Problem.of(known, 1).pairs[:23]
    expected, start = 0.0, 0
    for size in (5, 5, 5, 4, 4):
        out = list(range(start, start + size))
        rest = [row for row in range(23) if row not in out]
        found = regress(pairs[torch.tensor(rest)], pairs[torch.tensor(out)], ridge_path, [0.3])
        expected += float(((found.predict(pairs.inputs[out]) - pairs.targets[out]) ** 2).sum())
        start += size
    assert BLOCKS == 5
    assert blockwise_errors(pairs, ridge_path, [10.0, 0.3])[1].item() == pytest.approx(expected, rel=1e-5)


def test_lags_are_those_that_the_system_reads():
    for lag in (1, 3):
        values, adjacency = simulated(600, 1, lag=lag)
        assert chosen_window(KnownGraph((Series(values[:, :, None], NODES),), adjacency)) == lag


def test_the_prior_of_a_rule(known):
    pairs = Problem.of(known, 3).pairs
    free, priced = sparse(1.5, weights_cost=False)(0.5, pairs), sparse(1.5)(0.5, pairs)
    assert free.probs.item() == pytest.approx(0.3)  # 1.5 of 5 others
    assert torch.logit(priced.probs).item() == pytest.approx(
        np.log(0.3 / 0.7) - 1.5 * np.log(len(pairs)), rel=1e-5
    )  # three lags
    assert free.weight == priced.weight
    assert SETTINGS["size10-free"].prior(0.5, pairs).probs.item() == pytest.approx(1 / 5)


@pytest.mark.usefixtures("unchecked")
def test_the_method_finds_a_plain_graph(known, monkeypatch):
    monkeypatch.setattr("benchmarks.studies.known_graphs.QUICK_STEPS", 80)
    monkeypatch.setattr("benchmarks.studies.known_graphs.RATE", 0.2)
    monkeypatch.setattr("benchmarks.studies.known_graphs.LASSO_PENALTIES", (0.01, 0.1))
    found = compare(Problem.of(known, 1), sparse(1), Options(seeds=3, quick=True), Listener(), most_seeds=2)
    assert len(found["starts"]) == 2
    assert found["mean_of_starts"]["f1"] == found["mean_of_starts"]["auroc"] == 1.0
    assert found["num_edges"] == len(found["probs_on_edges"]) == 3
    assert min(found["probs_on_edges"]) > 0.7
    assert len(found["probs_elsewhere"]) == 27
    assert found["probs_elsewhere"] == sorted(found["probs_elsewhere"], reverse=True)
    assert found["expected_edges"] == pytest.approx(sum(found["probs_on_edges"] + found["probs_elsewhere"]), abs=1e-2)

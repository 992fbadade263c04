"""Studies on data with a known graph: a small folder in the format of the originals, refusals, and honest choices."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.studies import STUDIES
from benchmarks.studies.__main__ import main
from benchmarks.studies.dream4 import DREAM4, SETTINGS
from benchmarks.studies.edge_lags import LAGS, NODES, VARIANTS, draw_weights, simulate
from benchmarks.studies.known_data import KnownGraph, read_dream4, read_lorenz96_var
from benchmarks.studies.known_graphs import BLOCKS, Problem, blockwise_errors, compare, sparse
from benchmarks.studies.lorenz96 import GROUPS, Lorenz96, chosen_window

from tacit.data import Windows
from tacit.data.regression import regress, ridge_path
from tacit.data.series import Series
from tacit.errors import InputError
from tacit.experiments import runner
from tacit.experiments.study import Listener, Options

NAMES = tuple("abcdef")
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
    return KnownGraph((Series(values[:, :, None], NAMES),), adjacency)


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
    assert set(records) == set(study.tasks())
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
        assert chosen_window(KnownGraph((Series(values[:, :, None], NAMES),), adjacency)) == lag


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


# ---------------------------------------------------------------- known data


SHARED = Path(__file__).parents[2] / ".." / "shared" / "data"


def small_dream4(folder, gold="G1\tG2\t1\nG2\tG1\t0\n"):
    """Two experiments of three times on the names of a network of ten."""
    (folder / "insilico_size10_1_timeseries.tsv").write_text(
        '"Time"\t"G1"\t"G2"\n\n0.0\t.1\t.2\n50.0\t.2\t.2\n100.0\t.3\t.2\n\n0.0\t.4\t.5\n50.0\t.6\t.7\n100.0\t.8\t.9\n'
    )
    (folder / "insilico_size10_1_goldstandard.tsv").write_text(gold)


def test_experiments_are_told_apart(tmp_path):
    small_dream4(tmp_path)
    known = read_dream4(tmp_path, 10, 1)
    assert known.nodes == ("G1", "G2")
    assert [len(series) for series in known.experiments] == [3, 3]
    assert known.experiments[1].values[:, 1, 0].tolist() == [0.5, 0.7, 0.9]
    assert known.experiments[1].times.tolist() == [0, 50, 100]
    assert known.adjacency.tolist() == [[False, False], [True, False]]  # G2 (row 1) receives from G1
    new = Windows(2, 1, fractions=(0.4, 0.3)).apply(known.experiments, _scaling(known))
    assert len(new.pairs) == 4  # two windows in each, none across


def _scaling(known):
    return Windows(1, 1, fractions=(0.7, 0.1)).prepare([known.experiments[1]] * 4).scaling


def test_refusals(tmp_path, unchecked, refused):
    small_dream4(tmp_path, gold="G1\tG2\t1\nG2\tG9\t1\n")
    np.savez(tmp_path / "no_graph.npz", X_np=np.ones((2, 5)))
    np.savez(tmp_path / "shape.npz", X_np=np.ones((2, 5)), Gref=np.ones((3, 3)))
    refused(read_dream4, tmp_path, 20, 1)
    refused(read_dream4, tmp_path, 10, 6)
    refused(read_dream4, tmp_path, 100, 2)
    refused(read_dream4, tmp_path, 10, 1)
    refused(read_lorenz96_var, tmp_path / "no_graph.npz")
    refused(read_lorenz96_var, tmp_path / "shape.npz")


@pytest.mark.parametrize(
    ("size", "experiments", "edges"), [(10, 5, [15, 16, 15, 13, 12]), (100, 10, [176, 249, 195, 211, 193])]
)
def test_dream4(size, experiments, edges):
    folder = SHARED / "dream4"
    if not folder.is_dir():
        pytest.skip("the DREAM4 files are not here")
    for number, count in enumerate(edges, start=1):
        known = read_dream4(folder, size, number)
        assert len(known.experiments) == experiments
        assert all(series.values.shape == (21, size, 1) for series in known.experiments)
        assert all(series.times.tolist() == list(range(0, 1001, 50)) for series in known.experiments)
        assert known.adjacency.sum() == count
        assert not known.adjacency.diagonal().any()
    made = Windows(1).prepare(known.experiments)
    assert made.split.train.inputs.shape == (20 * {5: 3, 10: 7}[experiments], size, 1)


def test_dream4_edges_point_the_right_way():
    folder = SHARED / "dream4"
    if not folder.is_dir():
        pytest.skip("the DREAM4 files are not here")
    lines = (folder / "insilico_size10_1_goldstandard.tsv").read_text().split()
    source, target = lines[0], lines[1]
    known = read_dream4(folder, 10, 1)
    assert lines[2] == "1"
    assert known.adjacency[known.nodes.index(target), known.nodes.index(source)]
    assert not known.adjacency[known.nodes.index(source), known.nodes.index(target)]


@pytest.mark.parametrize(
    ("name", "length", "edges"), [("F_10_T_250_dataset_1", 250, 30), ("S_30_T_500_dataset_1", 500, 20)]
)
def test_lorenz96_and_var(name, length, edges):
    path = SHARED / "lorenz96_var" / f"{name}.npz"
    if not path.is_file():
        pytest.skip("the Lorenz-96 and VAR files are not here")
    known = read_lorenz96_var(path)
    (series,) = known.experiments
    assert series.values.shape == (length, 10, 1)
    assert known.adjacency.diagonal().all()
    assert (known.adjacency & ~np.eye(10, dtype=bool)).sum() == edges
    if name.startswith("F"):  # x_i' = (x_{i+1} - x_{i-2}) x_{i-1} - x_i + F: node 2 reads 0, 1, 2 and 3
        assert np.flatnonzero(known.adjacency[2]).tolist() == [0, 1, 2, 3]


# ---------------------------------------------------------------- the systems of the study of lags


@pytest.mark.parametrize("name", VARIANTS)
def test_every_edge_has_its_lags_and_one_is_the_largest(name):
    variant, rng = VARIANTS[name], np.random.default_rng(0)
    weights = np.abs(draw_weights(variant, rng))
    edges = weights.max(0) > 0
    assert edges.any()
    assert not edges.diagonal().any()
    assert set((weights > 0).sum(0)[edges]) == {variant.lags}
    np.testing.assert_allclose(weights.max(0)[edges], variant.size)
    if variant.lags == 2:
        where = [np.flatnonzero(weights[:, i, j]) for i, j in np.argwhere(edges)]
        assert all(second == first + 1 for first, second in where)


def test_a_series_follows_its_weights():
    """Least squares on all lags gives the weights back."""
    variant, rng = VARIANTS["one-lag"], np.random.default_rng(1)
    weights = draw_weights(variant, rng)
    values = simulate(variant, weights, 5000, rng)
    design = np.concatenate([values[LAGS - lag : -lag] for lag in range(1, LAGS + 1)], 1)
    found = np.linalg.lstsq(design, values[LAGS:], rcond=None)[0].reshape(LAGS, NODES, NODES).transpose(0, 2, 1)
    found[0] -= variant.own * np.eye(NODES)
    np.testing.assert_allclose(found, weights, atol=0.08)

from pathlib import Path

import numpy as np
import pytest
from benchmarks.studies.known_data import read_dream4, read_lorenz96_var

from tacit.data import Windows

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

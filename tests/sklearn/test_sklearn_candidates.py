"""The estimator over a table of candidates: the answers of the matrix, tables of edges, and what is refused."""

import numpy as np
import pytest
import torch

from tacit import LatentGraphRegressor
from tacit.graph import CandidateEdges
from tiny_fits import regressor

QUICK = {"training": {"epochs": 2}, "observation": "auto", "point_graphs": 50}


def ring(nodes, pairs=60):
    """Each node reads the next."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(pairs, nodes))
    return x, x + 2 * np.roll(x, -1, 1) + 0.1 * rng.normal(size=x.shape)


def test_correlated_candidates_hold_the_truth_and_nothing_else():
    x, y = ring(6)
    model = regressor(**QUICK, graph={"k_correlated": 1, "layout": "table"}).fit(x, y)
    assert (model.edge_probs_ > 0).tolist() == np.roll(np.eye(6), 1, 1).astype(bool).tolist()


def test_many_nodes_have_a_table_of_edges_and_no_matrix(tmp_path, refused):
    x, y = ring(500, pairs=30)
    model = regressor(**QUICK, graph={"k_correlated": 2}, predictor="filter").fit(x, y)
    edges = model.edges_
    assert list(edges.columns) == ["source", "target", "probability"]
    assert len(edges) == 1000
    assert edges["probability"].is_monotonic_decreasing
    refused(lambda: model.edge_probs_)
    refused(model.estimate_std_errors, x, y)
    refused(model.identify, x, y)
    refused(lambda: model.exists_)
    candidates = model.graph_.candidates
    exists = torch.where(candidates.used & (candidates.sources == (candidates.row_node[:, None] + 1) % 500), 0.99, 0.02)
    exists = model.graph_.vector(exists)
    model._fitted.edges = model._fitted.edges.updated(exists=exists, effect=0.5 * exists)
    model._fitted.record = model.record_.model_copy(update={"evidence": {"keep": 0.1}})
    edges, listed = model.edges_, model.listed_edges()
    assert list(edges.columns) == ["source", "target", "exists", "probability", "effect"]
    assert edges["probability"].isna().equals(edges["exists"] < 0.1)
    assert len(listed) == int((exists > 0.5).sum()) > 400
    assert ((listed["source"].astype(int) - listed["target"].astype(int)) % 500 == 1).all()
    model.save(tmp_path / "model")
    read = LatentGraphRegressor.load(tmp_path / "model")
    assert read.edges_.equals(edges)
    assert np.array_equal(read.predict(x[:3]), model.predict(x[:3]))


@pytest.mark.parametrize(
    "options",
    [
        {"graph": {"layout": "table"}},
        {"graph": {"k_correlated": 1}, "candidates": [(0, 1)]},
        {"graph": {"k_correlated": 4}},
        {"graph": {"layout": "table", "k_correlated": 1, "symmetric": True}},
        {"candidates": np.ones((4, 4))},
        {"candidates": 3},
        {
            "graph": {"k_correlated": 1},
            "candidates": CandidateEdges.from_edges(torch.tensor([0]), torch.tensor([1]), num_nodes=4),
        },
        {"candidates": CandidateEdges.from_edges(torch.tensor([0]), torch.tensor([1]), num_nodes=3)},
    ],
)
def test_wrong_choices(options, refused):
    refused(regressor(**QUICK, **options).fit, *ring(4))


def test_candidates_by_name_mask_and_table_are_the_same():
    x, y = ring(4)
    mask = np.roll(np.eye(4), 1, 1).astype(bool)  # true at [target, source]
    target, source = mask.nonzero()
    table = CandidateEdges.from_edges(torch.tensor(source), torch.tensor(target), num_nodes=4)
    named = [(str(j), str(i)) for i, j in zip(target, source, strict=True)]
    found = [regressor(**QUICK, candidates=given).fit(x, y).edge_probs_ for given in (mask, table, named)]
    assert (found[0] > 0).tolist() == mask.tolist()
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])

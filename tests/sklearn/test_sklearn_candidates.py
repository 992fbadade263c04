"""The estimator over a table of candidates: the answers of the matrix, tables of edges, and what is refused."""

import numpy as np
import pytest
import torch

from tacit import LatentGraphRegressor
from tacit.config import PredictorOptions
from tacit.errors import InputError
from tacit.graph import CandidateEdges
from tacit.graph import memory as footprint
from tiny_fits import regressor

QUICK = {"training": {"epochs": 2}, "observation": "auto", "point_graphs": 50}


def ring(nodes, pairs=60):
    """Each node reads the next."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(pairs, nodes))
    return x, x + 2 * np.roll(x, -1, 1) + 0.1 * rng.normal(size=x.shape)


@pytest.mark.parametrize("predictor", ["filter", "convolution"])
def test_every_pair_a_candidate_gives_the_answer_of_the_matrix(predictor):
    x, y = ring(4)
    every = [(source, target) for source in range(4) for target in range(4)]
    options = {"candidates": every, "density": 0.3, "predictor": predictor}
    if predictor == "filter":  # a regression on the candidates is not that on all pairs
        options["predictor"] = PredictorOptions(kind="filter", warm_start=False)
    rules = {"self_loops": True, "required": [(0, 2)], "prior_weight": 0.01}
    matrix, table = (
        regressor(**QUICK, **options, graph={**rules, "layout": layout}).fit(x, y) for layout in ("matrix", "table")
    )
    assert table.edge_probs_ == pytest.approx(matrix.edge_probs_, abs=1e-6)
    assert table.predict(x) == pytest.approx(matrix.predict(x), abs=1e-4)
    assert table.edge_probs_[2, 0] == 1
    table.estimate_std_errors(x, y, num_resamples=8)
    assert table.edge_std_errors_.shape == (4, 4)


def test_correlated_candidates_hold_the_truth_and_nothing_else():
    x, y = ring(6)
    model = regressor(**QUICK, graph={"k_correlated": 1, "layout": "table"}).fit(x, y)
    assert (model.edge_probs_ > 0).tolist() == np.roll(np.eye(6), 1, 1).astype(bool).tolist()


def test_many_nodes_have_a_table_of_edges_and_no_matrix(tmp_path):
    x, y = ring(500, pairs=30)
    model = regressor(**QUICK, graph={"k_correlated": 2}, predictor="filter").fit(x, y)
    edges = model.edges_
    assert list(edges.columns) == ["source", "target", "probability"]
    assert len(edges) == 1000
    assert edges["probability"].is_monotonic_decreasing
    asked = "requires at most 400 nodes, for which all pairs are kept, got 500; use edges_"
    for ask in (
        lambda: model.edge_probs_,
        lambda: model.estimate_std_errors(x, y),
        lambda: model.identify(x, y),
        lambda: model.exists_,
    ):
        with pytest.raises(InputError, match=asked):
            ask()
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
    ("options", "message"),
    [
        ({"graph": {"layout": "table"}}, "layout 'table' requires candidates, got none; name some"),
        (
            {"graph": {"k_correlated": 1}, "candidates": [(0, 1)]},
            r"correlated in \[graph\] and candidates in \[graph\] both define the candidate edges; keep one",
        ),
        ({"graph": {"k_correlated": 4}}, r"correlated in \[graph\] must be below the number of nodes, 4, got 4"),
        (
            {"graph": {"layout": "table", "k_correlated": 1, "symmetric": True}},
            "requires directed edges, and symmetric is set",
        ),
        (
            {"candidates": np.ones((4, 4))},
            "candidates must be a mask of booleans of shape .4, 4., got torch.float64 of .4, 4.",
        ),
        ({"candidates": 3}, "candidates must be edges as .source, target., got 3"),
        (
            {
                "graph": {"k_correlated": 1},
                "candidates": CandidateEdges.from_edges(torch.tensor([0]), torch.tensor([1]), num_nodes=4),
            },
            r"correlated in \[graph\] and the table of candidates both define the candidate edges",
        ),
        (
            {"candidates": CandidateEdges.from_edges(torch.tensor([0]), torch.tensor([1]), num_nodes=3)},
            "candidates must be a table of 4 nodes, got one of 3",
        ),
    ],
)
def test_wrong_choices(options, message):
    with pytest.raises(InputError, match=message):
        regressor(**QUICK, **options).fit(*ring(4))


def test_what_memory_cannot_hold_is_refused(monkeypatch):
    monkeypatch.setattr(footprint, "free_bytes", lambda _device: 1000)
    with pytest.raises(
        InputError, match="a fit over all pairs of 4 nodes requires about 1 MB of memory, but 1 MB is free"
    ):
        regressor(**QUICK).fit(*ring(4))


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

"""Warm starts over a table: with all nodes as candidates those of the matrix, with some the regressions on these."""

from importlib import import_module

import pytest
import torch

from tacit.data import Pairs, ridge_regression
from tacit.graph import CandidateEdges
from tacit.local import edge_start, filter_start, is_affordable, local_ridge, start_ridge
from tacit.local.starts import regression_lags
from tacit.predictors import GraphFilter

module = import_module("tacit.local.ridge")
ridge_module = import_module("tacit.data.regression")
NODES, WINDOW = 5, 2


def all_slots(num_nodes):
    return CandidateEdges.from_mask(~torch.eye(num_nodes, dtype=torch.bool))


def some_pairs(rng, *, missing=False, channels=1):
    inputs = torch.randn(80, NODES, 2 * WINDOW, generator=rng).double() * 3 + 1
    weights = torch.randn(NODES, 2 * WINDOW, NODES, channels, generator=rng).double()
    targets = torch.einsum("bjf,jfic->bic", inputs, weights) + torch.randn(80, NODES, channels, generator=rng)
    if missing:
        targets[torch.rand(targets.shape, generator=rng) < 0.2] = torch.nan
    return Pairs.with_missing(inputs, targets) if missing else Pairs(inputs, targets)


@pytest.mark.parametrize("block", [None, 1, 2**23], ids=["solved once", "a node at a time", "together"])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("missing", [False, True])
def test_with_all_candidates_it_is_the_regression_on_all_nodes(rng, missing, channels, block, monkeypatch):
    if block is not None:
        monkeypatch.setattr(module, "BLOCK_NUMBERS", block)
        monkeypatch.setattr(module, "_is_complete", lambda _: False)
    pairs, candidates = some_pairs(rng, missing=missing, channels=channels), all_slots(NODES)
    found, wanted = local_ridge(pairs[:60], pairs[60:], candidates), ridge_regression(pairs[:60], pairs[60:])
    assert found.penalty == wanted.penalty
    nodes = torch.arange(NODES)
    torch.testing.assert_close(found.own, wanted.coefficients[nodes, nodes], rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(
        found.edges, wanted.coefficients[candidates.row_node[:, None], candidates.sources], rtol=1e-7, atol=1e-9
    )
    torch.testing.assert_close(found.intercepts, wanted.intercepts, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(found.sigmas, wanted.sigmas, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(
        found.edge_scores, wanted.edge_scores[candidates.row_node[:, None], candidates.sources], rtol=1e-7, atol=1e-9
    )


def test_with_some_candidates_it_is_least_squares_on_these(rng):
    """A penalty of next to nothing, a hub with two rows, a self-loop that is left out, a node without candidates."""
    pairs = some_pairs(rng)
    source, target = torch.tensor([1, 2, 3, 4, 3, 2, 0]), torch.tensor([0, 0, 0, 0, 3, 1, 2])
    candidates = CandidateEdges.from_edges(source, target, NODES)
    found = local_ridge(pairs, pairs, candidates, penalties=[1e-12])
    read = {0: [0, 1, 2, 3, 4], 1: [1, 2], 2: [2, 0], 3: [3], 4: [4]}
    dense = torch.zeros(NODES, NODES, 2 * WINDOW, 1, dtype=torch.float64)
    dense[candidates.row_node.repeat_interleave(candidates.used.sum(1)), candidates.sources[candidates.used]] = (
        found.edges[candidates.used]
    )
    for node, sources in read.items():
        design = torch.cat([pairs.inputs[:, sources].flatten(1), torch.ones(80, 1)], 1)
        wanted = torch.linalg.lstsq(design, pairs.targets[:, node]).solution
        own = torch.cat([found.own[node][None], dense[node, sources[1:]]]).flatten(0, 1)
        torch.testing.assert_close(torch.cat([own, found.intercepts[node][None]]), wanted, rtol=1e-5, atol=1e-6)
    assert (found.edges[~candidates.used] == 0).all()
    assert dense[3, 3].abs().max() == 0


def test_slots_that_are_left_out_are_no_candidates(rng):
    pairs, candidates = some_pairs(rng), all_slots(NODES)
    kept = torch.rand(candidates.used.shape, generator=rng) > 0.5
    some = candidates.among(kept)
    source, target = some.edges()
    alone = CandidateEdges.from_edges(source[source != target], target[source != target], NODES)
    found, wanted = (local_ridge(pairs, pairs, one, penalties=[0.1]) for one in (some, alone))
    assert some.sources.shape == candidates.sources.shape
    others = some.used & (some.sources != some.row_node[:, None])
    torch.testing.assert_close(found.edges[others], wanted.edges[alone.used], rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(found.own, wanted.own, rtol=1e-7, atol=1e-9)
    assert (found.edges[~others] == 0).all()


def test_a_filter_starts_where_the_matrix_starts(rng, refused):
    pairs, candidates = some_pairs(rng), all_slots(NODES)
    dense = GraphFilter(NODES, WINDOW, 2).double()
    over_table = GraphFilter(NODES, WINDOW, 2, candidates=candidates).double()
    wanted = filter_start(start_ridge(pairs, dense), dense, jitter=0.1)
    found = filter_start(start_ridge(pairs, over_table, candidates), over_table, jitter=0.1)
    torch.testing.assert_close(found.own, wanted.own, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(found.bias, wanted.bias, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(
        found.edge_weights, wanted.edge_weights[candidates.row_node[:, None], candidates.sources], rtol=1e-7, atol=1e-9
    )
    assert found.jitter == 0.1
    refused(filter_start, start_ridge(pairs, over_table, candidates), GraphFilter(NODES, WINDOW, 2, activation="tanh"))


def test_the_largest_weights_are_high_and_self_loops_out(rng):
    pairs = some_pairs(rng)
    candidates = CandidateEdges.from_edges(torch.tensor([1, 2, 0, 3, 4, 4]), torch.tensor([0, 0, 1, 1, 2, 4]), NODES)
    found = local_ridge(pairs, pairs, candidates)
    probs = edge_start(found, candidates)
    assert sorted(probs[candidates.used].tolist()) == pytest.approx([0.0, 0.03, 0.03, 0.03, 0.03, 0.5])
    assert probs.flatten()[found.edge_scores.argmax()] == 0.5
    assert (probs[~candidates.used] == 0).all()
    many = edge_start(local_ridge(pairs, pairs, all_slots(NODES)), all_slots(NODES))
    assert (many > 0.4).sum() == round(0.15 * NODES * (NODES - 1))


def test_what_would_take_long_is_not_affordable():
    assert is_affordable(all_slots(50), in_channels=12)
    assert not is_affordable(all_slots(300), in_channels=12)
    few = Pairs(torch.zeros(100, 300, 12), torch.zeros(100, 300, 1))
    assert is_affordable(all_slots(300), 12, few)


def test_few_pairs_of_many_columns_are_solved_by_rows(rng, monkeypatch):
    """The solution by rows is that by columns, decomposed or factorised for each penalty."""
    inputs = torch.randn(20, NODES, 12, generator=rng).double()
    pairs = Pairs(inputs, torch.randn(20, NODES, 1, generator=rng).double())
    candidates = CandidateEdges.from_edges(torch.tensor([1, 2, 3]), torch.tensor([0, 0, 1]), NODES)  # up to 36 columns
    padded = Pairs(torch.cat([inputs, inputs]), torch.cat([pairs.targets, pairs.targets]))  # the same regression
    wanted = local_ridge(padded, pairs, candidates)
    for most in (256, 1):
        monkeypatch.setattr(ridge_module, "MOST_DECOMPOSED", most)
        found = local_ridge(pairs, pairs, candidates)
        assert found.penalty == wanted.penalty
        torch.testing.assert_close(found.edges, wanted.edges, rtol=1e-6, atol=1e-8)
        torch.testing.assert_close(found.own, wanted.own, rtol=1e-6, atol=1e-8)


def test_some_nodes_choose_the_penalty_where_matrices_are_large(rng, monkeypatch):
    monkeypatch.setattr(module, "CHOICE_WORK", 1)
    monkeypatch.setattr(module, "FEWEST_CHOOSE", 2)
    pairs = some_pairs(rng)
    candidates = CandidateEdges.from_edges(torch.tensor([1, 2, 0, 3, 4]), torch.tensor([0, 0, 1, 1, 2]), NODES)
    chosen = module.choose_penalty(pairs[:60], pairs[60:], candidates)
    assert chosen.nodes.tolist() == [0, 3]
    alone = local_ridge(pairs[:60], pairs[60:], candidates, penalties=[chosen.penalty])
    torch.testing.assert_close(chosen.sigmas, alone.sigmas[chosen.nodes])
    errors = [
        local_ridge(pairs[:60], pairs[60:], candidates, penalties=[penalty]).sigmas[chosen.nodes]
        for penalty in ridge_module.RIDGE_PENALTIES
    ]
    scale = pairs[:60].targets.std(0, correction=0)[chosen.nodes]
    best = min(range(len(errors)), key=lambda place: (errors[place] / scale).square().sum())
    assert chosen.penalty == ridge_module.RIDGE_PENALTIES[best]


def test_where_a_window_is_long_regressions_read_its_newest_steps(rng):
    pairs = some_pairs(rng)
    candidates = CandidateEdges.from_edges(torch.tensor([1, 2, 0]), torch.tensor([0, 0, 1]), NODES)
    predictor = GraphFilter(NODES, 2 * WINDOW, 1)
    found = start_ridge(pairs, predictor, candidates, lags=1)
    newest = Pairs(pairs.inputs[..., -1:], pairs.targets)
    wanted = start_ridge(newest, GraphFilter(NODES, 1, 1), candidates)
    torch.testing.assert_close(found.own[:, -1:], wanted.own)
    torch.testing.assert_close(found.edges[..., -1:, :], wanted.edges)
    assert not found.own[:, :-1].any()
    assert not found.edges[..., :-1, :].any()


def test_the_steps_that_are_read_are_those_that_take_no_longer_than_allowed(rng, monkeypatch):
    pairs, widest = some_pairs(rng), 3
    candidates = CandidateEdges.from_edges(torch.tensor([1, 2, 0]), torch.tensor([0, 0, 1]), NODES)
    predictor = GraphFilter(NODES, 2 * WINDOW, 1)
    assert regression_lags(predictor, candidates, pairs) == 2 * WINDOW
    monkeypatch.setattr(module, "MOST_WORK", NODES * (2 * widest) ** 3)
    assert regression_lags(predictor, candidates, pairs) == 2
    monkeypatch.setattr(module, "MOST_SIDE", widest)
    assert regression_lags(predictor, candidates, pairs) == 1
    monkeypatch.setattr(module, "MOST_PRODUCTS", 1)
    assert regression_lags(predictor, candidates, pairs) == 0

"""Warm starts over a table: with all nodes as candidates those of the matrix, with some the regressions on these."""

from importlib import import_module

import pytest
import torch

from tacit.data import Pairs
from tacit.data.ridge import ridge_regression
from tacit.errors import InputError
from tacit.graph import Slots
from tacit.predictors import GraphFilter
from tacit.training import (
    filter_start,
    is_affordable,
    local_ridge,
    table_edge_start,
    table_filter_start,
    table_ridge,
)

module = import_module("tacit.training.local_ridge")  # the function has the name of its file
ridge_module = import_module("tacit.data.ridge")
NODES, WINDOW = 5, 2


def all_slots(num_nodes):
    return Slots.from_mask(~torch.eye(num_nodes, dtype=torch.bool))


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
    pairs, slots = some_pairs(rng, missing=missing, channels=channels), all_slots(NODES)
    found, wanted = local_ridge(pairs[:60], pairs[60:], slots), ridge_regression(pairs[:60], pairs[60:])
    assert found.penalty == wanted.penalty
    nodes = torch.arange(NODES)
    torch.testing.assert_close(found.own, wanted.coefficients[nodes, nodes], rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(
        found.edges, wanted.coefficients[slots.row_node[:, None], slots.senders], rtol=1e-7, atol=1e-9
    )
    torch.testing.assert_close(found.intercepts, wanted.intercepts, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(found.sigmas, wanted.sigmas, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(
        found.edge_scores, wanted.edge_scores[slots.row_node[:, None], slots.senders], rtol=1e-7, atol=1e-9
    )


def test_with_some_candidates_it_is_least_squares_on_these(rng):
    """A penalty of next to nothing, a hub with two rows, a self-loop that is left out, a node without candidates."""
    pairs = some_pairs(rng)
    source, target = torch.tensor([1, 2, 3, 4, 3, 2, 0]), torch.tensor([0, 0, 0, 0, 3, 1, 2])
    slots = Slots.from_edges(source, target, NODES)
    found = local_ridge(pairs, pairs, slots, penalties=[1e-12])
    read = {0: [0, 1, 2, 3, 4], 1: [1, 2], 2: [2, 0], 3: [3], 4: [4]}
    dense = torch.zeros(NODES, NODES, 2 * WINDOW, 1, dtype=torch.float64)
    dense[slots.row_node.repeat_interleave(slots.used.sum(1)), slots.senders[slots.used]] = found.edges[slots.used]
    for node, senders in read.items():
        design = torch.cat([pairs.inputs[:, senders].flatten(1), torch.ones(80, 1)], 1)
        wanted = torch.linalg.lstsq(design, pairs.targets[:, node]).solution
        own = torch.cat([found.own[node][None], dense[node, senders[1:]]]).flatten(0, 1)
        torch.testing.assert_close(torch.cat([own, found.intercepts[node][None]]), wanted, rtol=1e-5, atol=1e-6)
    assert (found.edges[~slots.used] == 0).all()
    assert dense[3, 3].abs().max() == 0


def test_slots_that_are_left_out_are_no_candidates(rng):
    pairs, slots = some_pairs(rng), all_slots(NODES)
    kept = torch.rand(slots.used.shape, generator=rng) > 0.5
    some = slots.among(kept)
    source, target = some.edges()
    alone = Slots.from_edges(source[source != target], target[source != target], NODES)
    found, wanted = (local_ridge(pairs, pairs, one, penalties=[0.1]) for one in (some, alone))
    assert some.senders.shape == slots.senders.shape
    others = some.used & (some.senders != some.row_node[:, None])
    torch.testing.assert_close(found.edges[others], wanted.edges[alone.used], rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(found.own, wanted.own, rtol=1e-7, atol=1e-9)
    assert (found.edges[~others] == 0).all()


def test_a_filter_starts_where_the_matrix_starts(rng):
    pairs, slots = some_pairs(rng), all_slots(NODES)
    dense = GraphFilter(NODES, WINDOW, 2).double()
    over_table = GraphFilter(NODES, WINDOW, 2, slots=slots).double()
    wanted = filter_start(pairs, dense, torch.ones(NODES, NODES, dtype=torch.bool), jitter=0.1)
    found = table_filter_start(table_ridge(pairs, over_table, slots), over_table, jitter=0.1)
    torch.testing.assert_close(found.own, wanted.own, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(found.bias, wanted.bias, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(
        found.edge_weights, wanted.edge_weights[slots.row_node[:, None], slots.senders], rtol=1e-7, atol=1e-9
    )
    assert found.jitter == 0.1
    with pytest.raises(InputError, match="predictor needs activation 'linear', got 'tanh'"):
        table_filter_start(table_ridge(pairs, over_table, slots), GraphFilter(NODES, WINDOW, 2, activation="tanh"))


def test_the_largest_weights_are_high_and_self_loops_out(rng):
    pairs = some_pairs(rng)
    slots = Slots.from_edges(torch.tensor([1, 2, 0, 3, 4, 4]), torch.tensor([0, 0, 1, 1, 2, 4]), NODES)
    found = local_ridge(pairs, pairs, slots)
    probs = table_edge_start(found, slots)
    assert sorted(probs[slots.used].tolist()) == pytest.approx([0.0, 0.03, 0.03, 0.03, 0.03, 0.5])
    assert probs.flatten()[found.edge_scores.argmax()] == 0.5
    assert (probs[~slots.used] == 0).all()
    many = table_edge_start(local_ridge(pairs, pairs, all_slots(NODES)), all_slots(NODES))
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
    slots = Slots.from_edges(torch.tensor([1, 2, 3]), torch.tensor([0, 0, 1]), NODES)  # up to 36 columns
    padded = Pairs(torch.cat([inputs, inputs]), torch.cat([pairs.targets, pairs.targets]))  # the same regression
    wanted = local_ridge(padded, pairs, slots)
    for most in (256, 1):
        monkeypatch.setattr(ridge_module, "MOST_DECOMPOSED", most)
        found = local_ridge(pairs, pairs, slots)
        assert found.penalty == wanted.penalty
        torch.testing.assert_close(found.edges, wanted.edges, rtol=1e-6, atol=1e-8)
        torch.testing.assert_close(found.own, wanted.own, rtol=1e-6, atol=1e-8)

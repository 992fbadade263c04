"""Which edges are listed: against sets tried one by one."""

import itertools

import numpy as np
import pytest

from tacit.edges import EdgeTable, false_discoveries, listed_edges

PROBS = np.array([0.99, 0.95, 0.6, 0.95, 0.3, 0.2, 0.1, 0.0, 1.0], dtype=np.float32)
NOT_SURE = np.arange(9) < 8


@pytest.mark.parametrize(
    ("rate", "shown"),
    [
        (0.001, [1.0]),
        (0.005, [1.0, 0.99]),
        (0.0274, [1.0, 0.99]),  # with one of the equal edges it would be 0.02, with both 0.0275
        (0.0275, [1.0, 0.99, 0.95]),
        (0.101, [1.0, 0.99, 0.95]),  # the next would make it 0.102
        (0.102, [1.0, 0.99, 0.95, 0.6]),
    ],
)
def test_fdr_by_hand(rate, shown):
    assert np.array_equal(listed_edges(PROBS, rate), np.isin(PROBS, np.array(shown, dtype=np.float32)))


def test_the_list_of_what_is_left():
    assert not listed_edges(PROBS / 2, 0.4).any()  # the empty list: 0.5 alone has too large a share
    assert listed_edges(np.array([0.95], dtype=np.float32), 0.05).all()  # 1 - 0.95 > 0.05
    without = listed_edges(PROBS, 0.0275, NOT_SURE)
    assert np.flatnonzero(without).tolist() == [0]  # the certain edge no longer pays for two that are not
    assert not listed_edges(PROBS, 0.5, np.zeros(9, dtype=bool)).any()
    assert listed_edges(PROBS, 0.99).sum() == 5  # an edge below one half is never listed
    unknown = np.where(np.float32(0.95) == PROBS, np.nan, PROBS)
    assert not listed_edges(unknown, 0.99)[[1, 3]].any()


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_the_list_against_every_threshold(seed, symmetric):
    """Probabilities of two digits, so that some are equal; a pair without direction counts once."""
    rng = np.random.default_rng(seed)
    probs, learned = np.sqrt(rng.random((4, 4))).round(1), rng.random((4, 4)) < 0.8
    if symmetric:
        probs, learned = np.maximum(np.triu(probs), np.triu(probs).T), np.triu(learned) | np.triu(learned).T
    table = EdgeTable.of_matrices("abcd", symmetric=symmetric, probability=probs, learned=learned)
    edges = [(j, i) for i, j in itertools.product(range(4), repeat=2) if learned[i, j] and (not symmetric or j <= i)]
    for rate in (0.05, 0.1, 0.2, 0.3, 0.5):
        best: set[tuple[int, int]] = set()
        for threshold in {probs[i, j] for j, i in edges if probs[i, j] >= 0.5}:
            chosen = {(j, i) for j, i in edges if probs[i, j] >= threshold}
            if sum(1 - probs[i, j] for j, i in chosen) / len(chosen) <= rate + 1e-9 and len(chosen) > len(best):
                best = chosen
        listed = table.listed(rate)
        index = table.index.at(listed)
        assert set(zip(index.source.tolist(), index.target.tolist(), strict=True)) == best
        false = sum(1 - probs[i, j] for j, i in best)
        assert false_discoveries(table.values, listed) == pytest.approx(false)


@pytest.mark.usefixtures("unchecked")
def test_wrong_calls(refused):
    refused(listed_edges, PROBS, 5)
    refused(listed_edges, PROBS - 2, 0.1)
    refused(listed_edges, PROBS, 0.1, PROBS)
    refused(listed_edges, PROBS[None], 0.1)
    refused(false_discoveries, PROBS, PROBS)

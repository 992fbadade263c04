"""Ranges of lags: which inputs of a window each edge may read, and what is refused."""

import pytest
import torch

from tacit.errors import InputError
from tacit.graph import EdgeRules, LagRange, read_edge_rules

NODES = ("a", "b", "c")
EVERY = torch.ones(3, 3).nonzero().unbind(1)


def allowed(rules, window=4, horizon=1):
    """The lags that each edge (source, target) may have."""
    target, source = EVERY
    mask = rules.lag_ranges.allowed(source, target, window=window, horizon=horizon)
    lags = horizon + torch.arange(window).flip(0)
    return {
        (NODES[j], NODES[i]): sorted(lags[row].tolist())
        for i, j, row in zip(target.tolist(), source.tolist(), mask, strict=True)
    }


def from_file(tmp_path, text, **options):
    path = tmp_path / "rules.csv"
    path.write_text("source,target,kind,probability,min_lag,max_lag\n" + text)
    return read_edge_rules(path, NODES, **options)


def test_one_range_for_all_edges():
    found = allowed(EdgeRules(NODES, lag_range=LagRange(2, 3)))
    assert set(map(tuple, found.values())) == {(2, 3)}
    assert allowed(EdgeRules(NODES, lag_range=LagRange(3)), horizon=2)["a", "b"] == [3, 4, 5]
    assert EdgeRules(NODES).lag_ranges is None


def test_the_range_of_an_edge_takes_the_place_of_that_of_all(tmp_path):
    rules = from_file(tmp_path, "a,b,allowed,,3,4\nb,c,required,,,1\nc,a,prior,0.9,4,\na,c,forbidden,,,\n")
    found = allowed(rules)
    assert found["a", "b"] == [3, 4]
    assert found["b", "c"] == [1]
    assert found["c", "a"] == [4]
    assert found["c", "b"] == [1, 2, 3, 4]
    assert rules.allowed[1, 2]  # c -> b can be: allowed is no candidate
    both = EdgeRules(NODES, lags=rules.lags, lag_range=LagRange(1, 4))
    assert allowed(both, window=6)["c", "a"] == [4]
    assert allowed(both, window=6)["c", "b"] == [1, 2, 3, 4]
    assert both.lag_ranges.reach == 4


def test_without_direction_both_ways_have_the_range(tmp_path):
    found = allowed(from_file(tmp_path, "a,b,allowed,,2,2\n", symmetric=True))
    assert found["a", "b"] == found["b", "a"] == [2]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("a,b,allowed,,3,2", "row 2: min_lag must be at most max_lag, got 3 and 2"),
        ("a,b,allowed,,x,2", "row 2: min_lag must be a non-negative integer, got 'x'"),
        ("a,b,allowed,,1.5,2", "row 2: min_lag must be a non-negative integer, got '1.5'"),
        ("a,b,allowed,,,0", "row 2: max_lag must be at least 1 unless edges may act within a step, got 0"),
        ("a,b,allowed,,,", "row 2: allowed must have lags"),
        ("a,b,forbidden,,1,2", "row 2: forbidden takes no lags"),
        ("a,b,allowed,,1,2\na,b,prior,0.9,2,2", "row 3: edge 'a -> b' has different lags here and in row 2"),
        ("a,b,allowed,,1,2\na,b,forbidden,,,", "row 3: edge 'a -> b' is forbidden here and allowed in row 2"),
        ("a,c,candidate,,,\na,b,allowed,,1,2", "row 3: allowed edge 'a -> b' is not among the candidates"),
        ("a,a,allowed,,1,2", "row 2: a self-loop takes no lags"),
    ],
)
def test_bad_rows_are_refused_in_one_line(tmp_path, rows, words):
    with pytest.raises(InputError) as caught:
        from_file(tmp_path, rows + "\n")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_lags_of_edges_that_cannot_be_are_refused(refused):
    refused(EdgeRules, NODES, forbidden={("a", "b")}, lags={("a", "b"): LagRange(1, 2)})
    refused(EdgeRules, NODES, candidates={("b", "a")}, lags={("a", "b"): LagRange(1, 2)})
    refused(EdgeRules, NODES, lag_range=LagRange(1, 3), lags={("a", "b"): LagRange(5)})


def test_ranges_must_fit_horizon_and_window(refused):
    LagRange(2, 5).require_within(horizon=2, window=4)
    refused(LagRange(2, 5).require_within, horizon=3, window=None)
    refused(LagRange(2, 5).require_within, horizon=2, window=3)

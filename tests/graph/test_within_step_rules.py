"""Rules for effects within a step: which edges may act at lag 0, and which rules are left for later lags."""

import itertools

import pytest
import torch

from tacit.errors import InputError
from tacit.graph import EdgeRules, LagRange, read_edge_rules

NODES = ("a", "b", "c")


def edges_of(mask):
    return {(NODES[j], NODES[i]) for i, j in mask.nonzero().tolist()}


def from_file(tmp_path, text):
    path = tmp_path / "rules.csv"
    path.write_text("source,target,kind,probability,min_lag,max_lag\n" + text)
    return read_edge_rules(path, NODES, simultaneous=True)


def test_without_the_option_no_edge_acts_within_a_step():
    rules = EdgeRules(NODES)
    assert not rules.may_act_within_step.any()
    assert rules.lagged is rules


def test_every_edge_that_can_be_may_act_within_the_step():
    every = {(a, b) for a in NODES for b in NODES if a != b}
    assert edges_of(EdgeRules(NODES, simultaneous=True, self_loops=True).may_act_within_step) == every
    rules = EdgeRules(NODES, forbidden={("a", "b")}, required={("b", "a")}, simultaneous=True)
    assert edges_of(rules.may_act_within_step) == every - {("a", "b")}
    rules = EdgeRules(NODES, candidates={("a", "b"), ("b", "c")}, simultaneous=True)
    assert edges_of(rules.may_act_within_step) == {("a", "b"), ("b", "c")}


def is_range(low, high):
    return low is None or high is None or low <= high


def _whole(usual, own):
    return [limit if limit is not None else other for limit, other in zip(own[:2], usual[:2], strict=True)]


LIMITS = [LagRange(low, high) for low in (None, 0, 1, 2) for high in (None, 0, 1, 3)]
PAIRS = [
    (usual, own)
    for usual, own in itertools.product(LIMITS, LIMITS)
    if is_range(*usual[:2]) and is_range(*own[:2]) and is_range(*_whole(usual, own))
]


@pytest.mark.parametrize(("usual", "own"), PAIRS, ids=str)
def test_ranges_against_counting_lags(usual, own):
    """One edge has a range of its own; each lag is checked by hand, a limit of None taken from that of all edges."""
    rules = EdgeRules(NODES, lag_range=usual, lags={("a", "b"): own}, simultaneous=True)
    for edge, (low, high) in {("a", "b"): _whole(usual, own), ("c", "a"): usual[:2]}.items():
        lags = [lag for lag in range(5) if (low or 0) <= lag <= (4 if high is None else high)]
        assert (edge in edges_of(rules.may_act_within_step)) == (0 in lags), (edge, lags)
        later = [lag for lag in lags if lag]
        lagged, (source, target) = rules.lagged, (torch.tensor([NODES.index(end)]) for end in edge)
        assert (edge in edges_of(lagged.allowed)) == bool(later)
        for one in (rules, lagged) if later else (rules,):
            ranges, found = one.lag_ranges, [1, 2, 3, 4]
            if ranges is not None:
                allowed = ranges.allowed(source, target, window=4, horizon=1)[0]
                found = [lag for lag, is_allowed in zip((4, 3, 2, 1), allowed.tolist(), strict=True) if is_allowed][
                    ::-1
                ]
            assert found == later


def test_the_rules_of_later_lags_drop_what_names_an_edge_of_lag_0_alone():
    rules = EdgeRules(
        NODES,
        required={("a", "b"), ("b", "c")},
        priors={("c", "a"): 0.9, ("a", "c"): 0.2},
        lags={("a", "b"): LagRange(0, 0), ("c", "a"): LagRange(high=0)},
        simultaneous=True,
    )
    source, target, prior, required = rules.lagged.open_edges()
    found = {
        (NODES[j], NODES[i]): (p, r)
        for j, i, p, r in zip(*(part.tolist() for part in (source, target, prior, required)), strict=True)
    }
    assert set(found) == {("b", "a"), ("a", "c"), ("b", "c"), ("c", "b")}
    assert found["b", "c"][1]
    assert found["a", "c"][0] == pytest.approx(0.2)


@pytest.mark.parametrize(("low", "high"), [(0, None), (None, 0), (0, 0), (0, 3)])
def test_lag_0_without_the_option_names_the_option(tmp_path, low, high, refused):
    refused(EdgeRules, NODES, lag_range=LagRange(low, high))
    refused(EdgeRules, NODES, lags={("a", "b"): LagRange(low, high)})


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("a,b,allowed,,,0\na,b,forbidden,,,", "row 3: edge 'a -> b' is forbidden here and allowed in row 2"),
        ("a,b,forbidden,,0,0", "row 2: forbidden takes no lags"),
        ("a,b,allowed,,-1,0", "row 2: min_lag must be a non-negative integer, got '-1'"),
        ("a,b,allowed,,1,0", "row 2: min_lag must be at most max_lag, got 1 and 0"),
        ("a,b,required,,,0\nb,a,required,,,0", "must not form a cycle, got "),
        ("a,b,required,,,0\nb,c,required,,,0\nc,a,required,,0,0", "must not form a cycle, got "),
    ],
)
def test_rules_of_lag_0_that_cannot_be_are_refused_in_one_line(tmp_path, rows, words):
    with pytest.raises(InputError) as caught:
        from_file(tmp_path, rows + "\n")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_required_edges_with_later_lags_may_form_a_cycle(tmp_path):
    rules = from_file(tmp_path, "a,b,required,,,0\nb,a,required,,0,1\n")
    assert edges_of(rules.may_act_within_step) >= {("a", "b"), ("b", "a")}


def test_a_forbidden_pair_and_edges_without_direction_are_refused(refused):
    refused(EdgeRules, NODES, forbidden={("a", "b")}, lags={("a", "b"): LagRange(high=0)}, simultaneous=True)
    refused(EdgeRules, NODES, symmetric=True, simultaneous=True)

"""Rules for edges: what they hold, what they leave free, and which of them contradict each other."""

import itertools

import pytest
import torch
from torch.distributions import Bernoulli, kl_divergence

from tacit.data import Pairs
from tacit.edges import EdgeTable
from tacit.errors import InputError
from tacit.graph import BernoulliGraph, CandidateEdges, EdgeRules, LagRange, SineSquared, read_edge_rules
from tacit.losses import EnergyScore
from tacit.predictors import HopPredictor
from tacit.training import FitSettings, LatentGraphModel, fit

NODES = ("a", "b", "c", "d")


def test_forbidden_is_exactly_zero_and_required_exactly_one(rng):
    rules = EdgeRules(NODES, forbidden={("a", "b"), (2, 3)}, required={("d", "a")})
    for link in (None, SineSquared()):
        graph = rules.build(generator=rng, low=0.2, high=0.3, link=link)
        probs = graph.edge_probs.detach()
        held = {(1, 0): 0.0, (3, 2): 0.0, (0, 3): 1.0, **{(i, i): 0.0 for i in range(4)}}  # [target, source]
        for i in range(4):
            for j in range(4):
                assert bool(rules.allowed[i, j]) == ((i, j) not in held)
                if (i, j) in held:
                    assert probs[i, j].item() == held[i, j]
                else:
                    assert 0.2 <= probs[i, j].item() <= 0.3
        graphs = graph.sample(500, generator=rng)
        assert (graphs[..., 1, 0] == 0).all()
        assert (graphs[..., 0, 3] == 1).all()
        fresh = graph.probs_from(graph.initial_parameters(rng)[graph.link.parameter])
        assert torch.equal(fresh == 0, (probs == 0))


def test_candidates_as_pairs_and_as_a_mask_are_the_same(rng):
    mask = torch.zeros(4, 4, dtype=torch.bool)
    mask[1, 0] = mask[2, 1] = mask[3, 1] = True  # [target, source]
    pairs = {("a", "b"), ("b", "c"), (1, 3)}
    for self_loops in (False, True):
        by_mask = EdgeRules(NODES, candidates=mask, self_loops=self_loops).allowed
        expected = mask | torch.eye(4, dtype=torch.bool) if self_loops else mask
        assert torch.equal(by_mask, expected)
        assert torch.equal(EdgeRules(NODES, candidates=pairs, self_loops=self_loops).allowed, expected)
    undirected = EdgeRules(NODES, candidates=mask, symmetric=True, forbidden={("d", "b")})
    expected = mask | mask.mT
    expected[1, 3] = expected[3, 1] = False
    assert torch.equal(undirected.allowed, expected)
    probs = undirected.build(generator=rng).edge_probs
    assert torch.equal(probs, probs.mT)
    assert torch.equal(probs > 0, expected)


def test_a_rule_for_one_direction_holds_for_both_in_a_symmetric_graph(rng):
    rules = EdgeRules(NODES, forbidden={("a", "b")}, required={("d", "a")}, symmetric=True, priors={("b", "c"): 0.9})
    graph = rules.build(generator=rng)
    assert graph.symmetric
    assert graph.edge_probs[0, 1] == graph.edge_probs[1, 0] == 0
    assert graph.edge_probs[0, 3] == graph.edge_probs[3, 0] == 1
    prior = rules.prior()
    prior.check(graph)
    coin = kl_divergence(Bernoulli(graph.edge_probs[1, 2]), Bernoulli(torch.tensor(0.9)))
    assert prior.penalty(graph).item() == pytest.approx(coin.item(), rel=1e-5)  # once, not twice


def test_beliefs_draw_their_own_edges_and_the_default_all_others(rng):
    rules = EdgeRules(NODES, forbidden={("c", "b")}, required={("d", "b")}, priors={("a", "b"): 0.9, (0, 2): 0.4})
    graph = rules.build(generator=rng, low=0.3, high=0.6)
    probs = graph.edge_probs.detach()

    def divergence(places):
        terms = [kl_divergence(Bernoulli(probs[place]), Bernoulli(torch.tensor(p))) for place, p in places.items()]
        return 0.7 * float(sum(terms))

    own = {(1, 0): 0.9, (2, 0): 0.4}
    assert rules.prior(0.7).penalty(graph).item() == pytest.approx(divergence(own), rel=1e-5)
    learned = {tuple(place): 0.1 for place in rules.allowed.nonzero().tolist()}
    assert len(learned) == 10
    penalty = rules.prior(0.7, default=0.1).penalty(graph).item()
    assert penalty == pytest.approx(divergence({**learned, **own}), rel=1e-5)
    assert EdgeRules(NODES).prior() is None
    alone = EdgeRules(NODES).prior(default=0.1)
    assert alone.penalty(BernoulliGraph(torch.full((4, 4), 0.1))).item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("symmetric", [False, True])
def test_rules_hold_through_a_training(rng, symmetric):
    rules = EdgeRules(NODES, forbidden={("a", "b")}, required={("d", "a")}, symmetric=symmetric, priors={(1, 2): 0.8})
    predictor = HopPredictor.random(2, 1, generator=rng)
    inputs = torch.randn(64, 4, 1, generator=rng)
    pairs = Pairs(inputs, torch.tanh(inputs.roll(1, 1)))
    outcomes = {}
    for lift in ("loop", "vmap"):
        model = LatentGraphModel(
            rules.build(generator=rng), predictor, EnergyScore(), num_graphs=4, prior=rules.prior()
        )
        result = fit(model, pairs, pairs, FitSettings(epochs=2, batch_size=32), seeds=(0, 1), lift=lift, compile=False)
        probs = model.graph.probs_from(result.parameters["graph.edge_logits"])  # (replica, node, node)
        assert (probs[:, ~rules.allowed & (rules.build(generator=rng).edge_probs == 0)] == 0).all()
        assert (probs[:, 0, 3] == 1).all()
        assert ((probs > 0) & (probs < 1))[:, rules.allowed].all()
        assert torch.equal(probs, probs.mT) == symmetric
        table = (
            EdgeTable.of_matrices(NODES, probability=model.graph.edge_probs)
            .frame()
            .set_index(["source", "target"])["probability"]
        )
        assert table["a", "b"] == 0
        assert table["d", "a"] == 1
        outcomes[lift] = probs
    assert torch.allclose(*outcomes.values(), atol=1e-5)


CONTRADICTIONS = {
    "required and forbidden": {"required": {("a", "b")}, "forbidden": {(0, 1)}},
    "either way": {"required": {("a", "b")}, "forbidden": {("b", "a")}, "symmetric": True},
    "required self-loop": {"required": {("c", "c")}},
    "self-loop with a prior": {"priors": {("c", "c"): 0.5}},
    "required, no candidate": {"required": {("a", "b")}, "candidates": {("b", "a")}},
    "prior, no candidate": {"priors": {("a", "b"): 0.4}, "candidates": torch.zeros(4, 4, dtype=torch.bool)},
    "prior on forbidden": {"priors": {("a", "b"): 0.4}, "forbidden": {("a", "b")}},
    "prior on required": {"priors": {("a", "b"): 0.4}, "required": {("a", "b")}},
    "certain prior": {"priors": {("a", "b"): 1.0}},
    "prior in words": {"priors": {("a", "b"): "likely"}},
    "two priors": {"priors": {("a", "b"): 0.2, ("b", "a"): 0.3}, "symmetric": True},
    "priors as a set": {"priors": {("a", "b")}},
    "unknown name": {"forbidden": {("a", "bb")}},
    "unknown number": {"required": {(0, 4)}},
    "no pair": {"required": {("a", "b", "c")}},
    "a word": {"required": "ab"},
    "mask of floats": {"candidates": torch.ones(4, 4)},
    "mask of three": {"candidates": torch.ones(3, 3, dtype=torch.bool)},
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_name_the_edge(name, unchecked, refused):
    choices = CONTRADICTIONS[name]
    refused(EdgeRules, NODES, **choices)


def test_nodes_need_names_that_differ(unchecked, refused):
    refused(EdgeRules, ("a", "b", "a"))
    for wrong in ((), ("a", ""), ("a", 1), "ab"):
        refused(EdgeRules, wrong)
    refused(EdgeRules(NODES).build, generator=torch.Generator(), low=0.5, high=0.2)
    refused(EdgeRules(NODES).prior, default=1)


def in_slots(matrix, candidates):
    """Entries of a matrix, looked up for each slot."""
    return matrix[candidates.row_node[:, None], candidates.sources]


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("as_table", [False, True])
def test_a_graph_over_the_table_keeps_the_same_rules(rng, self_loops, as_table):
    """Every number over the table is that of the matrix, and what has no slot is 0 there."""
    candidates = torch.rand(9, 9, generator=rng) < 0.4
    candidates[0, 1] = candidates[1, 0] = candidates[2, 0] = candidates[3, 0] = candidates[0, 0] = True
    rules = EdgeRules(
        tuple("abcdefghi"),
        forbidden={(1, 0), (8, 8), (5, 6)},
        required={(0, 1), (0, 2)},
        candidates=CandidateEdges.from_mask(candidates) if as_table else candidates,
        priors={(0, 3): 0.9},
        self_loops=self_loops,
    )
    matrix, table = rules.build(generator=rng), rules.build(generator=rng, layout="table")
    candidates = table.candidates
    assert torch.equal(candidates.to_mask(), matrix.edge_probs > 0)
    assert torch.equal(~table.fixed, in_slots(rules.allowed, candidates) & candidates.used)
    assert torch.equal(table.fixed_probs, in_slots(matrix.fixed_probs, candidates) * candidates.used)
    assert table.fixed_probs.sum() == 2
    matrix = BernoulliGraph(torch.where(matrix.fixed, matrix.fixed_probs, 0.3), matrix.fixed)
    table = BernoulliGraph(torch.where(table.fixed, table.fixed_probs, 0.3), table.fixed, candidates=candidates)
    for default in (None, 0.2):
        over_all, as_table = rules.prior(0.7, default), rules.prior(0.7, default, layout="table")
        as_table.check(table)
        assert as_table.penalty(table).item() == pytest.approx(over_all.penalty(matrix).item(), rel=1e-5)


def test_a_table_needs_candidates_that_have_a_direction(refused):
    with pytest.raises(InputError, match="a table of candidates requires candidates, got none; name some"):
        _ = EdgeRules(NODES).candidate_edges
    with pytest.raises(
        InputError, match="a table of candidates must have directed edges, got symmetric; leave symmetric out"
    ):
        _ = EdgeRules(NODES, candidates={("a", "b")}, symmetric=True).candidate_edges
    refused(EdgeRules, NODES, candidates=CandidateEdges.from_mask(torch.ones(3, 3, dtype=torch.bool)))


def test_rules_of_many_nodes_need_no_matrix(rng):
    """With 100,000 nodes a mask alone would take 10 GB."""
    count = 100_000
    source = torch.arange(count)
    ring = CandidateEdges.from_edges(source, (source + 1) % count, count)
    rules = EdgeRules(tuple(map(str, range(count))), candidates=ring, forbidden={(0, 1)}, required={(1, 2)})
    graph = rules.build(generator=rng, layout="table")
    assert graph.candidates.num_edges == count - 1
    assert int((~graph.fixed).sum()) == count - 2


# ---------------------------------------------------------------- rules for edges from a file


NODES_RULES_FILE = ["north", "south", "east"]


@pytest.fixture
def write(tmp_path):
    def write(text, **options):
        path = tmp_path / "edges.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_edge_rules(path, NODES_RULES_FILE, **options)

    return write


def same(one, two):
    beliefs = [rules.prior(default=0.5).probs for rules in (one, two)]
    graphs = [rules.build(generator=torch.Generator().manual_seed(0)).edge_probs for rules in (one, two)]
    return torch.equal(*beliefs) and torch.equal(*graphs)


def test_every_kind_is_read(write):
    rules = write(
        "source,target,kind,probability\n"
        "north,south,forbidden,\n"
        "east,north,required,\n"
        "\n"
        "south, north ,prior,0.9\n"
        "south,north,prior,0.9\n"
    )
    expected = EdgeRules(
        tuple(NODES_RULES_FILE), {("north", "south")}, {("east", "north")}, priors={("south", "north"): 0.9}
    )
    assert same(rules, expected)
    assert rules.build(generator=torch.Generator()).edge_probs[1, 0] == 0  # row receives: south reads north


def test_candidates_and_columns_in_any_order(write):
    rules = write("\ufeffkind,target,source\ncandidate,south,north\nrequired,south,north\ncandidate,east,south\n")
    edges = {("north", "south"), ("south", "east")}
    assert same(rules, EdgeRules(tuple(NODES_RULES_FILE), required={("north", "south")}, candidates=edges))
    assert rules.allowed.nonzero().tolist() == [[2, 1]]


def test_either_way_in_a_symmetric_graph_and_self_loops(write):
    text = "source,target,kind,probability\nnorth,south,candidate,\nsouth,north,prior,0.2\neast,east,required,\n"
    rules = write(text, symmetric=True, self_loops=True)
    expected = EdgeRules(tuple(NODES_RULES_FILE), (), {(2, 2)}, True, True, {(0, 1)}, {(0, 1): 0.2})
    assert same(rules, expected)


def test_a_file_without_rules_allows_every_edge(write):
    rules = write("source,target,kind,probability\n")
    assert torch.equal(rules.allowed, ~torch.eye(3, dtype=torch.bool))
    assert rules.prior() is None


HEAD = "source,target,kind,probability\n"
WRONG = {
    "unknown node": HEAD + "north,south,required,\nnorth,soth,required,\n",
    "unknown source": HEAD + "west,south,required,\n",
    "unknown kind": HEAD + "north,south,forbiden,\n",
    "missing column": "source,target\nnorth,south\n",
    "empty file": "",
    "unknown column": "source,target,kind,probabilty\n",
    "column twice": "source,target,kind,kind\n",
    "no probability": HEAD + "north,south,prior,\n",
    "no column of probabilities": "source,target,kind\nnorth,south,prior\n",
    "no number": HEAD + "north,south,prior,high\n",
    "certain": HEAD + "north,south,prior,1\n",
    "not a number": HEAD + "north,south,prior,nan\n",
    "probability of a certainty": HEAD + "north,south,required,0.9\n",
    "contradiction": HEAD + "north,south,required,\neast,north,required,\nnorth,south,forbidden,\n",
    "two beliefs": HEAD + "north,south,prior,0.2\nnorth,south,prior,0.3\n",
    "belief in what is certain": HEAD + "north,south,required,\nnorth,south,prior,0.3\n",
    "self-loop": HEAD + "north,north,candidate,\n",
    "no candidate": HEAD + "north,south,required,\nsouth,north,candidate,\n",
    "too many cells": HEAD + "north,south,prior,0,9\n",
    "too few cells": HEAD + "north\n",
    "not text": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_file_row_and_fault(name, write, refused):
    text = WRONG[name]
    refused(write, text)


def test_either_way_contradicts_in_a_symmetric_graph(write, refused):
    refused(write, HEAD + "north,south,required,\nsouth,north,forbidden,\n", symmetric=True)


def test_a_missing_file_is_named(tmp_path, refused):
    refused(read_edge_rules, tmp_path / "none.csv", NODES_RULES_FILE)


# ---------------------------------------------------------------- ranges of lags


NODES_LAG_RANGES = ("a", "b", "c")
EVERY = torch.ones(3, 3).nonzero().unbind(1)


def allowed(rules, window=4, horizon=1):
    """The lags that each edge (source, target) may have."""
    target, source = EVERY
    mask = rules.lag_ranges.allowed(source, target, window=window, horizon=horizon)
    lags = horizon + torch.arange(window).flip(0)
    return {
        (NODES_LAG_RANGES[j], NODES_LAG_RANGES[i]): sorted(lags[row].tolist())
        for i, j, row in zip(target.tolist(), source.tolist(), mask, strict=True)
    }


def from_file(tmp_path, text, **options):
    path = tmp_path / "rules.csv"
    path.write_text("source,target,kind,probability,min_lag,max_lag\n" + text)
    return read_edge_rules(path, NODES_LAG_RANGES, **options)


def test_one_range_for_all_edges():
    found = allowed(EdgeRules(NODES_LAG_RANGES, lag_range=LagRange(2, 3)))
    assert set(map(tuple, found.values())) == {(2, 3)}
    assert allowed(EdgeRules(NODES_LAG_RANGES, lag_range=LagRange(3)), horizon=2)["a", "b"] == [3, 4, 5]
    assert EdgeRules(NODES_LAG_RANGES).lag_ranges is None


def test_the_range_of_an_edge_takes_the_place_of_that_of_all(tmp_path):
    rules = from_file(tmp_path, "a,b,allowed,,3,4\nb,c,required,,,1\nc,a,prior,0.9,4,\na,c,forbidden,,,\n")
    found = allowed(rules)
    assert found["a", "b"] == [3, 4]
    assert found["b", "c"] == [1]
    assert found["c", "a"] == [4]
    assert found["c", "b"] == [1, 2, 3, 4]
    assert rules.allowed[1, 2]  # c -> b can be: allowed is no candidate
    both = EdgeRules(NODES_LAG_RANGES, lags=rules.lags, lag_range=LagRange(1, 4))
    assert allowed(both, window=6)["c", "a"] == [4]
    assert allowed(both, window=6)["c", "b"] == [1, 2, 3, 4]
    assert both.lag_ranges.reach == 4


def test_without_direction_both_ways_have_the_range(tmp_path):
    found = allowed(from_file(tmp_path, "a,b,allowed,,2,2\n", symmetric=True))
    assert found["a", "b"] == found["b", "a"] == [2]


@pytest.mark.parametrize(
    "rows",
    [
        "a,b,allowed,,3,2",
        "a,b,allowed,,x,2",
        "a,b,allowed,,1.5,2",
        "a,b,allowed,,,0",
        "a,b,allowed,,,",
        "a,b,forbidden,,1,2",
        "a,b,allowed,,1,2\na,b,prior,0.9,2,2",
        "a,b,allowed,,1,2\na,b,forbidden,,,",
        "a,c,candidate,,,\na,b,allowed,,1,2",
        "a,a,allowed,,1,2",
    ],
)
def test_bad_rows_are_refused_in_one_line(tmp_path, rows, refused):
    refused(from_file, tmp_path, rows + "\n")


def test_lags_of_edges_that_cannot_be_are_refused(refused):
    refused(EdgeRules, NODES_LAG_RANGES, forbidden={("a", "b")}, lags={("a", "b"): LagRange(1, 2)})
    refused(EdgeRules, NODES_LAG_RANGES, candidates={("b", "a")}, lags={("a", "b"): LagRange(1, 2)})
    refused(EdgeRules, NODES_LAG_RANGES, lag_range=LagRange(1, 3), lags={("a", "b"): LagRange(5)})


def test_ranges_must_fit_horizon_and_window(refused):
    LagRange(2, 5).require_within(horizon=2, window=4)
    refused(LagRange(2, 5).require_within, horizon=3, window=None)
    refused(LagRange(2, 5).require_within, horizon=2, window=3)


# ---------------------------------------------------------------- rules for effects within a step


NODES_WITHIN_STEP_RULES = ("a", "b", "c")


def edges_of(mask):
    return {(NODES_WITHIN_STEP_RULES[j], NODES_WITHIN_STEP_RULES[i]) for i, j in mask.nonzero().tolist()}


def from_file_within_step_rules(tmp_path, text):
    path = tmp_path / "rules.csv"
    path.write_text("source,target,kind,probability,min_lag,max_lag\n" + text)
    return read_edge_rules(path, NODES_WITHIN_STEP_RULES, simultaneous=True)


def test_without_the_option_no_edge_acts_within_a_step():
    rules = EdgeRules(NODES_WITHIN_STEP_RULES)
    assert not rules.may_act_within_step.any()
    assert rules.lagged is rules


def test_every_edge_that_can_be_may_act_within_the_step():
    every = {(a, b) for a in NODES_WITHIN_STEP_RULES for b in NODES_WITHIN_STEP_RULES if a != b}
    assert edges_of(EdgeRules(NODES_WITHIN_STEP_RULES, simultaneous=True, self_loops=True).may_act_within_step) == every
    rules = EdgeRules(NODES_WITHIN_STEP_RULES, forbidden={("a", "b")}, required={("b", "a")}, simultaneous=True)
    assert edges_of(rules.may_act_within_step) == every - {("a", "b")}
    rules = EdgeRules(NODES_WITHIN_STEP_RULES, candidates={("a", "b"), ("b", "c")}, simultaneous=True)
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
    rules = EdgeRules(NODES_WITHIN_STEP_RULES, lag_range=usual, lags={("a", "b"): own}, simultaneous=True)
    for edge, (low, high) in {("a", "b"): _whole(usual, own), ("c", "a"): usual[:2]}.items():
        lags = [lag for lag in range(5) if (low or 0) <= lag <= (4 if high is None else high)]
        assert (edge in edges_of(rules.may_act_within_step)) == (0 in lags), (edge, lags)
        later = [lag for lag in lags if lag]
        lagged, (source, target) = rules.lagged, (torch.tensor([NODES_WITHIN_STEP_RULES.index(end)]) for end in edge)
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
        NODES_WITHIN_STEP_RULES,
        required={("a", "b"), ("b", "c")},
        priors={("c", "a"): 0.9, ("a", "c"): 0.2},
        lags={("a", "b"): LagRange(0, 0), ("c", "a"): LagRange(high=0)},
        simultaneous=True,
    )
    source, target, prior, required = rules.lagged.open_edges()
    found = {
        (NODES_WITHIN_STEP_RULES[j], NODES_WITHIN_STEP_RULES[i]): (p, r)
        for j, i, p, r in zip(*(part.tolist() for part in (source, target, prior, required)), strict=True)
    }
    assert set(found) == {("b", "a"), ("a", "c"), ("b", "c"), ("c", "b")}
    assert found["b", "c"][1]
    assert found["a", "c"][0] == pytest.approx(0.2)


@pytest.mark.parametrize(("low", "high"), [(0, None), (None, 0), (0, 0), (0, 3)])
def test_lag_0_without_the_option_names_the_option(tmp_path, low, high, refused):
    refused(EdgeRules, NODES_WITHIN_STEP_RULES, lag_range=LagRange(low, high))
    refused(EdgeRules, NODES_WITHIN_STEP_RULES, lags={("a", "b"): LagRange(low, high)})


@pytest.mark.parametrize(
    "rows",
    [
        "a,b,allowed,,,0\na,b,forbidden,,,",
        "a,b,forbidden,,0,0",
        "a,b,allowed,,-1,0",
        "a,b,allowed,,1,0",
        "a,b,required,,,0\nb,a,required,,,0",
        "a,b,required,,,0\nb,c,required,,,0\nc,a,required,,0,0",
    ],
)
def test_rules_of_lag_0_that_cannot_be_are_refused_in_one_line(tmp_path, rows, refused):
    refused(from_file_within_step_rules, tmp_path, rows + "\n")


def test_required_edges_with_later_lags_may_form_a_cycle(tmp_path):
    rules = from_file_within_step_rules(tmp_path, "a,b,required,,,0\nb,a,required,,0,1\n")
    assert edges_of(rules.may_act_within_step) >= {("a", "b"), ("b", "a")}


def test_a_forbidden_pair_and_edges_without_direction_are_refused(refused):
    refused(
        EdgeRules,
        NODES_WITHIN_STEP_RULES,
        forbidden={("a", "b")},
        lags={("a", "b"): LagRange(high=0)},
        simultaneous=True,
    )
    refused(EdgeRules, NODES_WITHIN_STEP_RULES, symmetric=True, simultaneous=True)

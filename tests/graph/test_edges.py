"""Rules for edges: what they hold, what they leave free, and which of them contradict each other."""

import pytest
import torch
from torch.distributions import Bernoulli, kl_divergence

from tacit.data import Pairs
from tacit.edges import EdgeTable
from tacit.errors import InputError
from tacit.graph import BernoulliGraph, CandidateEdges, EdgeRules, SineSquared
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
    "required and forbidden": (
        {"required": {("a", "b")}, "forbidden": {(0, 1)}},
        "required and forbidden both name edge 'a -> b'; drop one of them",
    ),
    "either way": (
        {"required": {("a", "b")}, "forbidden": {("b", "a")}, "symmetric": True},
        "required and forbidden both name edge 'b -- a'; drop one of them",
    ),
    "required self-loop": (
        {"required": {("c", "c")}},
        "required names edge 'c -> c', but self-loops are disabled; drop it, or set self_loops=True",
    ),
    "self-loop with a prior": (
        {"priors": {("c", "c"): 0.5}},
        "priors names edge 'c -> c', but self-loops are disabled",
    ),
    "required, no candidate": (
        {"required": {("a", "b")}, "candidates": {("b", "a")}},
        "required names edge 'a -> b', which is not among the candidates; add it to them",
    ),
    "prior, no candidate": (
        {"priors": {("a", "b"): 0.4}, "candidates": torch.zeros(4, 4, dtype=torch.bool)},
        "priors names edge 'a -> b', which is not among the candidates",
    ),
    "prior on forbidden": (
        {"priors": {("a", "b"): 0.4}, "forbidden": {("a", "b")}},
        "priors names edge 'a -> b', which is forbidden; drop one of them",
    ),
    "prior on required": (
        {"priors": {("a", "b"): 0.4}, "required": {("a", "b")}},
        "priors names edge 'a -> b', which is required; drop one of them",
    ),
    "certain prior": (
        {"priors": {("a", "b"): 1.0}},
        "priors must have probabilities strictly between 0 and 1, got 1.0 for edge 'a -> b'; use forbidden or required",
    ),
    "prior in words": ({"priors": {("a", "b"): "likely"}}, "strictly between 0 and 1, got 'likely' for edge 'a -> b'"),
    "two priors": (
        {"priors": {("a", "b"): 0.2, ("b", "a"): 0.3}, "symmetric": True},
        "priors gives edge 'b -- a' both 0.2 and 0.3; keep one",
    ),
    "priors as a set": ({"priors": {("a", "b")}}, "priors must have a probability for each edge, got"),
    "unknown name": ({"forbidden": {("a", "bb")}}, "forbidden names unknown node 'bb'; did you mean 'b'?"),
    "unknown number": ({"required": {(0, 4)}}, "required must be nodes by name or by number from 0 to 3, got 4"),
    "no pair": ({"required": {("a", "b", "c")}}, r"required must be edges as \(source, target\), got"),
    "a word": ({"required": "ab"}, r"required must be a set of edges \(source, target\), got 'ab'"),
    "mask of floats": (
        {"candidates": torch.ones(4, 4)},
        r"candidates must be a mask of booleans of shape \(4, 4\), got torch.float32 of \(4, 4\)",
    ),
    "mask of three": (
        {"candidates": torch.ones(3, 3, dtype=torch.bool)},
        r"must be a mask .* got torch.bool of \(3, 3\)",
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_name_the_edge(name, unchecked):
    choices, message = CONTRADICTIONS[name]
    with pytest.raises(InputError, match=message):
        EdgeRules(NODES, **choices)


def test_nodes_need_names_that_differ(unchecked):
    with pytest.raises(InputError, match="nodes must have names that differ, got 'a' twice; rename one"):
        EdgeRules(("a", "b", "a"))
    for wrong in ((), ("a", ""), ("a", 1), "ab"):
        with pytest.raises(InputError, match="nodes must be a tuple of names, got"):
            EdgeRules(wrong)
    with pytest.raises(InputError, match=r"low and high must satisfy 0 <= low <= high <= 1, got 0.5 and 0.2"):
        EdgeRules(NODES).build(generator=torch.Generator(), low=0.5, high=0.2)
    with pytest.raises(InputError, match="default must be a probability strictly between 0 and 1, got 1; pass for"):
        EdgeRules(NODES).prior(default=1)


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


def test_a_table_needs_candidates_that_have_a_direction():
    with pytest.raises(InputError, match="a table of candidates requires candidates, got none; name some"):
        _ = EdgeRules(NODES).candidate_edges
    with pytest.raises(
        InputError, match="a table of candidates must have directed edges, got symmetric; leave symmetric out"
    ):
        _ = EdgeRules(NODES, candidates={("a", "b")}, symmetric=True).candidate_edges
    with pytest.raises(
        InputError, match="candidates must be a table of 4 nodes, got one of 3; make it for these nodes"
    ):
        EdgeRules(NODES, candidates=CandidateEdges.from_mask(torch.ones(3, 3, dtype=torch.bool)))


def test_rules_of_many_nodes_need_no_matrix(rng):
    """With 100,000 nodes a mask alone would take 10 GB."""
    count = 100_000
    source = torch.arange(count)
    ring = CandidateEdges.from_edges(source, (source + 1) % count, count)
    rules = EdgeRules(tuple(map(str, range(count))), candidates=ring, forbidden={(0, 1)}, required={(1, 2)})
    graph = rules.build(generator=rng, layout="table")
    assert graph.candidates.num_edges == count - 1
    assert int((~graph.fixed).sum()) == count - 2

import itertools
import math

import pytest
import torch
from torch.distributions import Bernoulli, kl_divergence

import oracles
from tacit.graph import BernoulliGraph, EdgePrior, Sigmoid, SineSquared, boolean_powers, reachability, walks_within
from tacit.graph.operators import WORD_BITS, powers_by_words


def test_probabilities_of_all_graphs_add_up_to_one(rng):
    probs = torch.rand(3, 3, generator=rng, dtype=torch.float64)
    graphs = oracles.all_graphs(torch.ones(3, 3, dtype=torch.bool))
    log_prob = BernoulliGraph(probs).log_prob(graphs[None])[0]
    assert log_prob.exp().sum().item() == pytest.approx(1, abs=1e-12)
    assert torch.allclose(log_prob.exp(), oracles.graph_probs(graphs, probs), atol=1e-14)


def test_score_is_the_derivative_of_log_prob(rng):
    fixed = torch.zeros(3, 3, dtype=torch.bool)
    fixed[0, 1] = True
    graph = BernoulliGraph(torch.rand(3, 3, generator=rng, dtype=torch.float64), fixed)
    graphs = graph.sample(1, generator=rng)
    graph.log_prob(graphs).sum().backward()
    assert torch.allclose(graph.edge_logits.grad, graph.score(graphs)[0, 0], atol=1e-14)
    assert graph.edge_logits.grad[0, 1] == 0


@pytest.mark.parametrize("as_fixed", [True, False])
def test_exact_and_finite_at_zero_and_one(rng, as_fixed):
    probs = torch.tensor([[0.0, 1.0], [0.3, 0.0]])
    graph = BernoulliGraph(probs, torch.full((2, 2), as_fixed) & (probs != 0.3))
    graphs = graph.sample(200, generator=rng)
    assert (graphs[..., 0, 0] == 0).all()
    assert (graphs[..., 0, 1] == 1).all()
    log_prob = graph.log_prob(graphs)
    assert log_prob.unique().exp().tolist() == pytest.approx([0.3, 0.7])
    log_prob.sum().backward()
    assert torch.isfinite(graph.edge_logits.grad).all()
    assert torch.isfinite(graph.score(graphs)).all()
    assert (graph.edge_logits.grad[0] == 0).all()
    assert torch.equal(graph.edge_probs.detach(), probs)
    impossible = graphs[:, :1].clone()
    impossible[..., 0, 0] = 1
    assert graph.log_prob(impossible).item() == -math.inf


def test_sampled_frequencies_match_within_five_standard_errors(rng):
    """144 entries at five standard errors: a false alarm once in 12,000 seeds; this seed is fixed."""
    probs = torch.rand(12, 12, generator=rng)
    count = 20_000
    frequency = BernoulliGraph(probs).sample(count, generator=rng).mean((0, 1))
    assert ((frequency - probs).abs() < 5 * (probs * (1 - probs) / count).sqrt()).all()


def test_same_generator_same_graphs():
    graph = BernoulliGraph(torch.full((4, 4), 0.5))
    first, second = (graph.sample(8, num_pairs=2, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert first.shape == (2, 8, 4, 4)
    assert torch.equal(first, second)


def test_uniform_start_and_fresh_replicas(rng):
    graph = BernoulliGraph.uniform(12, generator=rng)
    assert 0 < graph.edge_probs.min() < graph.edge_probs.max() < 0.1
    fresh = torch.sigmoid(graph.initial_parameters(rng)["edge_logits"])
    assert 0 < fresh.min() < fresh.max() < 0.1
    assert not torch.equal(fresh, graph.edge_probs)
    given = BernoulliGraph(torch.full((2, 2), 0.3))
    assert torch.equal(given.initial_parameters(rng)["edge_logits"], given.edge_logits)


def test_reachability_against_search(rng):
    graphs = (torch.rand(1, 30, 6, 6, generator=rng) < 0.2).float()
    for adjacency, steps in itertools.product(graphs[0], range(4)):
        walk = {i: {i} for i in range(6)}
        exact, seen, ever = dict(walk), dict(walk), {i: set() for i in range(6)}
        for _ in range(steps):
            exact = {i: {k for j in exact[i] for k in range(6) if adjacency[j, k]} for i in range(6)}
            seen = {i: seen[i] | exact[i] for i in range(6)}
            ever = {i: ever[i] | exact[i] for i in range(6)}
        as_matrix = lambda sets: torch.tensor([[float(j in sets[i]) for j in range(6)] for i in range(6)])  # noqa: E731
        assert torch.equal(reachability(adjacency[None, None], steps)[0, 0], as_matrix(seen))
        if steps:
            assert torch.equal(list(boolean_powers(adjacency[None, None], steps))[-1][0, 0], as_matrix(exact))
            assert torch.equal(walks_within(adjacency[None, None], steps)[0, 0], as_matrix(ever))


def test_errors(unchecked, refused):
    refused(BernoulliGraph, torch.tensor([[0.0, 1.5], [0.0, 0.0]]))
    refused(BernoulliGraph, torch.tensor([[0.0, 0.5], [torch.nan, 0.0]]))
    refused(BernoulliGraph.uniform, 3, low=0.5, high=0.2, generator=torch.Generator())
    refused(BernoulliGraph.uniform, 0, generator=torch.Generator())
    refused(BernoulliGraph(torch.zeros(2, 2)).sample, 0, generator=torch.Generator())


# ---------------------------------------------------------------- start


START = torch.tensor([[0.0, 0.5, 0.03], [0.5, 0.0, 0.03], [0.2, 0.03, 0.0]])


def starts(graph, count):
    """Where replicas of the first seeds begin, (replica, node, node)."""
    fresh = [graph.initial_parameters(torch.Generator().manual_seed(s))[graph.link.parameter] for s in range(count)]
    return graph.probs_from(torch.stack(fresh))


def test_without_spread_every_replica_starts_at_the_given_probabilities():
    graph = BernoulliGraph(torch.full((3, 3), 0.1), initial_range=(0.05, 0.15))
    graph.start_around(START)
    assert torch.allclose(graph.edge_probs, START)
    assert torch.allclose(starts(graph, 4), START.expand(4, 3, 3))


@pytest.mark.parametrize("link", [Sigmoid(), SineSquared()])
def test_with_spread_logits_are_moved_by_normals_of_that_deviation(link):
    """Over 4,000 replicas; bounds at 5 standard errors: 5 s / sqrt(n) for means, 5 s / sqrt(2 n) for deviations."""
    graph = BernoulliGraph(torch.full((3, 3), 0.1), link=link)
    graph.start_around(START, spread=0.4)
    moved = torch.logit(starts(graph, 4000).double()) - torch.logit(START.double())
    away = ~torch.eye(3, dtype=torch.bool)
    count, moved = 4000 * 6, moved[:, away]
    assert moved.mean().abs() < 5 * 0.4 / count**0.5
    assert (moved.std() - 0.4).abs() < 5 * 0.4 / (2 * count) ** 0.5
    assert (starts(graph, 4)[:, ~away] == 0).all()  # an edge at 0 stays there


def test_held_entries_stay_and_a_symmetric_graph_takes_the_higher_of_two():
    held = torch.eye(3, dtype=torch.bool)
    graph = BernoulliGraph(torch.full((3, 3), 0.1).fill_diagonal_(0.9), held, symmetric=True)
    graph.start_around(START, spread=1.0)
    assert torch.allclose(graph.edge_probs.diagonal(), torch.tensor(0.9))
    assert graph.edge_probs[0, 2].item() == pytest.approx(0.2)
    assert torch.equal(graph.edge_probs, graph.edge_probs.mT)
    several = starts(graph, 5)
    assert torch.equal(several, several.mT)
    assert (several[:, held] == 0.9).all()
    assert several[:, 0, 2].unique().numel() == 5


def test_errors_start(unchecked, refused):
    graph = BernoulliGraph(torch.full((3, 3), 0.1))
    refused(graph.start_around, torch.full((2, 2), 0.1))
    refused(graph.start_around, START, spread=-1.0)
    refused(graph.start_around, 2 * torch.ones(3, 3))


# ---------------------------------------------------------------- links


LINKS = [Sigmoid(), SineSquared()]


@pytest.mark.parametrize("link", LINKS)
def test_raw_and_probs_are_inverse(rng, link):
    probs = torch.rand(6, 6, generator=rng, dtype=torch.float64)
    assert torch.allclose(link.probs(link.raw(probs)), probs, atol=1e-14)
    present, absent = link.log_probs(link.raw(probs))
    assert torch.allclose(present.exp(), probs, atol=1e-14)
    assert torch.allclose(absent.exp(), 1 - probs, atol=1e-14)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exact_and_finite_at_zero_and_one_links(rng, link, dtype):
    probs = torch.tensor([[0.0, 1.0], [0.3, 0.0]], dtype=dtype)
    graph = BernoulliGraph(probs, link=link)
    assert torch.allclose(graph.edge_probs.detach(), probs, atol=1e-7)
    graphs = graph.sample(200, generator=rng)
    assert (graphs[..., 0, 0] == 0).all()
    assert (graphs[..., 0, 1] == 1).all()
    log_prob = graph.log_prob(graphs)
    assert sorted(set(log_prob.exp().flatten().tolist())) == pytest.approx([0.3, 0.7], abs=1e-6)
    (for_raw,) = torch.autograd.grad(log_prob.sum(), graph.raw)
    assert torch.isfinite(for_raw).all()
    assert for_raw[0].abs().max() < 1e-4  # nothing to learn from what cannot be otherwise
    impossible = graphs[:, :1].clone()
    impossible[..., 0, 0] = 1
    assert graph.log_prob(impossible).item() == -math.inf
    impossible = graphs[:, :1].clone()
    impossible[..., 0, 1] = 0
    assert graph.log_prob(impossible).item() == -math.inf


@pytest.mark.parametrize("theta", [0.01, 0.2, 0.5, 0.97])
def test_fisher_information(theta):
    """The variance of the derivative of log P: theta (1 - theta) for the logit, 4 for the angle at any theta."""
    for link, expected in ((Sigmoid(), theta * (1 - theta)), (SineSquared(), 4.0)):
        graph = BernoulliGraph(torch.full((1, 1), theta, dtype=torch.float64), link=link)
        graphs = oracles.all_graphs(torch.ones(1, 1, dtype=torch.bool))
        scores = [torch.autograd.grad(graph.log_prob(g[None, None]).sum(), graph.raw)[0].item() for g in graphs]
        mean = (1 - theta) * scores[0] + theta * scores[1]
        information = (1 - theta) * scores[0] ** 2 + theta * scores[1] ** 2
        assert mean == pytest.approx(0, abs=1e-12)
        assert information == pytest.approx(expected, abs=1e-12)


def test_a_step_beyond_the_boundary_is_reflected():
    link = SineSquared()
    inside, outside = link.raw(torch.tensor(0.04)), -link.raw(torch.tensor(0.04))
    assert link.probs(outside).item() == pytest.approx(link.probs(inside).item())


def test_what_is_stored_is_named_for_what_it_is():
    probs = torch.full((2, 2), 0.25)
    assert list(dict(BernoulliGraph(probs).named_parameters())) == ["edge_logits"]
    assert list(dict(BernoulliGraph(probs, link=SineSquared()).named_parameters())) == ["edge_angles"]


def test_a_link_is_an_object(unchecked, refused):
    for wrong in ("sigmoid", SineSquared):
        refused(BernoulliGraph, torch.full((2, 2), 0.25), link=wrong)


@pytest.mark.parametrize("link", LINKS)
def test_weighted_log_prob_equals_the_sum_over_graphs(rng, link):
    """With edges at 0 and 1 among them: value and gradient stay finite, and equal to log-probabilities row by row."""
    probs = torch.rand(4, 4, generator=rng, dtype=torch.float64)
    probs[0, 1], probs[2, 3] = 0.0, 1.0
    graph = BernoulliGraph(probs, link=link)
    graphs = graph.sample(5, num_pairs=3, generator=rng)
    for shape in ((3, 5, 4, 1), (3, 5, 1, 1)):
        weights = torch.randn(shape, generator=rng, dtype=torch.float64)
        ours = graph.weighted_log_prob(weights, graphs)
        plain = (weights[..., 0] * graph.row_log_prob(graphs)).sum(-1).mean()
        gradients = [torch.autograd.grad(value, graph.raw)[0] for value in (ours, plain)]
        assert ours.item() == pytest.approx(plain.item(), abs=1e-12)
        assert torch.isfinite(gradients[0]).all()
        assert torch.allclose(*gradients, atol=1e-12)


# ---------------------------------------------------------------- reachability


@pytest.mark.parametrize("nodes", [1, 12, WORD_BITS])
def test_powers_by_words_are_those_by_products(rng, nodes):
    graphs = (torch.rand(2, 3, nodes, nodes, generator=rng) < 1.5 / nodes).double()
    for found, wanted in zip(powers_by_words(graphs, 4), boolean_powers(graphs, 4), strict=True):
        assert torch.equal(found, wanted)


# ---------------------------------------------------------------- graphs whose edges have no direction


def symmetric_probs(nodes, rng):
    probs = torch.rand(nodes, nodes, generator=rng, dtype=torch.float64)
    return (probs + probs.mT) / 2


@pytest.mark.parametrize("link", LINKS)
def test_probabilities_of_all_symmetric_graphs_add_up_to_one(rng, link):
    probs = symmetric_probs(3, rng)
    coins = oracles.all_graphs(torch.ones(3, 3, dtype=torch.bool).triu())  # 64 of them
    graph = BernoulliGraph(probs, link=link, symmetric=True)
    log_prob = graph.log_prob(torch.maximum(coins, coins.mT)[None])[0]
    expected = torch.where(coins > 0, probs, 1 - probs)
    expected[:, *torch.ones(3, 3).tril(-1).nonzero().T] = 1.0
    assert torch.allclose(log_prob.exp(), expected.prod(-1).prod(-1), atol=1e-14)
    assert log_prob.exp().sum().item() == pytest.approx(1, abs=1e-12)


def test_a_graph_with_an_edge_in_one_direction_alone_is_impossible():
    graph = BernoulliGraph(torch.full((2, 2), 0.5), symmetric=True)
    for one_way in ([[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]):
        assert graph.log_prob(torch.tensor(one_way)[None, None]).item() == -math.inf


@pytest.mark.parametrize("link", LINKS)
def test_samples_are_symmetric_with_the_right_frequencies(rng, link):
    """36 coins at five standard errors: a false alarm once in 48,000 seeds; this seed is fixed."""
    probs, count = symmetric_probs(8, rng).float(), 20_000
    graphs = BernoulliGraph(probs, link=link, symmetric=True).sample(count, generator=rng)
    assert torch.equal(graphs, graphs.mT)
    frequency = graphs.mean((0, 1))
    assert ((frequency - probs).abs() < 5 * (probs * (1 - probs) / count).sqrt()).all()


@pytest.mark.parametrize("link", LINKS)
def test_only_what_is_stored_above_the_diagonal_counts(rng, link):
    graph = BernoulliGraph(symmetric_probs(4, rng), link=link, symmetric=True)
    before = graph.edge_probs.detach().clone()
    with torch.no_grad():
        graph.raw.add_(torch.rand(4, 4, generator=rng, dtype=torch.float64).tril(-1))
    assert torch.equal(graph.edge_probs.detach(), before)
    assert torch.allclose(graph.log_probs()[0].exp(), before, atol=1e-14)
    assert torch.allclose(graph.log_probs()[1].exp(), 1 - before, atol=1e-14)
    stack = torch.stack([graph.raw.detach(), graph.raw.detach() + 0.1])
    shown = graph.probs_from(stack)  # (replica, node, node)
    assert torch.equal(shown[0], before)
    assert torch.equal(shown, shown.mT)
    assert torch.allclose(shown[1].triu(), link.probs(stack[1]).triu(), atol=1e-14)


def test_score_is_the_derivative_of_log_prob_symmetric(rng):
    fixed = torch.zeros(3, 3, dtype=torch.bool)
    fixed[0, 1] = fixed[1, 0] = True
    graph = BernoulliGraph(symmetric_probs(3, rng), fixed, symmetric=True)
    graphs = graph.sample(1, generator=rng)
    graph.log_prob(graphs).sum().backward()
    assert torch.allclose(graph.edge_logits.grad, graph.score(graphs)[0, 0], atol=1e-14)
    assert (graph.edge_logits.grad.triu() != 0).sum() == 5  # six coins, one of them held


@pytest.mark.parametrize("link", LINKS)
def test_weighted_log_prob_counts_every_coin_once(rng, link):
    probs = symmetric_probs(4, rng)
    probs[0, 1] = probs[1, 0] = 0.0
    probs[2, 3] = probs[3, 2] = 1.0
    graph = BernoulliGraph(probs, link=link, symmetric=True)
    graphs = graph.sample(5, num_pairs=3, generator=rng)
    weights = torch.randn(3, 5, 4, 4, generator=rng, dtype=torch.float64)
    total = sum(
        weights[b, s, i, j] * (probs[i, j] if graphs[b, s, i, j] else 1 - probs[i, j]).log()
        for b in range(3)
        for s in range(5)
        for i in range(4)
        for j in range(i, 4)
    )
    ours = graph.weighted_log_prob(weights, graphs)
    assert ours.item() == pytest.approx(float(total) / 15, abs=1e-12)
    assert torch.isfinite(torch.autograd.grad(ours, graph.raw)[0]).all()
    by_row = graph.weighted_log_prob(weights[..., :1], graphs)
    assert by_row.item() == pytest.approx((weights[..., 0] * graph.row_log_prob(graphs)).sum(-1).mean().item())


@pytest.mark.parametrize("constant", [True, False])
def test_a_prior_counts_every_coin_once(rng, constant):
    probs, prior = symmetric_probs(4, rng), symmetric_probs(4, rng)
    prior = torch.tensor(0.2, dtype=torch.float64) if constant else prior
    fixed = torch.zeros(4, 4, dtype=torch.bool)
    fixed[0, 2] = fixed[2, 0] = True
    graph, edge_prior = BernoulliGraph(probs, fixed, symmetric=True), EdgePrior(prior, weight=0.7)
    edge_prior.check(graph)
    divergence = kl_divergence(Bernoulli(probs), Bernoulli(prior.expand(4, 4)))
    expected = 0.7 * sum(divergence[i, j] for i in range(4) for j in range(i, 4) if (i, j) != (0, 2))
    assert edge_prior.penalty(graph).item() == pytest.approx(float(expected), abs=1e-12)


def test_fresh_replicas_start_symmetric(rng):
    graph = BernoulliGraph.uniform(12, generator=rng, symmetric=True)
    assert 0 < graph.edge_probs.min() < graph.edge_probs.max() < 0.1
    fresh = graph.initial_parameters(rng)["edge_logits"]
    assert torch.equal(fresh, fresh.mT)
    assert not torch.equal(torch.sigmoid(fresh), graph.edge_probs)


def test_what_differs_from_its_mirror_image_is_refused(unchecked, refused):
    refused(BernoulliGraph, torch.tensor([[0.0, 0.5], [0.25, 0.0]]), symmetric=True)
    fixed = torch.tensor([[False, True], [False, False]])
    refused(BernoulliGraph, torch.full((2, 2), 0.5), fixed, symmetric=True)
    prior = EdgePrior(torch.tensor([[0.5, 0.5], [0.25, 0.5]]))
    refused(prior.check, BernoulliGraph(torch.full((2, 2), 0.5), symmetric=True))

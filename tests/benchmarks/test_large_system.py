import torch
from benchmarks.large_system import LargeSystem

from tacit.graph import BernoulliGraph
from tacit.systems import community_edge_probs


def test_the_edges_are_those_of_the_chain_of_communities():
    system = LargeSystem(4, num_candidates=10)
    dense = torch.zeros(24, 24)
    target = system.candidates.row_node[:, None].expand_as(system.candidates.sources)
    dense[target[system.candidates.used], system.candidates.sources[system.candidates.used]] = system.true_edge_probs[
        system.candidates.used
    ]
    assert torch.equal(dense, community_edge_probs(4).fill_diagonal_(0))
    assert system.candidates.num_edges == 24 * 10
    assert not bool((system.candidates.sources == system.candidates.row_node[:, None])[system.candidates.used].any())


def test_pairs_have_the_mean_of_the_dense_system(rng):
    """The same predictor over matrices, averaged over many graphs, gives the mean of the targets."""
    system = LargeSystem(2, num_candidates=8)
    one = system.generate(1, seed=3).inputs
    graph = BernoulliGraph(community_edge_probs(2).fill_diagonal_(0))
    many = system.true_predictor()(one, graph.sample(4000, generator=rng))[0, :, :, 0]
    candidates = system.true_edges
    listed = BernoulliGraph(0.75 * candidates.used.float(), candidates=candidates)
    drawn = listed.as_operator(listed.sample(4000, generator=rng))
    found = system.true_predictor()(one, drawn)[0, :, :, 0]
    errors = ((many.var(0) + found.var(0)) / 4000).sqrt()
    assert bool(((many.mean(0) - found.mean(0)).abs() < 5 * errors).all())  # one false alarm in 100,000


def test_candidates_hold_every_edge(refused):
    refused(LargeSystem, 2, num_candidates=3)
    refused(LargeSystem, 2, num_candidates=12)

import pytest
import torch
from benchmarks.large_system import LargeSystem

from tacit.errors import InputError
from tacit.graph import BernoulliGraph
from tacit.systems import community_edge_probs


def test_the_edges_are_those_of_the_chain_of_communities():
    system = LargeSystem(4, candidates=10)
    dense = torch.zeros(24, 24)
    target = system.slots.row_node[:, None].expand_as(system.slots.senders)
    dense[target[system.slots.used], system.slots.senders[system.slots.used]] = system.true_edge_probs[
        system.slots.used
    ]
    assert torch.equal(dense, community_edge_probs(4).fill_diagonal_(0))
    assert system.slots.num_edges == 24 * 10
    assert not bool((system.slots.senders == system.slots.row_node[:, None])[system.slots.used].any())


def test_pairs_have_the_mean_of_the_dense_system(rng):
    """The same predictor over matrices, averaged over many graphs, gives the mean of the targets."""
    system = LargeSystem(2, candidates=8)
    one = system.generate(1, seed=3).inputs
    graph = BernoulliGraph(community_edge_probs(2).fill_diagonal_(0))
    many = system.true_predictor()(one, graph.sample(4000, generator=rng))[0, :, :, 0]
    slots = system.true_slots
    listed = BernoulliGraph(0.75 * slots.used.float(), slots=slots)
    drawn = listed.for_reading(listed.sample(4000, generator=rng))
    found = system.true_predictor()(one, drawn)[0, :, :, 0]
    errors = ((many.var(0) + found.var(0)) / 4000).sqrt()
    assert bool(((many.mean(0) - found.mean(0)).abs() < 5 * errors).all())  # one false alarm in 100,000


def test_candidates_hold_every_edge():
    with pytest.raises(InputError, match="candidates needs to be from 6, so that no edge is left out, to below"):
        LargeSystem(2, candidates=3)
    with pytest.raises(InputError, match="to below the number of nodes, 12, got 12"):
        LargeSystem(2, candidates=12)

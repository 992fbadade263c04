import pytest
import torch
from torch import nn

import oracles
from tacit.predictors import HopPredictor, initial_parameters, num_hops_of


@pytest.mark.parametrize(("hops", "channels"), [(1, 1), (2, 1), (3, 2)])
@pytest.mark.parametrize("shared", [True, False])
def test_hop_predictor_equals_the_loop(rng, hops, channels, shared):
    weights = torch.randn(hops, 4, channels, generator=rng, dtype=torch.float64)
    inputs = torch.randn(5, 6, 4, generator=rng, dtype=torch.float64)
    graphs = (torch.rand(1 if shared else 5, 3, 6, 6, generator=rng) < 0.3).double()
    samples = HopPredictor(weights)(inputs, graphs)
    assert samples.shape == (5, 3, 6, channels)
    for b in range(5):
        for s in range(3):
            expected = oracles.hop_predictor(inputs[b], graphs[0 if shared else b, s], weights)
            assert torch.allclose(samples[b, s], expected, atol=1e-12)


def test_row_receives_and_column_sends():
    adjacency = torch.tensor([[0.0, 1.0], [0.0, 0.0]])  # node 0 reads node 1
    inputs = torch.tensor([[0.1], [0.7]])[None]
    samples = HopPredictor(torch.ones(1, 1, 1))(inputs, adjacency[None, None])
    assert samples.flatten().tolist() == pytest.approx([torch.tanh(torch.tensor(0.7)).item(), 0.0])


def test_initial_parameters_follow_the_generator_and_leave_the_global_one_alone(rng):
    with torch.random.fork_rng():
        network = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    network[2].bias.requires_grad_(False)
    first, second, third = (initial_parameters(network, torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    assert set(first) == {"0.weight", "0.bias", "2.weight"}
    assert all(torch.equal(first[k], second[k]) for k in first)
    assert not torch.equal(first["0.weight"], third["0.weight"])
    hop = HopPredictor.random(2, 4, generator=rng)
    assert hop.hop_weights.abs().max() < 0.5
    assert num_hops_of(hop) == 2
    assert num_hops_of(network) is None


def test_errors(unchecked, refused):
    refused(HopPredictor, torch.zeros(2, 4))
    refused(HopPredictor, torch.full((2, 4, 1), torch.nan))
    refused(HopPredictor.random, 0, 4, generator=torch.Generator())

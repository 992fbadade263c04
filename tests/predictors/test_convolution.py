import warnings

import pytest
import torch
from torch import nn

import oracles
from tacit.estimators import check_locality, check_relaxation
from tacit.predictors import ConvolutionStack, HopPredictor, initial_parameters, num_hops_of
from toys import even_graph

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyG's own deprecations
    from torch_geometric.nn import GraphConv


@pytest.mark.parametrize("self_loops", [False, True])
def test_equals_a_stack_of_graph_convolutions_of_pyg(rng, self_loops):
    stack = ConvolutionStack.random([3, 5, 2], self_loops=self_loops, generator=rng)
    inputs = torch.randn(2, 4, 3, generator=rng)
    graphs = (torch.rand(2, 3, 4, 4, generator=rng) < 0.4).float()
    ours = stack(inputs, graphs)
    layers = []
    with torch.random.fork_rng():
        layers = [GraphConv(3, 5), GraphConv(5, 2)]
    for number, layer in enumerate(layers):
        layer.lin_rel.weight.data, layer.lin_rel.bias.data = stack.neighbours[number].data.T, stack.bias[number].data
        layer.lin_root.weight.data = stack.own[number].data.T
    for pair in range(2):
        for graph in range(3):
            adjacency = graphs[pair, graph].clone()
            if self_loops:
                adjacency.fill_diagonal_(1)
            target, source = adjacency.nonzero().T  # row receives, column sends
            edge_index = torch.stack([source, target])
            theirs = torch.tanh(layers[1](torch.relu(layers[0](inputs[pair], edge_index)), edge_index))
            assert torch.allclose(ours[pair, graph], theirs, atol=1e-6)


def test_it_is_as_local_as_it_says_and_has_derivatives(rng):
    stack = ConvolutionStack.random([3, 8, 8, 1], generator=rng)
    check_locality(stack, even_graph(10), 3, stack.num_hops, generator=rng)
    check_relaxation(stack, even_graph(10), 3, generator=rng)


def test_the_diagonal_does_not_matter_with_self_loops(rng):
    stack = ConvolutionStack.random([3, 4, 1], self_loops=True, generator=rng)
    inputs, graphs = torch.randn(1, 5, 3, generator=rng), torch.zeros(1, 1, 5, 5)
    assert torch.equal(stack(inputs, graphs), stack(inputs, graphs + torch.eye(5)))


def test_bad_widths(unchecked, refused):
    for widths in ([4], [4, 0, 1], [4, 2.5, 1]):
        refused(ConvolutionStack, widths)


def test_a_linear_output_is_what_the_tanh_is_taken_of(rng):
    bounded = ConvolutionStack.random([3, 5, 2], generator=rng)
    linear = ConvolutionStack([3, 5, 2], output="linear")
    linear.load_state_dict(bounded.state_dict())
    inputs, graphs = torch.randn(2, 4, 3, generator=rng), torch.ones(1, 1, 4, 4)
    assert torch.equal(linear(inputs, graphs).tanh(), bounded(inputs, graphs))
    assert linear(inputs, graphs).abs().max() > 1


def test_an_unknown_output(unchecked, refused):
    refused(ConvolutionStack, [3, 1], output="none")


# ---------------------------------------------------------------- predictors


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

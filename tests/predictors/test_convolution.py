import warnings

import pytest
import torch

from tacit.estimators import check_locality, check_relaxation
from tacit.predictors import ConvolutionStack
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

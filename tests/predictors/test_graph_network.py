import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from tacit.estimators import check_locality, check_relaxation
from tacit.predictors import GraphNetwork, initial_parameters
from tacit.predictors.network import GRU, WindowLayers
from toys import even_graph


def started(predictor, rng):
    predictor.load_state_dict(initial_parameters(predictor, rng))
    return predictor.double()


def test_the_unit_equals_that_of_torch(rng):
    ours = started(GRU(3, 5), rng)
    with torch.random.fork_rng():
        theirs = nn.GRU(3, 5, batch_first=True).double()
    theirs.load_state_dict({f"{name}_l0": value for name, value in ours.state_dict().items()})
    windows = torch.randn(4, 2, 7, 3, generator=rng).double()
    expected = theirs(windows.flatten(0, 1))[1][0].view(4, 2, 5)
    assert torch.allclose(ours(windows), expected, atol=1e-12)


def test_the_dense_layers_equal_those_of_torch(rng):
    ours = started(WindowLayers(4, 3, 5), rng)
    windows = torch.randn(2, 6, 4, 3, generator=rng).double()
    inner = nn.functional.linear(windows.view(2, 6, 12), ours.first.mT, ours.first_bias).relu()
    expected = nn.functional.linear(inner, ours.second.mT, ours.second_bias).relu()
    assert torch.allclose(ours(windows), expected, atol=1e-12)


def by_loop(predictor, x, adjacency):
    """One pair and one graph: (node, window * feature) to (node, mean and further numbers)."""
    nodes, layout = len(x), predictor.layout
    first = [predictor.encoder(x[i].view(1, 1, layout.window, layout.num_features))[0, 0] for i in range(nodes)]
    states = first
    for own, neighbours, bias in zip(predictor.own, predictor.neighbours, predictor.bias, strict=True):
        new = []
        for i in range(nodes):
            read = [states[j] for j in range(nodes) if adjacency[i, j] > 0]
            mean = sum(read) / len(read) if read else torch.zeros_like(states[0])
            new.append(torch.relu(states[i] @ own + mean @ neighbours + bias))
        states = new
    rows = []
    for i in range(nodes):
        channels = predictor.out_channels
        mean = (first[i] @ predictor.head_own + predictor.head_bias)[:channels]
        mean = mean + states[i] @ predictor.head_graph[:, :channels]
        if predictor.residual:
            mean = mean + x[i].view(layout.window, -1)[-1, :channels]
        raw = (first[i] @ predictor.head_own + predictor.head_bias)[channels:]
        if predictor.head_reads_graph:
            raw = raw + states[i] @ predictor.head_graph[:, channels:]
        rows.append(torch.cat([mean, raw]))
    return torch.stack(rows)


@pytest.mark.parametrize("encoder", ["recurrent", "feedforward"])
@pytest.mark.parametrize(
    ("numbers", "reads", "layers", "channels", "residual", "shared"),
    [(1, False, 1, 1, True, True), (2, False, 2, 1, True, False), (3, True, 1, 2, False, True)],
)
def test_equals_the_loop(rng, encoder, numbers, reads, layers, channels, residual, shared):
    head = {"numbers_per_target": numbers, "head_reads_graph": reads}
    predictor = started(getattr(GraphNetwork, encoder)(4, 2, channels, 6, layers, residual, **head), rng)
    inputs = torch.randn(3, 5, 8, generator=rng).double()
    graphs = (torch.rand(1 if shared else 3, 4, 5, 5, generator=rng) < 0.4).double()
    outputs = predictor(inputs, graphs)
    assert outputs.shape == (3, 4, 5, channels * numbers)
    for b in range(3):
        for s in range(4):
            expected = by_loop(predictor, inputs[b], graphs[0 if shared else b, s])
            assert torch.allclose(outputs[b, s], expected, atol=1e-12)


@pytest.mark.parametrize(("layers", "numbers"), [(1, 1), (2, 2)])
def test_it_is_as_local_as_it_says_and_has_derivatives(rng, layers, numbers, refused):
    head = {"numbers_per_target": numbers, "head_reads_graph": True}
    predictor = GraphNetwork.recurrent(3, 1, hidden=8, num_layers=layers, **head)
    assert predictor.num_hops == layers
    check_locality(predictor, even_graph(8), 3, layers, generator=rng)
    check_relaxation(predictor, even_graph(8), 3, generator=rng)
    if layers == 2:
        refused(check_locality, predictor, even_graph(8), 3, 1, generator=rng)


def test_further_numbers_read_the_graph_only_where_they_are_told_to(rng):
    inputs, graphs = torch.randn(2, 5, 3, generator=rng).double(), torch.ones(1, 2, 5, 5).double()
    graphs[:, 0] = 0
    for reads in (False, True):
        predictor = started(GraphNetwork.recurrent(3, 1, numbers_per_target=2, head_reads_graph=reads), rng)
        further = predictor(inputs, graphs)[..., 1]
        assert torch.equal(further[:, 0], further[:, 1]) != reads


@pytest.mark.parametrize("encoder", ["recurrent", "feedforward"])
def test_it_can_be_lifted_differentiated_and_traced(rng, encoder):
    predictor = started(getattr(GraphNetwork, encoder)(3, 2, hidden=4, numbers_per_target=2), rng)
    inputs, graphs = torch.randn(2, 3, 6, generator=rng).double(), torch.ones(1, 2, 3, 3).double()

    def loss(parameters):
        return functional_call(predictor, parameters, (inputs, graphs)).square().sum()

    parameters = {name: value.detach() for name, value in predictor.named_parameters()}
    stacked = {name: torch.stack([value, 2 * value]) for name, value in parameters.items()}
    lifted = vmap(grad(loss))(stacked)
    traced = make_fx(grad(loss))(parameters)(parameters)
    for name, value in grad(loss)(parameters).items():
        assert float(value.abs().max()) > 0
        assert torch.allclose(lifted[name][0], value, atol=1e-12)
        assert torch.allclose(traced[name], value, atol=1e-12)


def test_errors(unchecked, refused):
    refused(GraphNetwork.recurrent, 3, 1, numbers_per_target=0)
    refused(GraphNetwork.recurrent, 3, 1, hidden=0)
    refused(GraphNetwork.recurrent, 3, 1, num_layers=0)
    refused(GraphNetwork.recurrent(3, 1), torch.zeros(1, 2, 4), torch.zeros(1, 1, 2, 2))

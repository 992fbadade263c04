import pytest
import torch
from torch.func import functional_call, grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from tacit.assessment.evaluation import persistence
from tacit.assessment.evidence import ColumnForm
from tacit.assessment.evidence.candidates import build_columns
from tacit.data import Pairs
from tacit.estimators import check_locality, check_relaxation
from tacit.predictors import (
    GraphFilter,
    GraphNetwork,
    SeriesLayout,
    SimultaneousFilter,
    initial_parameters,
    num_hops_of,
)
from tacit.registry import PREDICTORS
from toys import even_graph


def started(predictor, rng):
    predictor.load_state_dict(initial_parameters(predictor, rng))
    for name, value in predictor.named_parameters():
        if "bias" in name:
            value.data = torch.randn(value.shape, generator=rng)
    return predictor.double()


def by_loop(predictor, x, adjacency, window, features, channels, sent):
    """One pair, one graph, node by node and edge by edge."""
    nodes, rows = len(x), []
    for i in range(nodes):
        total = predictor.bias[i] + x[i] @ predictor.own[i]
        for j in range(nodes):
            lags = torch.cat([x[j, lag * features : lag * features + sent] for lag in range(window)])
            total = total + adjacency[i, j] * (lags @ predictor.edge_weights[i, j])
        total = torch.tanh(total) if predictor.activation == "tanh" else total
        newest = x[i, (window - 1) * features : (window - 1) * features + channels]
        rows.append(total + newest if predictor.residual else total)
    return torch.stack(rows)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(
    ("channels", "sent", "activation", "residual"),
    [(1, None, "linear", True), (2, None, "tanh", True), (1, 3, "tanh", False), (2, 1, "linear", False)],
)
def test_equals_the_loop(rng, shared, channels, sent, activation, residual):
    predictor = started(
        GraphFilter(4, 5, 3, channels, activation=activation, residual=residual, sent_features=sent), rng
    )
    inputs = torch.randn(3, 4, 15, generator=rng).double()
    graphs = (torch.rand(1 if shared else 3, 6, 4, 4, generator=rng) < 0.5).double()
    samples = predictor(inputs, graphs)
    for b in range(3):
        for s in range(6):
            adjacency = graphs[0 if shared else b, s]
            expected = by_loop(predictor, inputs[b], adjacency, 5, 3, channels, sent or channels)
            assert torch.allclose(samples[b, s], expected, atol=1e-12)


def test_the_own_path_is_on_without_any_edge(rng):
    predictor = started(GraphFilter(3, 4, 1, residual=False), rng)
    inputs = torch.randn(2, 3, 4, generator=rng).double()
    empty = predictor(inputs, torch.zeros(1, 1, 3, 3).double())[:, 0]
    assert torch.allclose(empty, torch.einsum("bik,ikc->bic", inputs, predictor.own) + predictor.bias)


def test_two_edges_of_one_node_can_have_opposite_signs(rng):
    weights = torch.zeros(3, 3, 1, 1)
    weights[0, 1], weights[0, 2] = 1.0, -1.0
    predictor = GraphFilter(3, 1, 1, residual=False).with_weights(torch.zeros(3, 1, 1), weights)
    assert predictor(torch.ones(1, 3, 1), torch.ones(1, 1, 3, 3))[0, 0, 0, 0] == 0
    only_second = torch.zeros(1, 1, 3, 3)
    only_second[0, 0, 0, 2] = 1
    assert predictor(torch.ones(1, 3, 1), only_second)[0, 0, 0, 0] == -1


def test_it_is_local_and_has_derivatives(rng):
    predictor = GraphFilter(6, 3, 2, activation="tanh")
    assert num_hops_of(predictor) == 1
    check_locality(predictor, even_graph(6), 6, 1, generator=rng)
    check_relaxation(predictor, even_graph(6), 6, generator=rng)


def test_it_can_be_lifted_differentiated_and_traced(rng):
    predictor = started(GraphFilter(3, 2, 1), rng)
    inputs, graphs = torch.randn(2, 3, 2, generator=rng).double(), torch.ones(1, 2, 3, 3).double()

    def loss(parameters):
        return functional_call(predictor, parameters, (inputs, graphs)).square().sum()

    parameters = {name: value.detach() for name, value in predictor.named_parameters()}
    stacked = {name: torch.stack([value, 2 * value]) for name, value in parameters.items()}
    lifted = vmap(grad(loss))(stacked)
    traced = make_fx(grad(loss))(parameters)(parameters)
    for name, value in grad(loss)(parameters).items():
        assert torch.allclose(lifted[name][0], value, atol=1e-12)
        assert torch.allclose(traced[name], value, atol=1e-12)


def test_a_warm_start_is_where_replicas_start(rng):
    cold = GraphFilter(3, 2, 1)
    own, edges = torch.randn(3, 2, 1, generator=rng), torch.randn(3, 3, 2, 1, generator=rng)
    warm = cold.with_weights(own, edges)
    fresh = initial_parameters(warm, rng)
    assert torch.equal(fresh["own"], own)
    assert torch.equal(fresh["edge_weights"], edges)
    assert (fresh["bias"] == 0).all()
    assert (cold.own == 0).all(), "the first filter must stay as it was"
    moved = initial_parameters(cold.with_weights(own, edges, jitter=0.1), rng)["edge_weights"] - edges
    assert 0.05 < float(moved.square().mean().sqrt() / edges.square().mean().sqrt()) < 0.2
    assert not torch.equal(initial_parameters(cold, rng)["own"], initial_parameters(cold, rng)["own"])


def test_errors(unchecked, refused):
    refused(GraphFilter, 3, 0, 1)
    refused(GraphFilter, 3, 2, 1, 2)
    refused(GraphFilter, 3, 2, 1, activation="relu")
    refused(GraphFilter, 3, 2, 1, sent_features=2)
    refused(GraphFilter(3, 2, 1), torch.zeros(1, 3, 3), torch.zeros(1, 1, 3, 3))
    refused(GraphFilter(3, 2, 1).with_weights, torch.zeros(3, 2, 1), torch.zeros(3, 3))


def leveled(rng, nodes=3, window=2, residual=True):
    """A filter whose nodes have levels, with random weights; one feature and one known column beside the level."""
    return started(GraphFilter(nodes, window, 1, known=2, levels=1, residual=residual), rng)


@pytest.mark.parametrize("residual", [True, False])
def test_with_levels_it_equals_its_linear_parts(rng, residual):
    predictor = leveled(rng, residual=residual)
    inputs, graphs = (
        torch.randn(5, 3, 4, generator=rng).double(),
        (torch.rand(1, 4, 3, 3, generator=rng) < 0.5).double(),
    )
    offset, own, sent = predictor.linear_parts(inputs)
    weights = torch.einsum("bjk,ijkc->bijc", sent, predictor.edge_weights)
    expected = offset + predictor.bias + torch.einsum("bik,ikc->bic", own, predictor.own)
    expected = expected[:, None] + torch.einsum("bsij,bijc->bsic", graphs.expand(5, -1, -1, -1), weights)
    assert torch.allclose(predictor(inputs, graphs), expected, atol=1e-12)
    level = inputs[..., -1:]
    assert torch.equal(sent, inputs[..., :2] - level)
    assert torch.equal(own[..., 2], inputs[..., 2])  # the other known column
    assert torch.equal(own[..., 3:], torch.zeros_like(level) if residual else level)


def test_a_shift_of_a_node_and_its_level_moves_only_this_node(rng):
    predictor, shift = leveled(rng), torch.tensor([0.0, 7.0, 0.0]).double()
    inputs, graphs = torch.randn(5, 3, 4, generator=rng).double(), torch.ones(1, 2, 3, 3).double()
    moved = inputs.clone()
    moved[..., [0, 1, 3]] += shift[:, None]  # both lags and the level
    expected = predictor(inputs, graphs) + shift[:, None]
    assert torch.allclose(predictor(moved, graphs), expected, atol=1e-12)
    plain = leveled(rng, residual=False)
    assert not torch.allclose(plain(moved, graphs), plain(inputs, graphs) + shift[:, None], atol=1e-3)


# ---------------------------------------------------------------- columns after the window


NODES, WINDOW, FEATURES, KNOWN = 3, 2, 2, 2
WIDTH = WINDOW * FEATURES + KNOWN


def changed(inputs, column):
    other = inputs.clone()
    other[:, 1, column] += 1.0
    return other


def outputs(predictor, rng, column):
    """Return which nodes have other predictions after a change of one input of node 1, with no edge and with all."""
    for parameter in predictor.parameters():
        parameter.data = torch.randn(parameter.shape, generator=rng)
    if isinstance(predictor, SimultaneousFilter):
        predictor.within.data.zero_()
    inputs = torch.randn(5, NODES, WIDTH, generator=rng)
    moved = []
    for edge in (0.0, 1.0):
        graphs = torch.full((1, 1, NODES, NODES), edge)
        one, other = (predictor(values, graphs)[..., 0] for values in (inputs, changed(inputs, column)))
        moved.append((one != other).any(0)[0].tolist())
    return moved


@pytest.mark.parametrize("kind", [GraphFilter, SimultaneousFilter])
def test_a_filter_sends_no_known_column(kind, rng):
    predictor = kind(NODES, WINDOW, FEATURES, known=KNOWN)
    own = [False, True, False]
    assert outputs(predictor, rng, WIDTH - 1) == [own, own]
    assert outputs(predictor, rng, 0) == [own, [True] * NODES]  # the oldest value is sent


@pytest.mark.parametrize("build", [GraphNetwork.recurrent, GraphNetwork.feedforward])
def test_a_network_reads_known_columns(build, rng):
    predictor = build(WINDOW, FEATURES, hidden=16, known=KNOWN)
    assert outputs(predictor, rng, WIDTH - 1)[0] == [False, True, False]


@pytest.mark.parametrize("build", [GraphNetwork.recurrent, GraphNetwork.feedforward])
def test_a_network_has_weights_of_each_node_for_the_background(build, rng):
    with_it = build(WINDOW, FEATURES, hidden=8, known=3, levels=1, background=(NODES, 2), numbers_per_target=2)
    fresh = with_it.initial_parameters(rng)
    assert not fresh["background"].any()
    with_it.load_state_dict(fresh | {"background": torch.randn(NODES, 2, 1, generator=rng)})
    without = build(WINDOW, FEATURES, hidden=8, known=1, numbers_per_target=2)  # reads the covariate
    without.load_state_dict({name: value for name, value in fresh.items() if name != "background"})
    inputs, graphs = torch.randn(5, NODES, WINDOW * FEATURES + 3, generator=rng), torch.ones(1, 4, NODES, NODES)
    wave, level = inputs[..., -2], inputs[..., -1]
    apart = inputs[..., :-2].clone()
    apart[..., [0, FEATURES]] -= level[..., None]  # the first feature of each lag
    expected = without(apart, graphs)
    added = level + wave * with_it.background[:, 0, 0] + level * with_it.background[:, 1, 0]
    expected[..., 0] += added[:, None]
    torch.testing.assert_close(with_it(inputs, graphs), expected)


def test_the_newest_value_comes_before_the_known_columns(rng, refused):
    inputs = torch.randn(4, NODES, WIDTH, generator=rng)
    layout = SeriesLayout(WINDOW, FEATURES, known=KNOWN)
    assert torch.equal(layout.newest(inputs), inputs[..., 2:3])
    assert torch.equal(persistence(inputs, num_features=FEATURES, known=KNOWN), inputs[..., 2:3])
    assert torch.equal(layout.trailing(inputs), inputs[..., 4:])
    refused(layout.lags, inputs[..., :5])


def test_regressions_of_the_evidence_have_known_columns_of_the_target_alone(rng):
    inputs = torch.randn(50, NODES, WIDTH, generator=rng)
    inputs[:, 0, -1] = 0.0  # a term that this node does not use
    columns = build_columns(Pairs(inputs, inputs[..., :1]), SeriesLayout(WINDOW, FEATURES, known=KNOWN), ColumnForm(2))
    assert columns.group_size == WINDOW
    assert columns.own.shape == (50, NODES, WINDOW + 1 + KNOWN)  # lags, the newest flag, known columns
    assert (columns.own[:, 0, -1] == 0).all()
    known = (inputs[:, 2, -1] - inputs[:, 2, -1].mean()).double()
    assert torch.allclose(columns.own[:, 2, -1], known / known.square().mean().sqrt(), atol=1e-5)


@pytest.mark.parametrize("name", ["filter", "feedforward", "recurrent", "convolution", "hops"])
def test_kinds_are_built_for_known_columns(name, rng):
    from tacit.config import PredictorOptions
    from tacit.predictors import Sizes

    sizes, kind = Sizes(NODES, WINDOW, FEATURES, 1, KNOWN), PREDICTORS[name]
    options = PredictorOptions(kind=name, hidden=4, layers=1, residual=False, num_hops=2, activation="linear")
    predictor = kind.build(sizes, options, None, "gaussian")
    inputs = torch.randn(5, NODES, sizes.in_channels, generator=rng)
    assert predictor(inputs, torch.ones(1, 2, NODES, NODES)).shape[:3] == (5, 2, NODES)

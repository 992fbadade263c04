"""Columns after the window: a node uses its own, and nothing of them is sent along edges by a filter."""

import pytest
import torch

from tacit.assessment.evaluation import persistence
from tacit.assessment.evidence import ColumnForm
from tacit.assessment.evidence.candidates import build_columns
from tacit.data import Pairs
from tacit.predictors import GraphFilter, GraphNetwork, SeriesLayout, SimultaneousFilter
from tacit.registry import PREDICTORS

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

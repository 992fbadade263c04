"""Regressions of models with effects within a step: the targets of sources are one more column of theirs."""

import torch

from tacit.data import Pairs
from tacit.graph import BernoulliGraph
from tacit.local import LocalModel, fit_moments, start_at_regression
from tacit.losses import EnergyScore
from tacit.observation import SimultaneousNoise
from tacit.predictors import SimultaneousFilter
from tacit.training import LatentGraphModel

ALLOWED = torch.tensor([[0, 1, 0], [0, 0, 0], [1, 1, 0]])
EDGES = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])  # 2 -> 1 has lags alone


def made(missing=False, rows=80):
    rng = torch.Generator().manual_seed(0)
    predictor = SimultaneousFilter(3, 2, 1)
    predictor.allow_within(ALLOWED)
    graph = BernoulliGraph(EDGES, fixed=EDGES == 0)
    model = LatentGraphModel(graph, predictor, EnergyScore(), observation=SimultaneousNoise(3)).double()
    inputs, targets = (torch.randn(rows, 3, size, generator=rng, dtype=torch.double) for size in (2, 1))
    targets[:, 0] += 0.8 * targets[:, 1] + inputs[:, 0, 1:]
    targets[:, 2] += 0.5 * targets[:, 0]
    observed = (torch.rand(rows, 3, 1, generator=rng) > 0.2).double() if missing else None
    return model, Pairs(inputs, targets, observed)


def least_squares(pairs, node, weights=None):
    """Return coefficients of own inputs, a constant, and by source its lags and, where it may act, its target."""
    weights = torch.ones(len(pairs)).double() if weights is None else weights
    columns, sources = [pairs.inputs[:, node], torch.ones(len(pairs), 1).double()], EDGES[node].nonzero()[:, 0]
    for source in sources:
        columns.append(pairs.inputs[:, source])
        if ALLOWED[node, source]:
            columns.append(pairs.targets[:, source])
    aim = pairs.targets[:, node, 0] - pairs.inputs[:, node, -1]  # changes from the last value
    rows = weights > 0
    return torch.linalg.lstsq(torch.cat(columns, 1)[rows], aim[rows]).solution, sources.tolist()


def compared(model, pairs, weights_of=lambda _node: None):
    data = LocalModel.of(model, pairs)
    for node in range(3):
        one, weights = data.moments(node), data.weights[:, node]
        every = torch.ones(1, one.sent.shape[0], dtype=torch.bool)
        found = fit_moments(one, weights[None], every, rounds=1)
        expected, sources = least_squares(pairs, node, weights_of(node))
        own, place = expected[:3], 3
        torch.testing.assert_close(found.own[0], own, atol=1e-8, rtol=0)
        for number, source in enumerate(sources):
            width = 2 + int(ALLOWED[node, source])
            weights = torch.zeros(3).double()
            weights[:width] = expected[place : place + width]
            torch.testing.assert_close(found.edges[0, number], weights, atol=1e-8, rtol=0)
            place += width


def test_with_all_gates_at_one_each_node_has_its_least_squares():
    compared(*made())


def test_a_pair_counts_for_a_node_where_its_sources_within_the_step_are_known():
    model, pairs = made(missing=True)
    seen = pairs.observed[..., 0]

    def weights_of(node):
        return seen[:, node] * torch.stack([seen[:, j] for j in range(3) if ALLOWED[node, j]] or [seen[:, node]]).prod(
            0
        )

    compared(model, pairs, weights_of)


def test_the_start_is_the_ridge_of_the_same_columns():
    model, pairs = made(rows=2000)
    assert start_at_regression(model, pairs)
    within = model.predictor.within.detach()
    assert torch.equal(within != 0, (ALLOWED > 0))
    for node in range(3):
        expected, sources = least_squares(pairs, node)
        place = 3
        for source in sources:
            width = 2 + int(ALLOWED[node, source])
            if ALLOWED[node, source]:
                assert abs(float(within[node, source] - expected[place + 2])) < 0.03  # a ridge is a little shorter
            place += width

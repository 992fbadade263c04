"""Symmetric graphs: gradients against the sum over every graph, where one coin makes two edges in two rows."""

import itertools

import pytest
import torch

import oracles
from tacit.estimators import Concrete, DisARM, OwnRowCredit, ReceptiveFieldCredit, ScoreFunction, StraightThrough
from tacit.graph import EdgePrior, SineSquared
from tacit.losses import NodewiseExpectedError
from toys import (
    LOSSES,
    ONE_EDGE,
    TOLERANCE,
    LinearHop,
    RowMean,
    check_exact,
    exact_gradients,
    gap,
    integrated_gradient,
    relative_bias,
    toy,
)

COINS = torch.ones(3, 3, dtype=torch.bool).triu(1)  # the three pairs of three nodes: eight graphs
WITH_LOOPS = torch.ones(3, 3, dtype=torch.bool).triu()  # 64 graphs
FOUR_NODES = torch.ones(4, 4, dtype=torch.bool).triu(1)  # 64 graphs, and nodes out of reach of an edge in many


@pytest.mark.parametrize("credit", ["global", "receptive_field"])
@pytest.mark.parametrize("estimator", [ScoreFunction(), DisARM()])
@pytest.mark.parametrize("name", ["rational_quadratic", "energy", "point_mse", "literature_mae", "elbo"])
def test_exact_over_all_symmetric_graphs_of_three_nodes(name, estimator, credit):
    loss = LOSSES[name](baseline="none")
    num_graphs = estimator.group_size * (1 + loss.pairwise)
    model, inputs, targets = toy(COINS, loss, 1, num_graphs, symmetric=True, estimator=estimator, credit=credit)
    check_exact(model, name, inputs, targets, COINS, 1, num_graphs)


@pytest.mark.parametrize("credit", ["global", "receptive_field"])
@pytest.mark.parametrize("baseline", ["leave_one_out", "moving_average"])
def test_exact_with_baselines(baseline, credit):
    loss = LOSSES["energy"](baseline=baseline)
    graphs = loss.min_graphs
    model, inputs, targets = toy(COINS, loss, 1, graphs, symmetric=True, credit=credit, link=SineSquared())
    check_exact(model, "energy", inputs, targets, COINS, 1, graphs)


def test_exact_at_joint_scope_and_with_a_prior_per_pair():
    """Each coin counts once in the prior, too."""
    prior = torch.tensor([[0.5, 0.3, 0.6], [0.3, 0.5, 0.2], [0.6, 0.2, 0.5]], dtype=torch.float64)
    loss = LOSSES["energy"](scope="joint", baseline="none")
    model, inputs, targets = toy(COINS, loss, 1, 2, symmetric=True, prior=EdgePrior(prior, weight=0.4))
    check_exact(model, "energy", inputs, targets, COINS, 1, 2)


@pytest.mark.parametrize("estimator", [ScoreFunction(), DisARM()])
@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize("free", [WITH_LOOPS, FOUR_NODES], ids=["loops", "four nodes"])
def test_receptive_field_credit_is_exact_with_loops_and_more_nodes(free, hops, estimator):
    loss, graphs = LOSSES["literature_mse"](baseline="none"), estimator.group_size
    choices = {"symmetric": True, "hops": hops, "estimator": estimator, "credit": "receptive_field"}
    model, inputs, targets = toy(free, loss, 1, graphs, **choices)
    check_exact(model, "literature_mse", inputs, targets, free, 1, graphs)


def test_receptive_field_credit_is_exact_for_averages_over_neighbours():
    model, inputs, targets = toy(FOUR_NODES, LOSSES["literature_mse"](baseline="none"), 1, 1, symmetric=True)
    model.predictor = RowMean(model.predictor.hop_weights.detach())
    assert model.estimator.credit == ReceptiveFieldCredit(2)
    check_exact(model, "literature_mse", inputs, targets, FOUR_NODES, 1, 1)


def test_receptive_field_credit_is_less_noisy_than_global():
    variance = {}
    for credit in ("receptive_field", "global"):
        loss = LOSSES["literature_mse"](baseline="none")
        model, inputs, targets = toy(FOUR_NODES, loss, 1, 1, symmetric=True, credit=credit)
        mean, square = oracles.gradient_moments(model, inputs, targets, FOUR_NODES, 1, 1)
        variance[credit] = float((square["graph.edge_logits"] - mean["graph.edge_logits"] ** 2).sum())
    assert variance["receptive_field"] < 0.95 * variance["global"]


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_a_coin_answers_once_for_each_node_that_reaches_either_end(rng, hops):
    coins = (torch.rand(1, 20, 5, 5, generator=rng) < 0.3).double().triu()
    graphs, cost = torch.maximum(coins, coins.mT), torch.randn(1, 20, 5, generator=rng, dtype=torch.float64)
    weights = ReceptiveFieldCredit(hops)(cost, graphs, symmetric=True)
    for s, i, j in itertools.product(range(20), range(5), range(5)):
        reached = {i, j}
        for _ in range(hops - 1):
            reached |= {m for m in range(5) for k in reached if graphs[0, s, m, k]}
        assert weights[0, s, i, j].item() == pytest.approx(sum(cost[0, s, m].item() for m in reached) / 5, abs=1e-12)
    if hops == 1:
        assert torch.equal(OwnRowCredit()(cost, graphs, symmetric=True), weights)


class BothRows(ReceptiveFieldCredit):
    """Adds what the two rows of a pair would answer for: a node that reaches both ends counts twice."""

    def __call__(self, advantage, graphs, *, symmetric=False):
        row = super().__call__(advantage, graphs, symmetric=not symmetric)
        return row + row.mT


class OneRow(ReceptiveFieldCredit):
    """Takes the row of the first node alone."""

    def __call__(self, advantage, graphs, *, symmetric=False):
        return super().__call__(advantage, graphs, symmetric=not symmetric)


@pytest.mark.parametrize("wrong", [BothRows, OneRow])
def test_credit_by_rows_is_not_exact(wrong):
    """One row misses nodes. Two rows count some twice, which weighs the costs of these nodes wrongly."""
    loss = LOSSES["literature_mse"](baseline="none")
    model, inputs, targets = toy(FOUR_NODES, loss, 1, 1, symmetric=True)
    model.estimator = ScoreFunction(wrong(2))
    expected = oracles.expected_gradient(model, inputs, targets, FOUR_NODES, 1, 1)["graph.edge_logits"]
    exact, _ = exact_gradients(model, "literature_mse", inputs, targets, FOUR_NODES)
    assert gap(expected, exact) > 1e-3


@pytest.mark.parametrize("estimator", [ScoreFunction(), DisARM()])
def test_own_row_credit_is_exact_for_one_hop(estimator):
    model, inputs, targets = toy(COINS, NodewiseExpectedError("mse"), 1, 2, hops=1, symmetric=True, estimator=estimator)
    check_exact(model, "literature_mse", inputs, targets, COINS, 1, 2)


def test_straight_through_is_exact_where_the_loss_is_linear_in_each_coin():
    loss = LOSSES["point_mse"](baseline="none")
    model, inputs, targets = toy(COINS, loss, 1, 2, symmetric=True, estimator=StraightThrough())
    model.predictor = LinearHop(model.predictor.hop_weights.detach())
    expected = oracles.expected_gradient(model, inputs, targets, COINS, 1, 2)
    exact, _ = exact_gradients(model, "point_mse", inputs, targets, COINS)
    assert gap(expected["graph.edge_logits"], exact) < TOLERANCE


def test_concrete_loses_its_bias_as_the_temperature_falls(rng):
    biases = []
    for temperature in (1.0, 0.1, 0.01):
        estimator = Concrete(temperature, temperature)
        loss = LOSSES["literature_mse"](baseline="none")
        model, inputs, targets = toy(ONE_EDGE, loss, 1, 1, symmetric=True, estimator=estimator)
        expected = integrated_gradient(model, inputs, targets, 1, 20_000)
        exact, _ = exact_gradients(model, "literature_mse", inputs, targets, ONE_EDGE)
        biases.append(relative_bias(expected, exact))
    assert biases == sorted(biases, reverse=True)
    assert biases == pytest.approx([0.488, 0.042, 0.003], abs=6e-4)
    uniforms = torch.rand(5, 3, 2, 2, generator=rng, dtype=torch.float64)
    soft = model.estimator.draw(model.graph, uniforms, torch.tensor(0.0))
    assert torch.equal(soft, soft.mT)
    assert torch.equal(soft.round(), model.graph.sample_from(uniforms))

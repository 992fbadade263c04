"""The unbiased gradient estimates against exact enumeration: an expectation is a sum over every tuple of graphs."""

import itertools

import pytest
import torch

import oracles
from tacit.estimators import Concrete, DisARM, OwnRowCredit, ReceptiveFieldCredit, ScoreFunction, StraightThrough
from tacit.graph import EdgePrior, SineSquared
from tacit.losses import MMD, EnergyScore, KernelScore, NodewiseExpectedError, RationalQuadratic
from tacit.predictors import HopPredictor
from toys import (
    LOSSES,
    ONE_EDGE,
    THREE_EDGES,
    TOLERANCE,
    TWO_EDGES,
    LinearHop,
    RowMean,
    check_exact,
    exact_gradients,
    gap,
    integrated_gradient,
    relative_bias,
    toy,
)

# estimator, baseline of the loss, graphs beyond the fewest (a baseline or a partner needs some)
WAYS = {
    "score function": (ScoreFunction(), "none", 0),
    "score function, more graphs": (ScoreFunction(), "none", 1),
    "leave-one-out": (ScoreFunction(), "leave_one_out", 0),
    "moving average": (ScoreFunction(), "moving_average", 0),
    "disarm": (DisARM(), "none", None),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scope", ["node", "joint"])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_of_theta_and_psi_are_exact_in_expectation(name, scope, way):
    estimator, baseline, extra = WAYS[way]
    loss = LOSSES[name](scope=scope, baseline=baseline)
    num_graphs = 2 * (1 + loss.pairwise) if extra is None else loss.min_graphs + extra
    model, inputs, targets = toy(THREE_EDGES, loss, 1, num_graphs, estimator=estimator)
    check_exact(model, name, inputs, targets, THREE_EDGES, 1, num_graphs)


@pytest.mark.parametrize("credit", ["global", "receptive_field"])
@pytest.mark.parametrize("estimator", [ScoreFunction(), DisARM()])
@pytest.mark.parametrize("name", ["energy", "point_mse", "literature_mae", "elbo"])
def test_exact_with_sine_squared_probabilities(name, estimator, credit):
    loss = LOSSES[name](baseline="none")
    num_graphs = estimator.group_size * (1 + loss.pairwise)
    choices = {"estimator": estimator, "credit": credit, "link": SineSquared()}
    model, inputs, targets = toy(THREE_EDGES, loss, 1, num_graphs, **choices)
    check_exact(model, name, inputs, targets, THREE_EDGES, 1, num_graphs)


@pytest.mark.parametrize("estimator", [ScoreFunction(), DisARM()])
@pytest.mark.parametrize("scope", ["node", "joint"])
@pytest.mark.parametrize("name", LOSSES)
def test_exact_with_missing_targets(name, scope, estimator):
    """Two pairs that share their graphs, one with a missing node; a third that observes nothing counts for nothing."""
    loss = LOSSES[name](scope=scope, baseline="none")
    num_graphs = estimator.group_size * (1 + loss.pairwise)
    model, inputs, targets = toy(TWO_EDGES, loss, 3, num_graphs, share=True, estimator=estimator)
    observed = torch.tensor([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]], dtype=torch.float64)[..., None]
    check_exact(model, name, inputs, targets, TWO_EDGES, 1, num_graphs, observed)


@pytest.mark.parametrize("baseline", ["leave_one_out", "moving_average"])
@pytest.mark.parametrize("scope", ["node", "joint"])
def test_baselines_stay_exact_with_missing_targets(scope, baseline):
    loss = LOSSES["energy"](scope=scope, baseline=baseline)
    model, inputs, targets = toy(TWO_EDGES, loss, 2, 3, share=True)
    observed = torch.tensor([[1.0, 1.0], [0.0, 1.0]], dtype=torch.float64)[..., None]
    check_exact(model, "energy", inputs, targets, TWO_EDGES, 1, 3, observed)


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("scope", ["node", "joint"])
def test_exact_for_batches_with_shared_and_with_own_graphs(share, scope):
    model, inputs, targets = toy(TWO_EDGES, EnergyScore(scope=scope), 2, 3, share=share)
    check_exact(model, "energy", inputs, targets, TWO_EDGES, 1 if share else 2, 3)


@pytest.mark.parametrize("prior", [0.3, [[0.3, 0.6], [0.2, 0.7]]])
@pytest.mark.parametrize("name", ["energy", "point_mse", "literature_mse"])
def test_exact_with_the_penalty_of_a_prior(name, prior):
    loss = LOSSES[name](baseline="none")
    edge_prior = EdgePrior(torch.tensor(prior, dtype=torch.float64), weight=0.4)
    model, inputs, targets = toy(THREE_EDGES, loss, 1, loss.min_graphs, prior=edge_prior)
    check_exact(model, name, inputs, targets, THREE_EDGES, 1, loss.min_graphs)


@pytest.mark.parametrize("num_graphs", [2, 3])
@pytest.mark.parametrize("share", [True, False])
def test_baseline_of_the_paper_has_the_predicted_bias(share, num_graphs):
    pairs = 2
    loss = MMD(RationalQuadratic(0.3), scope="joint", baseline="paper")
    model, inputs, targets = toy(TWO_EDGES, loss, pairs, num_graphs, share=share)
    draws = 1 if share else pairs
    expected = oracles.expected_gradient(model, inputs, targets, TWO_EDGES, draws, num_graphs)["graph.edge_logits"]
    values = num_graphs if share else num_graphs * pairs
    parts = kernel_parts("rational_quadratic", model, inputs, targets, TWO_EDGES)
    assert gap(expected, (1 - 2 / values) * parts["spread"] + (1 - 1 / values) * parts["data"]) < TOLERANCE
    assert gap(expected, parts["spread"] + parts["data"]) > 1e-4


def kernel_parts(name, model, inputs, targets, free):
    """The exact gradients for theta of the two terms of a kernel score, apart."""

    def expectation(part):
        def total(probs, samples):
            pairs = [oracles.kernel_expectation(name, probs, s, y)[part] for s, y in zip(samples, targets, strict=True)]
            return sum(pairs) / len(pairs)

        return total

    return {
        part: exact_gradients(model, name, inputs, targets, free, expectation=expectation(number))[0]
        for number, part in enumerate(("spread", "data"))
    }


class TrapBaseline(KernelScore):
    """Leaves out row s and column t of the kernel matrix only; entries in column s still depend on graph s."""

    def __call__(self, samples, targets, observed=None, **options):
        terms = super().__call__(samples, targets, observed, **options)
        k = self.kernel(self._pairwise_squared_distance(samples, observed))
        count = samples.shape[1]
        baseline = torch.zeros_like(terms.cost)
        for s, t in itertools.permutations(range(count), 2):
            rest = [k[:, u, v] for u, v in itertools.permutations(range(count), 2) if u != s and v != t]
            baseline[:, s] += 2 * self.weight * sum(rest) / len(rest) / (count - 1)
        return terms._replace(baseline=baseline)


def test_trap_baseline_fails_the_check():
    """Its baseline keeps entries that depend on graph s, which shrinks the gradient of the spread."""
    model, inputs, targets = toy(ONE_EDGE, TrapBaseline(RationalQuadratic(0.3), scope="joint"), 1, 4)
    expected = oracles.expected_gradient(model, inputs, targets, ONE_EDGE, 1, 4)["graph.edge_logits"][0, 1]
    parts = kernel_parts("rational_quadratic", model, inputs, targets, ONE_EDGE)
    exact = (parts["spread"] + parts["data"])[0, 1]
    assert abs(expected - exact) > 1e-3
    # the gradient of the data term is untouched, so the gap is the shrinkage of the spread term
    assert (expected - exact) / parts["spread"][0, 1] == pytest.approx(-3 / 7, abs=1e-9)  # 43% at S = 4


@pytest.mark.parametrize("predictor", [HopPredictor, RowMean])
def test_receptive_field_credit_is_exact_over_all_graphs_of_three_nodes(predictor):
    free = torch.ones(3, 3, dtype=torch.bool)  # 512 graphs
    loss = LOSSES["literature_mse"](baseline="none")  # one graph at a time is enough for all of them
    model, inputs, targets = toy(free, loss, 1, 1, credit="receptive_field")
    model.predictor = predictor(model.predictor.hop_weights.detach())
    check_exact(model, "literature_mse", inputs, targets, free, 1, 1)


FOUR_EDGES = torch.tensor([[False, True, True], [False, False, True], [True, False, False]])


@pytest.mark.parametrize("estimator", [ScoreFunction(), DisARM()])
def test_receptive_field_credit_with_pairs_of_graphs_is_exact_and_less_noisy(estimator):
    """16 graphs and 4,096 triples of them, or 81 antithetic pairs and 6,561 pairs of those."""
    variance, num_graphs = {}, 3 if estimator.group_size == 1 else 4
    for credit in ("receptive_field", "global"):
        model, inputs, targets = toy(FOUR_EDGES, EnergyScore(), 1, num_graphs, credit=credit, estimator=estimator)
        mean, square = oracles.gradient_moments(model, inputs, targets, FOUR_EDGES, 1, num_graphs)
        for_logits, _ = exact_gradients(model, "energy", inputs, targets, FOUR_EDGES)
        assert gap(mean["graph.edge_logits"], for_logits) < TOLERANCE
        variance[credit] = float((square["graph.edge_logits"] - mean["graph.edge_logits"] ** 2).sum())
    assert variance["receptive_field"] < 0.9 * variance["global"]


def test_a_too_short_receptive_field_is_not_exact():
    """The check has teeth: claiming one hop for a predictor of two loses part of the gradient."""
    model, inputs, targets = toy(THREE_EDGES, EnergyScore(baseline="none"), 1, 2)
    model.estimator = ScoreFunction(ReceptiveFieldCredit(1))
    expected = oracles.expected_gradient(model, inputs, targets, THREE_EDGES, 1, 2)
    for_logits, _ = exact_gradients(model, "energy", inputs, targets, THREE_EDGES)
    assert gap(expected["graph.edge_logits"], for_logits) > 1e-3


@pytest.mark.parametrize("estimator", [ScoreFunction(), DisARM()])
@pytest.mark.parametrize("error", ["mae", "mse"])
def test_literature_2_is_exact_for_one_hop_and_misses_what_is_further_away(error, estimator):
    for hops in (1, 2):
        model, inputs, targets = toy(THREE_EDGES, NodewiseExpectedError(error), 1, 2, hops=hops, estimator=estimator)
        assert isinstance(model.estimator.credit, OwnRowCredit)
        if hops == 1:
            check_exact(model, f"literature_{error}", inputs, targets, THREE_EDGES, 1, 2)
            continue
        expected = oracles.expected_gradient(model, inputs, targets, THREE_EDGES, 1, 2)
        exact, for_weights = exact_gradients(model, f"literature_{error}", inputs, targets, THREE_EDGES)
        bias = (expected["graph.edge_logits"] - exact).norm() / exact.norm()
        assert float(bias) == pytest.approx({"mae": 0.164, "mse": 0.099}[error], abs=5e-4)
        assert gap(expected["predictor.hop_weights"], for_weights) < TOLERANCE


# ---------------------------------------------------------------- symmetric graphs


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

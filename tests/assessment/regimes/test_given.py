"""Rows given the regime of the other nodes: gradients against exact enumeration."""

import pytest
import torch
from torch.func import functional_call

import oracles
from enumeration import cells_of, exact_gradient, mean_gradient, sets_of
from tacit.assessment.regimes.given import GivenRegimes, with_log_weights
from tacit.assessment.regimes.sharpening import _of_others
from tacit.data import Pairs
from tacit.estimators import ReceptiveFieldCredit
from tacit.graph import BernoulliGraph, CandidateEdges, Context, MixtureGraph
from tacit.losses import EnergyScore
from tacit.predictors import HopPredictor
from tacit.training import LatentGraphModel
from toys import TOLERANCE

EVERYTHING = oracles.all_graphs(torch.ones(2, 2, dtype=torch.bool))


def toy(table):
    """Two pairs whose rows have weights of their own; row 0 reads both nodes, row 1 none."""
    rng = torch.Generator().manual_seed(0)
    free = torch.tensor([[True, True], [False, False]])
    candidates = CandidateEdges.from_mask(torch.ones(2, 2, dtype=torch.bool)) if table else None
    graph = GivenRegimes(BernoulliGraph(torch.where(free, 0.5, 0.0).double(), ~free, candidates=candidates), 2)
    with torch.no_grad():
        graph.edge_logits.copy_(torch.randn(2, 2, 2, generator=rng, dtype=torch.float64))
    predictor = HopPredictor(torch.randn(2, 2, 1, generator=rng, dtype=torch.float64))
    model = LatentGraphModel(graph, predictor, EnergyScore(baseline="none"), num_graphs=2).double()
    weights = torch.rand(2, 2, 2, generator=rng, dtype=torch.float64).softmax(-1)
    plain = Pairs(
        torch.randn(2, 2, 2, generator=rng, dtype=torch.float64),
        0.5 * torch.randn(2, 2, 1, generator=rng, dtype=torch.float64),
        covariates=torch.ones(2, 1, dtype=torch.float64),
    )
    return model, with_log_weights(plain, weights.log()), weights


@pytest.mark.parametrize("table", [False, True])
def test_the_gradient_is_exact(table):
    model, pairs, weights = toy(table)
    assert isinstance(model.estimator.credit, ReceptiveFieldCredit)
    graph, context = model.graph, Context.of(pairs)

    def row_probs(logits, b):
        theta = torch.where(graph.fixed, graph.fixed_probs, torch.sigmoid(logits))
        rows = torch.where(EVERYTHING[:, None] > 0, theta, 1 - theta).prod(-1)  # (graph, regime, row)
        return torch.einsum("gkr,rk->gr", rows, weights[b]).prod(-1)

    def expected(parameters):
        own = {"hop_weights": parameters["predictor.hop_weights"]}
        samples = functional_call(model.predictor, own, (pairs.inputs, EVERYTHING[None]))
        losses = [
            oracles.expected_loss(
                "energy",
                "node",
                row_probs(parameters["graph.edge_logits"], b),
                samples[b][None],
                pairs.targets[b][None],
            )
            for b in range(2)
        ]
        return sum(losses) / 2

    exact = exact_gradient(model, expected)
    assert set(exact) == {"graph.edge_logits", "predictor.hop_weights"}, "the weights are given"
    bounds = torch.zeros(2, 4, 2, 3, dtype=torch.float64)  # (pair, threshold, row, slot + 1)
    bounds[:, :2, :, :2] = graph.regime_probs.detach()
    bounds[:, 2, :, 2] = weights[:, :, 0]
    shared = sets_of(*cells_of(bounds.flatten(0, 1)), 2)
    found = mean_gradient(model, pairs.inputs, pairs.targets, shared[0][:, None], shared[1], context)
    for name, value in exact.items():
        assert float(value.abs().max()) > 1e-4, "the check would be empty"
        assert float((found[name] - value).abs().max()) < TOLERANCE, name
    conditioned = graph.condition(context)
    slots = EVERYTHING.expand(2, *EVERYTHING.shape)
    probs = conditioned.log_prob(slots).exp().detach()
    assert torch.allclose(probs, torch.stack([row_probs(graph.edge_logits.detach(), b) for b in range(2)]), atol=1e-12)
    marginal = torch.einsum("bg,gij->ij", probs, EVERYTHING) / 2
    assert torch.allclose(conditioned.edge_probs.detach(), marginal, atol=1e-12)


def test_the_regime_that_other_nodes_show(rng):
    graph = MixtureGraph(BernoulliGraph(torch.full((3, 3), 0.5)), 2, "all")
    logs = torch.randn(4, 3, 2, generator=rng)
    found = _of_others(logs, graph).exp()
    for b in range(4):
        for i in range(3):
            others = sum(logs[b, j] for j in range(3) if j != i)
            assert torch.allclose(found[b, i], (others + torch.log(torch.tensor(0.5))).softmax(-1), atol=1e-6)

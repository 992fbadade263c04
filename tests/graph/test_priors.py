import math

import pytest
import torch
from torch.distributions import Bernoulli, kl_divergence

from tacit.errors import InputError
from tacit.graph import BernoulliGraph, EdgePrior, Sigmoid, SineSquared, density_prior
from tacit.losses import NoisyEnergyScore
from tacit.observation import HeadGaussianNoise


@pytest.mark.parametrize("link", [Sigmoid(), SineSquared()])
@pytest.mark.parametrize("constant", [True, False])
def test_penalty_is_the_kl_divergence(rng, link, constant):
    probs, priors = (torch.rand(4, 4, generator=rng, dtype=torch.float64) for _ in range(2))
    prior = torch.tensor(0.2, dtype=torch.float64) if constant else priors
    graph = BernoulliGraph(probs, link=link)
    expected = 0.7 * kl_divergence(Bernoulli(probs), Bernoulli(prior.expand(4, 4))).sum()
    assert EdgePrior(prior, weight=0.7).penalty(graph).item() == pytest.approx(expected.item(), abs=1e-12)


def test_no_penalty_at_the_prior_nor_for_what_is_fixed():
    probs = torch.full((3, 3), 0.2, dtype=torch.float64)
    prior = EdgePrior(torch.tensor(0.2, dtype=torch.float64))
    assert prior.penalty(BernoulliGraph(probs)).item() == pytest.approx(0, abs=1e-12)
    probs[0] = 0.9
    fixed = torch.zeros(3, 3, dtype=torch.bool)
    fixed[0] = True
    assert prior.penalty(BernoulliGraph(probs, fixed)).item() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("link", [Sigmoid(), SineSquared()])
def test_finite_at_zero_and_one(link):
    graph = BernoulliGraph(torch.tensor([[0.0, 1.0], [0.5, 0.25]]), link=link)
    penalty = EdgePrior(0.25).penalty(graph)
    expected = kl_divergence(Bernoulli(torch.tensor([0.0, 1.0, 0.5])), Bernoulli(torch.tensor(0.25))).sum()
    assert penalty.item() == pytest.approx(expected.item(), abs=1e-5)
    (for_raw,) = torch.autograd.grad(penalty, graph.raw)
    assert torch.isfinite(for_raw).all()


def test_bad_priors(unchecked, refused):
    for bad in (0.0, 1.0, -0.1, float("nan")):
        with pytest.raises(
            InputError, match=rf"prior must have probabilities strictly between 0 and 1, got {bad:g}; to req"
        ):
            EdgePrior(bad)
    matrix = torch.full((2, 2), 0.5)
    matrix[1, 0] = 1.0
    refused(EdgePrior, matrix)
    refused(EdgePrior, torch.full((3,), 0.5))
    refused(EdgePrior, torch.ones(2, 2).long())
    for weight in (0.0, -1.0, float("inf")):
        refused(EdgePrior, 0.5, weight=weight)
    for wrong in ("a", None, [[0.1], [0.2, 0.3]]):
        refused(EdgePrior, wrong)
    refused(EdgePrior, 0.5, weight="1")


def test_a_prior_says_what_it_is():
    assert repr(EdgePrior(0.25, weight=2)) == "EdgePrior(0.25, weight=2)"
    assert repr(EdgePrior(torch.full((2, 2), 0.25))) == "EdgePrior(matrix of (2, 2), weight=1)"


# ---------------------------------------------------------------- the prior of an expected density


NODES, PAIRS = 4, 50


def score_of(sigma: float) -> float:
    """Mean energy score over the nodes when what is left, and the model's noise, have deviation sigma everywhere."""
    left = sigma * torch.distributions.Normal(0.0, 1.0).icdf((torch.arange(20_000) + 0.5) / 20_000).double()
    outputs = torch.tensor([0.0, sigma], dtype=torch.float64).expand(20_000, 3, NODES, 2)
    return NoisyEnergyScore(HeadGaussianNoise())(outputs, left[:, None, None].expand(-1, NODES, 1)).value.mean().item()


def test_a_nat_is_worth_what_the_loss_says():
    """All nodes leave 1% less: the score of the package's own loss falls by as much as the nats of one node are worth.

    n pairs of one node gain n log(1 / 0.99) nats; the loss falls for all N nodes, so by N times the price of those.
    """
    sigma, less = 0.6, 0.99
    fall = score_of(sigma) - score_of(less * sigma)
    nats = -PAIRS * math.log(less)
    weight = density_prior(0.3, sigma, PAIRS, NODES, num_weights=0).weight
    assert fall == pytest.approx(NODES * nats * weight, rel=0.01)


@pytest.mark.parametrize("num_weights", [0, 1, 3])
def test_a_sure_edge_pays_its_odds_and_the_evidence_of_its_weights(num_weights):
    prior = density_prior(0.2, 0.5, PAIRS, NODES, num_weights)
    empty = torch.zeros(NODES, NODES, dtype=torch.float64)
    full = empty.clone()
    full[1, 2] = 1
    pays = prior.penalty(BernoulliGraph(full)) - prior.penalty(BernoulliGraph(empty))
    nats = math.log(0.8 / 0.2) + num_weights / 2 * math.log(PAIRS)
    assert pays.item() == pytest.approx(nats * 0.5 / math.sqrt(math.pi) / PAIRS / NODES, rel=1e-5)


def test_free_weights_leave_the_density_as_it_is():
    assert density_prior(0.2, 1.0, 10, 5, num_weights=0).probs.item() == pytest.approx(0.2)


@pytest.mark.parametrize(
    "arguments",
    [
        (0, 1.0, 10, 5),
        (1.0, 1.0, 10, 5),
        (0.1, 0.0, 10, 5),
        (0.1, math.nan, 10, 5),
        (0.1, 1.0, 0, 5),
        (0.1, 1.0, 10, 0),
        (0.1, 1.0, 10, 5, -1),
    ],
)
def test_bad_arguments(arguments, unchecked, refused):
    refused(density_prior, *arguments)

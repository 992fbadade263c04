"""The prior of an expected density: what an edge pays is what it would in nats, turned into units of the score."""

import math

import pytest
import torch

from tacit.graph import BernoulliGraph, density_prior
from tacit.losses import NoisyEnergyScore
from tacit.observation import HeadGaussianNoise

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

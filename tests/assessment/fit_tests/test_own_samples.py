"""Samples for tests: every pair has graphs and noise of its own, in chunks that cover all pairs once."""

import sys

import pytest
import torch

from tacit.assessment.fit_tests import kernel_test, own_samples, thinned
from tacit.data import Pairs
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise
from tacit.predictors import HopPredictor
from tacit.training import LatentGraphModel

samples_module = sys.modules["tacit.assessment.fit_tests.kernel_test"]  # the function has its name


def coin_model(prob=0.5, sigma=None):
    predictor = HopPredictor(torch.ones(1, 1, 1))
    noise = None if sigma is None else GaussianNoise(2, initial_sigma=sigma)
    return LatentGraphModel(BernoulliGraph(torch.full((2, 2), prob)), predictor, EnergyScore(), observation=noise)


def test_pairs_with_the_same_input_have_graphs_of_their_own(rng):
    model, inputs = coin_model(), torch.ones(2, 2, 1)
    drawn = own_samples(model, inputs, 200, generator=rng)
    assert drawn.shape == (2, 200, 2, 1)
    differ = (drawn[0] != drawn[1]).float().mean()
    assert differ > 0.3  # shared graphs would give 0; here 1 - (1/16 + 1/4 + 1/16) = 0.625 is expected
    shared = model.sample(inputs, 200, generator=rng)
    assert torch.equal(shared[0], shared[1])


def test_noise_is_drawn_for_every_sample(rng):
    drawn = own_samples(coin_model(1.0, sigma=0.2), torch.zeros(3, 2, 1), 50, generator=rng)
    assert len(drawn.flatten().unique()) == drawn.numel()


def test_chunks_cover_all_rows_once(rng, monkeypatch):
    monkeypatch.setattr(samples_module, "CHUNK_NUMBERS_ELSEWHERE", 7 * 2 * 64 * 3)  # three pairs
    inputs = torch.arange(8.0).view(8, 1, 1).expand(8, 2, 1)
    parts = list(samples_module.sample_chunks(coin_model(1.0), Pairs(inputs, inputs), 7, generator=rng))
    rows = [rows for rows, _ in parts]
    assert rows == [slice(0, 3), slice(3, 6), slice(6, 8)]
    together = torch.cat([samples for _, samples in parts])
    assert torch.allclose(together[:, 0, 0, 0], torch.tanh(2 * torch.arange(8.0)))


def test_a_pair_too_large_for_a_chunk_is_still_drawn(rng, monkeypatch):
    monkeypatch.setattr(samples_module, "CHUNK_NUMBERS_ELSEWHERE", 1)
    parts = list(
        samples_module.sample_chunks(coin_model(), Pairs(torch.ones(2, 2, 1), torch.ones(2, 2, 1)), 5, generator=rng)
    )
    assert [rows for rows, _ in parts] == [slice(0, 1), slice(1, 2)]


def test_thinning_keeps_every_so_many_pairs(refused):
    pairs = Pairs.with_missing(torch.zeros(7, 1, 1), torch.tensor([0.0, 1, 2, torch.nan, 4, 5, 6]).view(7, 1, 1))
    thin = thinned(pairs, 3)
    assert thin.targets.flatten().tolist() == [0, 0, 6]
    assert thin.observed.flatten().tolist() == [1, 0, 1]
    assert thinned(pairs, 1) is pairs
    refused(thinned, pairs, 0)


@pytest.mark.parametrize(
    "pairs",
    [
        Pairs(torch.ones(1, 2, 1), torch.ones(1, 2, 1)),
        Pairs(torch.ones(5, 3, 1), torch.ones(5, 3, 1)),
        Pairs(torch.ones(5, 2, 1).double(), torch.ones(5, 2, 1).double()),
    ],
)
def test_what_cannot_be_compared_is_refused(rng, pairs, refused):
    refused(kernel_test, coin_model(), pairs, generator=rng)

import pytest
import torch
from torch import nn

from tacit.errors import InputError
from tacit.estimators import check_locality, check_relaxation
from tacit.predictors import (
    GraphFilter,
    HopPredictor,
    RecurrentGNN,
    WithInputNoise,
    WithNoise,
    initial_parameters,
    noisy_channels,
    num_hops_of,
)
from toys import even_graph


def test_sigma_of_each_node_stands_beside_the_means(rng):
    inner = HopPredictor.random(2, 3, 2, generator=rng)
    predictor = WithNoise(inner, 4, 2)
    predictor.log_sigma.data = torch.randn(4, 2, generator=rng)
    inputs, graphs = torch.randn(3, 4, 3, generator=rng), (torch.rand(1, 5, 4, 4, generator=rng) < 0.5).float()
    means, sigmas = predictor(inputs, graphs).chunk(2, -1)
    assert torch.equal(means, inner(inputs, graphs))
    for i in range(4):
        for c in range(2):
            expected = predictor.log_sigma[i, c].exp().item() + 1e-3
            assert sigmas[:, :, i, c].flatten().tolist() == pytest.approx([expected] * 15, rel=1e-6)


def test_sigma_follows_the_nodes_own_input(rng):
    inner = HopPredictor.random(1, 3, generator=rng)
    predictor = WithInputNoise(inner, 4, 3)
    for value in (predictor.sigma_weights, predictor.sigma_bias):
        value.data = torch.randn(value.shape, generator=rng)
    inputs, graphs = torch.randn(2, 4, 3, generator=rng), torch.ones(2, 5, 4, 4)
    sigmas = predictor(inputs, graphs)[..., 1]
    up, size = predictor.sigma_weights[:3, 0], predictor.sigma_weights[3:, 0]
    for b in range(2):
        for i in range(4):
            raw = inputs[b, i] @ up + inputs[b, i].abs() @ size + predictor.sigma_bias[i, 0]
            expected = torch.log1p(raw.exp()).item() + 1e-3
            assert sigmas[b, :, i].tolist() == pytest.approx([expected] * 5, rel=1e-5)


@pytest.mark.parametrize("kind", ["node", "input"])
def test_a_wrapped_predictor_is_as_local_as_it_was_and_starts_like_it(rng, kind):
    inner = HopPredictor.random(2, 3, generator=rng)
    wrapped = WithNoise(inner, 5) if kind == "node" else WithInputNoise(inner, 5, 3)
    assert num_hops_of(wrapped) == 2
    assert noisy_channels(wrapped) == 1
    check_locality(wrapped, even_graph(5), 3, 2, generator=rng)
    check_relaxation(wrapped, even_graph(5), 3, generator=rng)
    fresh = initial_parameters(wrapped, torch.Generator().manual_seed(7))
    alone = initial_parameters(inner, torch.Generator().manual_seed(7))
    assert torch.equal(fresh["predictor.hop_weights"], alone["hop_weights"])
    wrapped.load_state_dict(fresh)
    sigmas = wrapped(torch.randn(2, 5, 3, generator=rng), torch.ones(1, 3, 5, 5))[..., 1]
    assert torch.allclose(sigmas, torch.full_like(sigmas, 0.5), atol=1e-6)
    assert num_hops_of(WithNoise(nn.Identity(), 5)) is None


def test_a_warm_start_survives_the_noise(rng):
    own, edges = torch.randn(3, 2, 1, generator=rng), torch.randn(3, 3, 2, 1, generator=rng)
    wrapped = WithNoise(GraphFilter(3, 2, 1).with_weights(own, edges), 3)
    assert torch.equal(initial_parameters(wrapped, rng)["predictor.edge_weights"], edges)


def test_who_has_noise():
    assert noisy_channels(RecurrentGNN(2, 1)) is None
    assert noisy_channels(RecurrentGNN(2, 2, 2, noise="input")) == 2
    assert noisy_channels(GraphFilter(3, 2, 1)) is None


def test_errors(unchecked):
    class Silent(nn.Module):
        noisy = True

    for message, call in {
        "RecurrentGNN has noise already; do not wrap it": lambda: WithNoise(RecurrentGNN(2, 1, noise="input"), 3),
        "out_channels of Silent, which says it is noisy, needs to be a whole number, got None": (
            lambda: noisy_channels(Silent())
        ),
        "initial_sigma needs to be above 0.001, got 0.0001; scale the targets": (
            lambda: WithNoise(GraphFilter(3, 2, 1), 3, initial_sigma=1e-4)
        ),
        "predictor needs to be a module, got 'gru'; build one": lambda: WithNoise("gru", 3),
        "GraphFilter needs to return out_channels=2 channels, got 1; correct out_channels of WithNoise": (
            lambda: WithNoise(GraphFilter(3, 2, 1), 3, 2)(torch.zeros(1, 3, 2), torch.zeros(1, 1, 3, 3))
        ),
    }.items():
        with pytest.raises(InputError, match=message):
            call()

import math

import pytest
import torch

import oracles
from tacit.graph import BernoulliGraph, Sigmoid, SineSquared

LINKS = [Sigmoid(), SineSquared()]


@pytest.mark.parametrize("link", LINKS)
def test_raw_and_probs_are_inverse(rng, link):
    probs = torch.rand(6, 6, generator=rng, dtype=torch.float64)
    assert torch.allclose(link.probs(link.raw(probs)), probs, atol=1e-14)
    present, absent = link.log_probs(link.raw(probs))
    assert torch.allclose(present.exp(), probs, atol=1e-14)
    assert torch.allclose(absent.exp(), 1 - probs, atol=1e-14)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exact_and_finite_at_zero_and_one(rng, link, dtype):
    probs = torch.tensor([[0.0, 1.0], [0.3, 0.0]], dtype=dtype)
    graph = BernoulliGraph(probs, link=link)
    assert torch.allclose(graph.edge_probs.detach(), probs, atol=1e-7)
    graphs = graph.sample(200, generator=rng)
    assert (graphs[..., 0, 0] == 0).all()
    assert (graphs[..., 0, 1] == 1).all()
    log_prob = graph.log_prob(graphs)
    assert sorted(set(log_prob.exp().flatten().tolist())) == pytest.approx([0.3, 0.7], abs=1e-6)
    (for_raw,) = torch.autograd.grad(log_prob.sum(), graph.raw)
    assert torch.isfinite(for_raw).all()
    assert for_raw[0].abs().max() < 1e-4  # nothing to learn from what cannot be otherwise
    impossible = graphs[:, :1].clone()
    impossible[..., 0, 0] = 1
    assert graph.log_prob(impossible).item() == -math.inf
    impossible = graphs[:, :1].clone()
    impossible[..., 0, 1] = 0
    assert graph.log_prob(impossible).item() == -math.inf


@pytest.mark.parametrize("theta", [0.01, 0.2, 0.5, 0.97])
def test_fisher_information(theta):
    """The variance of the derivative of log P: theta (1 - theta) for the logit, 4 for the angle at any theta."""
    for link, expected in ((Sigmoid(), theta * (1 - theta)), (SineSquared(), 4.0)):
        graph = BernoulliGraph(torch.full((1, 1), theta, dtype=torch.float64), link=link)
        graphs = oracles.all_graphs(torch.ones(1, 1, dtype=torch.bool))
        scores = [torch.autograd.grad(graph.log_prob(g[None, None]).sum(), graph.raw)[0].item() for g in graphs]
        mean = (1 - theta) * scores[0] + theta * scores[1]
        information = (1 - theta) * scores[0] ** 2 + theta * scores[1] ** 2
        assert mean == pytest.approx(0, abs=1e-12)
        assert information == pytest.approx(expected, abs=1e-12)


def test_a_step_beyond_the_boundary_is_reflected():
    link = SineSquared()
    inside, outside = link.raw(torch.tensor(0.04)), -link.raw(torch.tensor(0.04))
    assert link.probs(outside).item() == pytest.approx(link.probs(inside).item())


def test_what_is_stored_is_named_for_what_it_is():
    probs = torch.full((2, 2), 0.25)
    assert list(dict(BernoulliGraph(probs).named_parameters())) == ["edge_logits"]
    assert list(dict(BernoulliGraph(probs, link=SineSquared()).named_parameters())) == ["edge_angles"]


def test_a_link_is_an_object(unchecked, refused):
    for wrong in ("sigmoid", SineSquared):
        refused(BernoulliGraph, torch.full((2, 2), 0.25), link=wrong)


@pytest.mark.parametrize("link", LINKS)
def test_weighted_log_prob_equals_the_sum_over_graphs(rng, link):
    """With edges at 0 and 1 among them: value and gradient stay finite, and equal to log-probabilities row by row."""
    probs = torch.rand(4, 4, generator=rng, dtype=torch.float64)
    probs[0, 1], probs[2, 3] = 0.0, 1.0
    graph = BernoulliGraph(probs, link=link)
    graphs = graph.sample(5, num_pairs=3, generator=rng)
    for shape in ((3, 5, 4, 1), (3, 5, 1, 1)):
        weights = torch.randn(shape, generator=rng, dtype=torch.float64)
        ours = graph.weighted_log_prob(weights, graphs)
        plain = (weights[..., 0] * graph.row_log_prob(graphs)).sum(-1).mean()
        gradients = [torch.autograd.grad(value, graph.raw)[0] for value in (ours, plain)]
        assert ours.item() == pytest.approx(plain.item(), abs=1e-12)
        assert torch.isfinite(gradients[0]).all()
        assert torch.allclose(*gradients, atol=1e-12)

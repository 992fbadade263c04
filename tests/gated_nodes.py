"""Data of one node whose edges act at times, with the likelihoods of several observation models."""

from dataclasses import replace

import torch

from tacit.observation import BernoulliTargets, GaussianNoise, PoissonCounts, StudentTNoise
from tacit.training import GatedRegression

DOUBLE = torch.float64
ROWS = 300
KINDS = {
    "gaussian": GaussianNoise,
    "poisson": PoissonCounts,
    "bernoulli": BernoulliTargets,
    "student_t": StudentTNoise,
}


def regression(name, rng, probs=(1.0, 0.6), rows=ROWS):
    """A node with two sources of two lags, of which edges act with the given probabilities."""
    own = torch.cat([torch.randn(rows, 1, generator=rng), torch.ones(rows, 1)], 1).double()
    sent = torch.randn(2, rows, 2, generator=rng).double()
    gates = (torch.rand(2, rows, generator=rng) < torch.tensor(probs)[:, None]).double()
    weights = torch.tensor([[0.8, 0.3], [1.2, 0.0]], dtype=DOUBLE)
    outputs = own @ torch.tensor([0.4, 0.5], dtype=DOUBLE) + (gates * torch.einsum("jnl,jl->jn", sent, weights)).sum(0)
    noise = torch.randn(rows, generator=rng).double()
    uniform = torch.rand(rows, generator=rng).double()
    targets = {
        "gaussian": outputs + 0.4 * noise,
        "student_t": outputs + 0.4 * noise,
        "poisson": torch.poisson(torch.nn.functional.softplus(outputs + 2), generator=rng),
        "bernoulli": (uniform < torch.sigmoid(2 * outputs)).double(),
    }[name]
    zeros = torch.zeros(rows, dtype=DOUBLE)
    return GatedRegression(own, sent, zeros, targets, torch.ones_like(zeros), KINDS[name](1).double())


def with_features(name, rng, rows=ROWS, count=3):
    """The same node, with features that all edges share and one of each source."""
    data = regression(name, rng, rows=rows)
    shared = torch.randn(rows, 1, count - 1, generator=rng).double().expand(-1, 2, -1)
    own = torch.randn(rows, 2, 1, generator=rng).double()
    return replace(data, features=torch.cat([shared, own], 2))


def varying_fit(data):
    """Both edges gated, with some slopes."""
    start = data.start().with_gate(0, 0.7).with_gate(1, 0.4)
    edges = torch.tensor([[0.5, -0.2], [0.1, 0.7]], dtype=DOUBLE)
    slopes = torch.tensor([[0.4, -0.7, 0.2], [1.1, 0.3, -0.5]], dtype=DOUBLE)
    return replace(start, own=torch.tensor([0.2, 0.1], dtype=DOUBLE), edges=edges, slopes=slopes, varying=start.gated)

"""Data of one node whose edges act at times, and the slow fit of it by automatic differentiation and scipy."""

from dataclasses import replace

import torch
from scipy.optimize import minimize

from tacit.graph import PRIOR_DEVIATION as SLOPE_DEVIATION
from tacit.local import (
    MOST_LOGIT,
    NOISE_DEVIATION,
    SPREAD_DEVIATION,
    GatedRegression,
    fill_noise,
    fit_gated,
    noise_vector,
)
from tacit.observation import (
    BernoulliTargets,
    GaussianNoise,
    LogNormalNoise,
    NegativeBinomialCounts,
    OrderedCategories,
    PoissonCounts,
    StudentTNoise,
    TargetValues,
)

DOUBLE = torch.float64
ROWS = 300
KINDS = {
    "gaussian": GaussianNoise,
    "poisson": PoissonCounts,
    "bernoulli": BernoulliTargets,
    "student_t": StudentTNoise,
    "log_normal": lambda count: LogNormalNoise(count, values=TargetValues(2 * torch.ones(1, 1), torch.ones(1, 1))),
    "negative_binomial": NegativeBinomialCounts,
    "ordered": lambda count: OrderedCategories(count, values=TargetValues.plain(count, categories=(0.0, 1.0, 2.0))),
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
    means = torch.nn.functional.softplus(outputs + 2)
    tails = torch._standard_gamma(torch.full((rows,), 2.0).double(), generator=rng) / 2
    targets = {
        "log_normal": means * (0.3 * noise).exp() - 2,
        "negative_binomial": torch.poisson(means * tails, generator=rng),
        "ordered": (outputs + noise).round().clamp(0, 2),
        "gaussian": outputs + 0.4 * noise,
        "student_t": outputs + 0.4 * noise / tails.sqrt(),
        "poisson": torch.poisson(means, generator=rng),
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


def with_spread(name, rng, rows=ROWS):
    """The same node with noise that grows with the second source."""
    data = regression(name, rng, rows=rows)
    columns = torch.stack([data.sent[1, :, 0].square().log1p(), data.own[:, 0]], 1)
    targets = data.targets + 0.4 * torch.randn(rows, generator=rng).double() * (0.8 * columns[:, 0]).exp()
    return replace(data, targets=targets, spread=columns)


def fitted(data, start=None, fixed=None):
    """The fit of one regression."""
    return fit_gated([data], [data.start() if start is None else start], [fixed])[0]


class SlowFit:
    """The log posterior of one regression by automatic differentiation, as a function of a vector.

    The vector has the weights, the logits of the gates (but for a fixed one), the slopes that vary, the coefficients of
    the scale of the noise, and the noise.
    """

    def __init__(self, data, start, fixed=None):
        self.data, self.start, self.learned = data, start, start.gated.clone()
        if fixed is not None:
            self.learned[fixed] = False
        self.varying = torch.zeros_like(start.gated) if start.varying is None else start.varying
        slopes = torch.zeros(0) if start.slopes is None else start.slopes[self.varying].flatten()
        spread = torch.zeros(0) if start.spread is None else start.spread
        parts = [start.weights, start.logits[self.learned], slopes, spread, noise_vector(start.observation)]
        self.sizes, self.first = [len(part) for part in parts], torch.cat(parts).double()

    def unpacked(self, numbers):
        weights, logits, slopes, spread, noise = torch.split(numbers, self.sizes)
        own, edges = weights.tensor_split([len(self.start.own)])
        moving = self.start.slopes
        if moving is not None:
            moving = moving.masked_scatter(self.varying[:, None].expand_as(moving), slopes)
        observation = self.data.observation.chosen([0])
        fill_noise(observation, noise.detach()[None])
        return replace(
            self.start,
            own=own,
            edges=edges.view_as(self.start.edges),
            logits=self.start.logits.masked_scatter(self.learned, logits),
            slopes=moving,
            observation=observation,
            spread=None if self.start.spread is None else spread,
        )

    def value_and_gradient(self, numbers):
        flat = numbers.detach().clone().requires_grad_()
        fit, data = self.unpacked(flat), self.data
        outputs = data.outputs(fit)
        value = data.joint(fit, outputs).logsumexp(1) @ data.weights
        parameters = list(fit.observation.parameters())
        found = torch.autograd.grad(value, [flat, *parameters])
        noise = torch.cat([one.flatten() for one in found[1:]]) if parameters else flat.new_zeros(0)
        gradient = found[0] + torch.cat([flat.new_zeros(len(flat) - len(noise)), noise])
        weights, _, slopes, spread, own_noise = torch.split(flat.detach(), self.sizes)
        away = own_noise - noise_vector(data.observation)
        pulls = [data.precision @ weights, 0 * gradient[: self.sizes[1]], slopes / SLOPE_DEVIATION**2]
        pulls = torch.cat([*pulls, spread / SPREAD_DEVIATION**2, away / NOISE_DEVIATION**2])
        moved = torch.cat([weights, 0 * gradient[: self.sizes[1]], slopes, spread, away])
        return float(value.detach() - moved @ pulls / 2), gradient - pulls

    def fit(self):
        """The local maximum by a quasi-Newton search with bounds."""
        scale = self.data.weights.sum()

        def lost(numbers):
            value, gradient = self.value_and_gradient(torch.from_numpy(numbers))
            return -value / float(scale), (-gradient / scale).numpy()

        free = [(None, None)]
        logits = [(-MOST_LOGIT, MOST_LOGIT)] * self.sizes[1]
        bounds = free * self.sizes[0] + logits + free * sum(self.sizes[2:])
        options = {"maxiter": 2000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 30}
        found = minimize(lost, self.first.numpy(), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        fit = self.unpacked(torch.from_numpy(found.x))
        return replace(fit, log_likelihood=float(self.data.row_log_likelihoods(fit) @ self.data.weights))

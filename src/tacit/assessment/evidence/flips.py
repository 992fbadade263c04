r"""Flips of edges in a model: the loss by the probability of one edge, effects, Bayes factors, exchangeability.

The loss as a function of one edge's probability, with all other parameters fixed.

The losses compare two graphs at a time, so the expected loss of a pair is a parabola in the probability $q$ of an edge,

$$L(q) = L(0) + \beta q + \gamma q^2,$$

which three points determine. Every sampled graph is evaluated without and with the edge: graphs without it give $L(0)$,
graphs with it $L(1)$, and both together $L(\tfrac12)$; the two forms of one graph are not compared with each other.
Each is an unbiased estimate, and common noise cancels in their differences. Losses that do not compare graphs are
linear in $q$, a special case.

If the other parameters are optimal without the edge, $-\beta$ is the score for its insertion. $L(0) - L(q)$ is an upper
bound of the cost of its removal, because other edges may compensate for it.

Size and sign of an edge's effect in a model: the change of the prediction when the edge is present.

$$d_b = E_A\big[ f_i(x_b, A^{ij=1}) - f_i(x_b, A^{ij=0}) \big] \approx a + \sum_c w_c\, x_{b, jc}, \qquad
  \mathrm{effect}_{ij} = w_c\, \frac{\mathrm{sd}(x_{jc})}{\mathrm{sd}(y_i)}$$

The change of the prediction of target $i$ is regressed on the inputs $c$ of source $j$. The effect is the weight with
the largest absolute value, because weights of different channels may cancel in a sum. It is linear, so a change that is
symmetric in the source counts as 0.

From a test statistic to the probability that an edge exists.

An edge that exists acts with a probability $\theta > 0$. Its prior is $p(\theta) = 2 \theta$ on $[0, 1]$: most existing
edges act often. This density vanishes at 0 (Johnson and Rossell 2010), so that evidence against an absent edge
accumulates faster; with a density that does not vanish, the best of a hundred absent edges would keep a noticeable
probability by chance. With an estimate that is $z$ standard errors $s$ from 0, the evidence for the edge is

$$\log \mathrm{BF} = \log \int_0^1 2 \theta\, \exp\Big( \frac{z \theta}{s} - \frac{\theta^2}{2 s^2} \Big) d\theta
  - \tfrac k2 \log n$$

for an edge with $k$ weights of its own, 0 if the predictor shares its weights. With the prior odds,

$$\operatorname{logit} P(\text{exists}) = \operatorname{logit} p + \log \mathrm{BF}.$$

Near its maximum twice the log-likelihood ratio is $z^2$, so $z^2 / 2$ is the gain in nats. A score that is not a
log-likelihood is not in nats, but its scale cancels in $z$. Let $D_b$ be the increase of the score of pair $b$ without
the edge. If the edge is $z$ standard errors from 0, $D$ has mean $\tfrac12 z^2 \lambda / n$ and variance
$z^2 \lambda^2 / n$ over $n$ pairs, with an unknown factor $\lambda$, which is 1 for a log-likelihood. Hence

$$z = 2\, \frac{\mathrm{mean}\, D}{\mathrm{se}(\mathrm{mean}\, D)}, \qquad
  \text{gain in nats} = \tfrac12 z^2 = 2 \Big( \frac{\mathrm{mean}\, D}{\mathrm{se}(\mathrm{mean}\, D)} \Big)^2 .$$

For the mean of normal variables both are exact at any distance from 0.

A test of exchangeability: do nodes differ in ways that shared weights cannot express?

A predictor with shared weights can fit nodes that differ by giving each its own pattern of edges; the edges then say
little about relations. Such differences remain in the residuals: the residual of a node, $y_i - E_A f_i(x, A)$, is
regressed on the node's own inputs and their squares, node by node. If nodes are exchangeable, that is, equal up to the
graph, these regressions explain nothing. A node differs if its explained share $R^2_i$ is above 1% and $n R^2_i$ is
above the upper $0.01 / N$ quantile of $\chi^2_k$ with $k$ columns, a family-wise level of 1%.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from scipy import special
from torch import Generator, Tensor

from tacit.data import Pairs
from tacit.graph import Context
from tacit.predictors import edge_parameters_of
from tacit.randomness import draw_uniforms
from tacit.shapes import EdgeProbs, Graphs, Samples, TargetParams, Targets
from tacit.training import LatentGraphModel

Edges = Int[Tensor, "edge 2"]  # row and column: target and source
PAIRS_AT_ONCE, ENTRIES_AT_ONCE = 256, 2**20


class Parabolas(NamedTuple):
    r"""The loss of every pair as a function of each edge's probability: ``slope`` $\beta$, ``curvature`` $\gamma$."""

    slope: Float[Tensor, "edge batch"]
    curvature: Float[Tensor, "edge batch"]

    def rise_without(self, probs: Float[Tensor, " edge"]) -> Float[Tensor, "edge batch"]:
        """Return the increase of the loss of each pair if an edge with the given probability is removed."""
        probs = probs.to(self.slope)[:, None]
        return -(self.slope + self.curvature * probs) * probs


@torch.no_grad()
def loss_parabolas(
    model: LatentGraphModel, pairs: Pairs, edges: Edges, *, num_graphs: int, generator: Generator
) -> Parabolas:
    """Return the parabola of every pair and edge, from ``num_graphs`` graphs for each pair.

    >>> from tacit.graph import BernoulliGraph
    >>> from tacit.losses import EnergyScore
    >>> from tacit.predictors import HopPredictor
    >>> model = LatentGraphModel(BernoulliGraph(torch.zeros(2, 2)), HopPredictor(torch.ones(1, 1, 1)), EnergyScore())
    >>> pairs = Pairs(torch.ones(1, 2, 1), torch.ones(1, 2, 1).tanh())
    >>> rng = Generator().manual_seed(0)
    >>> found = loss_parabolas(model, pairs, torch.tensor([[0, 1]]), num_graphs=2, generator=rng)
    >>> [round((part / pairs.targets[0, 0]).item(), 4) for part in found]  # half of 1 - 2 q + q^2, and half of 1
    [-1.0, 0.5]
    """
    parts = []
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        chunk = pairs[start : start + PAIRS_AT_ONCE]
        losses = torch.cat(list(_three_points(model, chunk, edges, num_graphs, generator)))  # (edge, batch, point)
        parts.append(losses)
    none, half, always = torch.cat(parts, 1).unbind(-1)
    curvature = 2 * (none - 2 * half + always)
    return Parabolas(always - none - curvature, curvature)


def _three_points(
    model: LatentGraphModel, pairs: Pairs, edges: Edges, num_graphs: int, generator: Generator
) -> Iterator[Float[Tensor, "edge batch 3"]]:
    graph, loss = model.graph_for(pairs.inputs, Context.of(pairs)), model.loss.with_baseline("none")
    count, (rows, columns) = len(pairs), graph.uniforms_shape
    channels = model.noise_channels
    shape = (count, num_graphs, max(rows, graph.num_nodes if channels else 0), columns + channels)
    uniforms = draw_uniforms(*shape, generator=generator, dtype=pairs.inputs.dtype).to(pairs.inputs.device)
    graphs = graph.sample_from(uniforms[..., :rows, :columns])
    noise = uniforms[..., : graph.num_nodes, columns:]
    at_once = max(1, ENTRIES_AT_ONCE // graphs.numel())
    for some in torch.split(edges, at_once):
        forms = without_and_with(graphs, some, symmetric=graph.symmetric)
        described = model.describe(pairs.inputs, forms.flatten(1, 3))  # (batch, edge * graph * form, node, number)
        both = (
            described.view(count, len(some), 2 * num_graphs, *described.shape[2:]).transpose(0, 1).flatten(0, 1)
        )  # (edge * batch, graph * form, ...)
        if channels:  # the two forms of a graph share their noise
            both = _noisy(model, both, noise.repeat_interleave(2, 1).repeat(len(some), 1, 1, 1))
        targets = pairs.targets.repeat(len(some), 1, 1)
        observed = None if pairs.observed is None else pairs.observed.repeat(len(some), 1, 1)
        points = (
            loss(both[:, 0::2], targets, observed).value,
            loss(both, targets, observed, group_size=2).value,
            loss(both[:, 1::2], targets, observed).value,
        )
        yield torch.stack([point.mean(-1) for point in points], -1).view(len(some), count, 3)


def without_and_with(graphs: Graphs, edges: Edges, *, symmetric: bool) -> Float[Tensor, "draw edge graph 2 row slot"]:
    """Return every graph without and with each of the edges; both entries of a pair if symmetric."""
    forms = graphs[:, None, :, None].repeat(1, len(edges), 1, 2, 1, 1)
    number, (row, column) = torch.arange(len(edges), device=edges.device), edges.unbind(1)
    for form in (0, 1):
        forms[:, number, :, form, row, column] = float(form)
        if symmetric:
            forms[:, number, :, form, column, row] = float(form)
    return forms


def _noisy(model: LatentGraphModel, described: TargetParams, noise: Tensor) -> Samples:
    return model.observation.sample(described, noise)


NUM_PAIRS, NUM_GRAPHS, ENTRIES_AT_ONCE = 512, 8, 2**20


@torch.no_grad()
def signed_effects(model: LatentGraphModel, pairs: Pairs, edges: Edges, *, generator: Generator) -> EdgeProbs:
    """Return the standardised effects of some edges; 0 elsewhere.

    >>> from tacit.graph import BernoulliGraph
    >>> from tacit.losses import EnergyScore
    >>> from tacit.predictors import HopPredictor
    >>> graph, predictor = BernoulliGraph(torch.zeros(2, 2)), HopPredictor(torch.full((1, 1, 1), -0.01))
    >>> rng = Generator().manual_seed(0)
    >>> inputs = torch.randn(100, 2, 1, generator=rng)
    >>> pairs = Pairs(inputs, -0.02 * inputs.flip(1))  # node 0 reads node 1; the model has half of the effect
    >>> model = LatentGraphModel(graph, predictor, EnergyScore())
    >>> signed_effects(model, pairs, torch.tensor([[0, 1]]), generator=rng).round(decimals=3).tolist()
    [[0.0, -0.5], [0.0, 0.0]]
    """
    graph = model.graph
    if not len(edges):
        return torch.zeros(graph.edge_shape)
    some = pairs[:: max(1, len(pairs) // NUM_PAIRS)]
    graphs = graph.sample(NUM_GRAPHS, generator=generator)
    effects = torch.zeros(graph.edge_shape, dtype=torch.float64)
    sources = some.inputs.double() - some.inputs.double().mean(0)  # (batch, node, in_channel)
    sources = sources.cpu()  # rank-deficient least squares is not available on a GPU
    deviations, spread = sources.std(0), _target_deviations(pairs).cpu()
    for group in torch.split(edges, max(1, ENTRIES_AT_ONCE // (graphs.shape[1] * graph.num_nodes * len(some)))):
        forms = without_and_with(graphs, group, symmetric=graph.symmetric)
        means = model.observation.mean(model.describe(some.inputs, forms.flatten(1, 3)))
        means = (
            means.double().view(len(some), len(group), -1, 2, *means.shape[2:]).mean(2).cpu()
        )  # (batch, edge, form, node, channel)
        for number, (row, column) in enumerate(group.tolist()):
            change = means[:, number, 1, row] - means[:, number, 0, row]  # (batch, channel)
            weights = torch.linalg.lstsq(sources[:, column], change - change.mean(0), driver="gelsd").solution
            scaled = (weights * deviations[column][:, None] / spread[row]).flatten()
            effects[row, column] = scaled[scaled.abs().argmax()]
    if graph.symmetric:
        mirrored = effects.mT.clone()
        effects = torch.where(effects == 0, mirrored, effects)
    return effects.float()


def _target_deviations(pairs: Pairs) -> torch.Tensor:
    """Return the standard deviation of each target over its observed values, (node, channel)."""
    values = pairs.targets.double()
    if pairs.observed is not None:
        seen = pairs.observed.double()
        count = seen.sum(0).clamp_min(1)
        values = torch.where(seen > 0, values, 0.0)
        mean = values.sum(0) / count
        return ((values - mean).square() * seen).sum(0).div(count).sqrt().clamp_min(1e-12)
    return values.std(0).clamp_min(1e-12)


Statistic = Float[Tensor, "*edge"]
Differences = Float[Tensor, "*edge batch"]
LOWEST, POINTS = 1e-5, 2000  # of a geometric grid of probabilities
LARGEST = 1e3  # standard error beyond which an estimate is uninformative


def existence(
    z: Statistic,
    std_error: Statistic,
    prior: Float[Tensor, "*#edge"] | float,
    *,
    num_units: int = 1,
    num_weights: int = 0,
) -> Statistic:
    """Return the probability that an edge exists.

    ``z``            estimate in standard errors
    ``std_error``    standard error of the probability that the edge acts
    ``prior``        prior probability that the edge exists
    ``num_units``    number of independent pairs, or blocks of pairs
    ``num_weights``  number of weights of the edge

    >>> z = torch.tensor([-1.0, 0.0, 2.0, 3.0, 5.0])
    >>> [round(p, 4) for p in existence(z, torch.full((5,), 0.01), 0.1).tolist()]
    [0.0, 0.0, 0.0008, 0.0148, 0.9868]
    >>> round(existence(torch.tensor(1.0), torch.tensor(10.0), 0.1).item(), 2)  # an estimate that says nothing
    0.11
    """
    evidence = log_bayes_factor(z.double(), std_error.double(), num_units=num_units, num_weights=num_weights)
    logit: Tensor = torch.logit(torch.as_tensor(prior, dtype=torch.float64)).to(z.device) + evidence
    return torch.sigmoid(logit)


def log_bayes_factor(z: Statistic, std_error: Statistic, *, num_units: int = 1, num_weights: int = 0) -> Statistic:
    """Return the evidence for an edge in nats; negative if the data support its absence."""
    logs = torch.linspace(math.log(LOWEST), 0.0, POINTS, dtype=z.dtype, device=z.device)
    acts = logs.exp() / std_error.clamp(torch.finfo(z.dtype).tiny, LARGEST)[..., None]  # (*edge, point)
    density = math.log(2) + 2 * logs + math.log(-logs[0].item() / (POINTS - 1))  # 2 theta d theta, theta = exp(logs)
    density[-1] -= math.log(2)  # the trapezoidal rule; the density at the other end is negligible
    evidence = torch.logsumexp(z[..., None] * acts - acts.square() / 2 + density, -1)
    return evidence - num_weights / 2 * math.log(num_units)


def standardised(differences: Differences, block: int = 1) -> Statistic:
    """Return the mean over pairs in standard errors; pairs of one ``block`` are not assumed to be independent.

    >>> differences = torch.tensor([1.0, 1.0, 3.0, 3.0])
    >>> [round(standardised(differences, block).item(), 2) for block in (1, 2)]
    [3.46, 2.0]
    """
    values = differences.double()
    block = max(1, min(block, values.shape[-1] // 2))  # at least two blocks
    units = values.shape[-1] // block
    means = values[..., : units * block].reshape(*values.shape[:-1], units, block).mean(-1)
    error = means.std(-1) / units**0.5
    return torch.where(error > 0, means.mean(-1) / error, 0.0)


MOST_PAIRS, NUM_GRAPHS, AT_ONCE = 4096, 8, 256
ROUNDING = 1e-8  # relative to the variance of the targets
SHARE, CHANCE = 0.01, 0.01


def shares_weights(model: LatentGraphModel) -> bool:
    """Return whether the predictor has trained weights, none of which belongs to a single edge."""
    trained = any(value.requires_grad for value in model.predictor.parameters())
    return trained and not edge_parameters_of(model.predictor)


@torch.no_grad()
def differing_nodes(model: LatentGraphModel, pairs: Pairs, *, generator: Generator) -> Bool[Tensor, " node"]:
    """Return which nodes differ from the others by more than their edges.

    >>> from tacit.graph import BernoulliGraph
    >>> from tacit.losses import EnergyScore
    >>> from tacit.predictors import HopPredictor
    >>> graph, rng = BernoulliGraph(torch.eye(2)), Generator().manual_seed(0)
    >>> inputs = torch.randn(500, 2, 1, generator=rng)
    >>> pairs = Pairs(inputs, torch.tanh(inputs * torch.tensor([[1.0], [-1.0]])))
    >>> model = LatentGraphModel(graph, HopPredictor(torch.ones(1, 1, 1)), EnergyScore())
    >>> differing_nodes(model, pairs, generator=rng).tolist()
    [False, True]
    """
    some = pairs[:: -(-len(pairs) // MOST_PAIRS)]
    means = torch.cat([_means(model, some[k : k + AT_ONCE], generator) for k in range(0, len(some), AT_ONCE)])
    residuals = (some.targets - means).double()  # (batch, node, channel)
    if some.observed is not None:
        residuals = torch.where(some.observed > 0, residuals, 0.0)
    inputs = some.inputs.double()
    own = torch.cat([inputs, inputs.square()], -1)  # (batch, node, column)
    least = ROUNDING * some.targets.double().var(0).nan_to_num()
    shares = explained_shares(residuals.cpu(), own.cpu(), least.cpu())  # rank-deficient least squares: not on a GPU
    limit = special.chdtri(own.shape[-1], CHANCE / len(shares)) / len(some)
    return shares > max(SHARE, float(limit))


def explained_shares(
    residuals: Float[Tensor, "batch node channel"],
    own: Float[Tensor, "batch node column"],
    least: Float[Tensor, "node channel"],
) -> Float[Tensor, " node"]:
    """Return the largest share of a node's residual variance that its columns explain; 0 if it is at most ``least``."""
    centred, columns = residuals - residuals.mean(0), (own - own.mean(0)).transpose(0, 1)  # (node, batch, column)
    targets = centred.transpose(0, 1)  # (node, batch, channel)
    fitted = columns @ torch.linalg.lstsq(columns, targets, driver="gelsd").solution
    total = targets.square().mean(1)
    return torch.where(total > least, fitted.square().mean(1) / total, 0.0).amax(-1)


def _means(model: LatentGraphModel, pairs: Pairs, generator: Generator) -> Targets:
    """Return the mean prediction from independent graphs for each pair, so that errors are independent."""
    graph = model.graph_for(pairs.inputs, Context.of(pairs))
    graphs = graph.sample(NUM_GRAPHS, num_pairs=len(pairs), generator=generator)
    return model.observation.mean(model.describe(pairs.inputs, graph.as_operator(graphs))).mean(1)

r"""Identifiability of how often an edge acts, if its strength is learned too.

With a learned predictor both $\theta_a$ and the strength of edge $a$ are free. Under the model a target has the density
$P(y) = E_A\, p(y \mid f(x, A))$, and with $d_a = f(x, A^{a=1}) - f(x, A^{a=0})$ the derivatives of $\log P(y)$ are

$$\frac{E[p \mid A_a = 1] - E[p \mid A_a = 0]}{P(y)} \quad (\theta_a), \qquad
  \frac{E[p'\, A_a\, d_a]}{P(y)} \quad (\text{strength}), \qquad \frac{E[p']}{P(y)} \quad (\text{intercept}),$$

with $p' = \partial p / \partial f$; in addition there are those for the node's own inputs and its noise parameters. The
products of these derivatives, summed over the pairs, for all edges into a node together, are the information $I$; the
standard error of $\theta_a$ with all other parameters learned is $\sqrt{(I^{-1})_{aa}}$. For binary targets
$P(y = 1) = E_A\, \sigma(f)$: for small effects $P \approx \sigma(f_0) + \sigma'(f_0)\, \theta_a d_a$, only the product
is identifiable, and the standard error is large. For counts the two are identifiable by overdispersion, unless a
dispersion parameter is learned too.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor
from torch.func import functional_call

from tacit.assessment.identification.effects import Contexts
from tacit.predictors import num_hops_of
from tacit.shapes import EdgeProbs, Inputs, Observed, Samples, Targets
from tacit.training import LatentGraphModel

GRAPHS, PAIRS, MOST_OWN = 128, 2048, 24  # of the own inputs of a node, the oldest first
STEP = 1e-3  # finite-difference step of noise parameters, which are of order 1
SMALLEST = 1e-9  # share of the largest information below which a direction has none
Scores = Float[Tensor, "pair node channel"]


def can_separate(model: LatentGraphModel) -> bool:
    """Return whether standard errors can be computed: an edge affects only its target, and targets are random."""
    local = num_hops_of(model.predictor) == 1
    supports = model.observation.supports or (model.observation.support,)
    return local and model.observation.random and any(support != "real" for support in supports)


@torch.no_grad()
def separation_errors(
    model: LatentGraphModel,
    inputs: Inputs,
    targets: Targets,
    *,
    generator: Generator,
    observed: Observed | None = None,
    num_pairs: int | None = None,
) -> EdgeProbs:
    """Return the standard error of the probability of each learned edge, with its strength learned too.

    It is for ``num_pairs`` pairs, by default the given ones; NaN for fixed edges, infinite if not identifiable.
    """
    rows = torch.randperm(len(inputs), generator=generator, device=generator.device)[:PAIRS].to(inputs.device)
    some, known = inputs[rows], targets[rows]
    weights = torch.ones_like(known) if observed is None else observed[rows]
    graph, learned = model.graph, model.graph.learned
    order = learned.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, : int(learned.sum(1).max())]
    sources = torch.where(learned.gather(1, order), order, -1)  # of the learned edges into each node, padded with -1
    uniforms = torch.rand(1, GRAPHS, *graph.uniforms_shape, generator=generator, device=generator.device)
    contexts = graph.sample_from(uniforms.to(graph.raw))[0]
    scores = list(_scores(model, some, known, contexts, sources))
    table = torch.stack([torch.where(weights > 0, score, 0.0) for score in scores], -1).double()  # (pair, node, c, d)
    table = table.nan_to_num(0.0, 0.0, 0.0)  # a target that is impossible under all sampled graphs has no derivative
    information = torch.einsum("bncd,bnce->nde", table, table) * ((num_pairs or len(inputs)) / len(some))
    variances = torch.stack([_inverse_diagonal(one) for one in information])  # (node, direction)
    errors = torch.full(graph.edge_shape, torch.nan, dtype=graph.raw.dtype, device=graph.raw.device)
    for place in range(sources.shape[1]):
        nodes = (sources[:, place] >= 0).nonzero().flatten()
        errors[nodes, sources[nodes, place]] = variances[nodes, place].sqrt().to(errors)
    return errors


def _scores(
    model: LatentGraphModel, inputs: Inputs, targets: Targets, contexts: Contexts, sources: Int[Tensor, "node place"]
) -> Iterator[Scores]:
    """Yield the derivatives of log P for every target: probabilities, strengths, intercept, own inputs, noise."""
    before = model.predictor(inputs, contexts[None])
    logs, slopes = _logs_and_slopes(model, before, inputs, targets)
    posterior = logs.softmax(1)
    strengths = []
    for place in range(sources.shape[1]):
        there = sources[:, place] >= 0
        nodes, columns = there.nonzero().flatten(), sources[there, place]
        with_edge, without = contexts.clone(), contexts.clone()
        with_edge[:, nodes, columns], without[:, nodes, columns] = 1.0, 0.0
        on, off = (model.predictor(inputs, graphs[None]) for graphs in (with_edge, without))
        (up, _), (down, _) = (_logs_and_slopes(model, outputs, inputs, targets) for outputs in (on, off))
        both = logs.logsumexp(1)
        yield (up.logsumexp(1) - both).exp() - (down.logsumexp(1) - both).exp()
        present = torch.zeros_like(contexts[..., 0])
        present[:, nodes] = contexts[:, nodes, columns]
        effect = (on - off)[..., : slopes.shape[-1]] * present[None, :, :, None]
        strengths.append((posterior * slopes * effect).sum(1))
    yield from strengths
    moved = (posterior * slopes).sum(1)
    yield moved
    for channel in range(min(inputs.shape[-1], MOST_OWN)):
        yield moved * inputs[:, :, channel, None]
    described = model.observation.describe(before, inputs)
    for noise in _moved_noise(model):
        changed = functional_call(_LogProb(model), noise, (described, targets))
        yield (posterior * (changed - logs)).sum(1) / STEP


def _logs_and_slopes(
    model: LatentGraphModel, outputs: Tensor, inputs: Inputs, targets: Targets
) -> tuple[Samples, Samples]:
    """Return the log probability of each target under each graph, and its derivative for the output."""
    with torch.enable_grad():
        wanted = outputs.detach().requires_grad_()
        logs = model.observation.log_prob(model.observation.describe(wanted, inputs), targets)
        (slopes,) = torch.autograd.grad(logs.sum(), wanted)
    return logs.detach(), slopes[..., : logs.shape[-1]]


def _moved_noise(model: LatentGraphModel) -> Iterator[dict[str, Tensor]]:
    """Yield the noise parameters with one parameter of every node changed by a step."""
    present = {f"observation.{name}": value.detach() for name, value in model.observation.named_parameters()}
    for name, value in present.items():
        flat = value.flatten(2) if value.ndim > 2 else value[..., None]
        for place in range(flat.shape[-1]):
            step = torch.zeros_like(flat)
            step[..., place] = STEP
            yield {**present, name: value + step.view_as(value)}


class _LogProb(torch.nn.Module):
    """The log probability as a function of the noise parameters."""

    def __init__(self, model: LatentGraphModel) -> None:
        super().__init__()
        self.observation = model.observation

    def forward(self, described: Tensor, targets: Targets) -> Samples:
        return self.observation.log_prob(described, targets)


def _inverse_diagonal(information: Float[Tensor, "d d"]) -> Float[Tensor, " d"]:
    """Return the diagonal of the inverse; infinite for parameters with a component without information."""
    scale = information.diagonal().clamp_min(0).sqrt()
    has = scale > 0
    found = torch.full_like(scale, torch.inf)
    if has.any():
        kept = information[has][:, has] / (scale[has][:, None] * scale[has])
        values, vectors = torch.linalg.eigh(kept)
        inverse = torch.where(values > SMALLEST * len(values), 1 / values, torch.inf)
        parts = torch.where(vectors.square() > SMALLEST, vectors.square() * inverse, 0.0).sum(1)
        found[has] = parts / scale[has].square()
    return found

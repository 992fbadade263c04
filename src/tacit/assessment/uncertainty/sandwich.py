r"""Standard errors without another training: curvature, gradients of pairs, and the sandwich.

Standard errors without another training: the sandwich of curvature and covariance of gradients.

At the estimate the mean gradient over the pairs is zero, so to first order its covariance is

$$V = \frac1n\, H^{-1}\, \Sigma\, H^{-1}, \qquad \Sigma = \mathrm{Cov}_{(x, y)}\big[ E_A\, g(x, y) \big]$$

with $g$ the gradient of one pair and $H$ the curvature. $E_A\,g$ can only be estimated from some graphs; two estimates
from independent graphs have the covariance of their common part, so $\Sigma = \mathrm{Cov}(g^{(1)}, g^{(2)})$ does not
include the randomness of graphs. Pairs that depend on each other are allowed for as in every other sandwich
(:class:`~tacit.local.Dependence`).

It is valid for edges well inside (0, 1), of a model that is right and trained to its minimum; edges at the boundary are
treated as known. It requires no training, and is limited to a number of edges and parameters.

The curvature of the expected loss at its minimum, for edge probabilities and the predictor's parameters.

A loss that compares graphs is $L(\eta) = E\,h(Y_\eta, Y'_\eta) - 2 E\,h(Y_\eta, y)$. If the model is right, $y$ is
distributed as $Y_\eta$, and the second derivative is that of the cross term only,

$$H = 2\, \partial_\eta\, \partial_{\eta'} \, E\,h(Y_\eta, Y'_{\eta'})$$

For edges both derivatives are scores, $s_a(A) = (A_a - \theta_a) / \theta_a (1 - \theta_a)$ with respect to
$\theta_a$, so one set of sampled graphs is sufficient:

$$H_{ab} = \frac{2}{S (S - 1)} \sum_{s \neq t} \tilde h_{st}\, s_a(A_s)\, s_b(A_t)$$

$\tilde h_{st}$ is $h(y_s, y_t)$ minus the means of its row and column over all other graphs, which does not change the
expectation. With credit by receptive field, a node uses only the scores of edges that can affect it. For the
predictor's parameters finite differences of the gradient are used, with the same graphs.
"""

import copy
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.func import vmap

from tacit.assessment.uncertainty.boundary import NOTHING_KNOWN, interior_edges
from tacit.data import Pairs
from tacit.errors import InputError, require_int
from tacit.graph import Context, GraphDistribution, reachability
from tacit.local import Dependence
from tacit.randomness import draw_uniforms, generator_for
from tacit.shapes import EdgeMask, EdgeProbs, Graphs, PairCosts
from tacit.training import LatentGraphModel, constants_of, gradient_of_one, trainable_names

EdgeCurvature = Float[Tensor, "edge edge"]
EdgeScores = Float[Tensor, "batch graph edge"]
NUM_GRAPHS = 24
MOST_NUMBERS = 2**24  # scores in a chunk: 64 MiB


@torch.no_grad()
def edge_curvature(
    model: LatentGraphModel,
    pairs: Pairs,
    edges: EdgeMask,
    *,
    generator: Generator,
    num_graphs: int = NUM_GRAPHS,
) -> EdgeCurvature:
    r"""Return $H_{ab}$ for the marked edges, in the order of ``edges.nonzero()``; probabilities must not be 0 or 1."""
    graph, loss = model.graph, model.loss
    graph.require_edge_probs("edge_curvature")
    loss.require_compares("edge_curvature")
    require_int("num_graphs", num_graphs, 4)
    units = pairs.num_nodes if loss.scope == "node" else 1
    count = int(edges.sum())
    local = _is_own_row(model, units)
    largest = max(num_graphs * (num_graphs if local else units), count) * max(1, count)
    chunk = max(1, MOST_NUMBERS // largest)
    total = torch.zeros(count, count, device=pairs.inputs.device, dtype=torch.float64)
    weight = 0.0
    for start in range(0, len(pairs), chunk):
        part = pairs[start : start + chunk]
        graphs = graph.sample(num_graphs, num_pairs=len(part), generator=generator)
        samples = model.for_loss(model.describe(part.inputs, graph.as_operator(graphs)), generator=generator)
        costs = centred(loss.pair_costs(samples, part.observed))
        if part.observed is not None:
            counted = loss.weights_of(part.observed)
            costs = costs * counted[:, None, None]
            weight += float(counted.sum())
        else:
            weight += len(part) * units
        total += (_own_rows if local else _all_rows)(model, graphs, edges, costs)
    probs = graph.edge_probs[edges].double()
    slope = probs * (1 - probs)  # derivative of a probability by its logit
    return (total + total.mT) / (num_graphs * (num_graphs - 1) * weight) / (slope[:, None] * slope)


def centred(costs: PairCosts) -> PairCosts:
    r"""Return $\tilde h_{st} = h_{st} - r_s - r_t + m$, with means over graphs other than $s$ and $t$; 0 at $s = t$."""
    graphs = costs.shape[1]
    off = 1 - torch.eye(graphs, device=costs.device, dtype=costs.dtype)[None, :, :, None]
    costs = costs * off
    rows = costs.sum(2)  # (batch, graph, unit)
    own, other = rows[:, :, None], rows[:, None]
    means = (own + other - 2 * costs) / (graphs - 2)
    rest = (rows.sum(1)[:, None, None] - 2 * own - 2 * other + 2 * costs) / ((graphs - 2) * (graphs - 3))
    return (costs - means + rest) * off


def _is_own_row(model: LatentGraphModel, units: int) -> bool:
    """Return whether an edge affects only its own target node."""
    credit = model.estimator.credit
    return units > 1 and credit is not None and credit.num_hops == 1 and not model.graph.symmetric


def _own_rows(model: LatentGraphModel, graphs: Graphs, edges: EdgeMask, costs: PairCosts) -> EdgeCurvature:
    """Return the sum over pairs if an edge affects only its target: 0 for edges into different nodes."""
    scores, (_, target) = _scores(model.graph, graphs, edges), model.graph.layout.ends(edges)
    received = torch.einsum("bste,bse->bte", costs[..., target], scores)
    return torch.einsum("bte,btf->ef", received, scores) * (target[:, None] == target)


def _all_rows(model: LatentGraphModel, graphs: Graphs, edges: EdgeMask, costs: PairCosts) -> EdgeCurvature:
    """Return the sum over pairs."""
    scores = _unit_scores(model, graphs, edges, costs.shape[-1])
    received = torch.einsum("bstu,bsue->btue", costs, scores)
    return torch.einsum("btue,btuf->ef", received, scores)


def _unit_scores(
    model: LatentGraphModel, graphs: Graphs, edges: EdgeMask, units: int
) -> Float[Tensor, "batch graph unit edge"]:
    """Return the score of each marked edge for each unit, 0 if the edge cannot affect the unit."""
    layout, scores = model.graph.layout, _scores(model.graph, graphs, edges)[:, :, None]
    source, target = layout.ends(edges)
    credit = model.estimator.credit
    if units == 1 or credit is None or credit.num_hops is None:
        return scores.expand(-1, -1, units, -1)
    reached = reachability(layout.in_matrix(graphs, axis=2), credit.num_hops - 1)  # from unit to node
    affected = reached[..., target]
    if model.graph.symmetric:
        affected = torch.maximum(affected, reached[..., source])
    return scores * affected


def _scores(graph: GraphDistribution, graphs: Graphs, edges: EdgeMask) -> EdgeScores:
    """Return the derivative of the log-probability by the logit of each marked edge."""
    return (graphs - graph.edge_probs)[..., edges]


MOST_PARAMETERS = 1500  # size of the matrix that is inverted
MOST_PAIRS = 8192  # training pairs that are used: an error of 1.5% of a covariance
CHUNK = 128
DIFFERENCED_PAIRS = 2048  # for the predictor's columns; both ends of a difference use the same graphs
STEP = 0.02  # finite-difference step of a parameter of the predictor, relative to the size of its tensor
FLATTEST = 1e-3  # smallest curvature of a direction, relative to the median

Gradients = Float[Tensor, "pair parameter"]
Square = Float[Tensor, "parameter parameter"]


@dataclass(frozen=True, eq=False)
class Sandwich:
    """Standard errors of the edges marked in ``interior``; others are treated as known and have error 0.

    The error is 0.5 (unknown) for edges with almost no curvature.
    """

    std_errors: EdgeProbs
    interior: EdgeMask


def sandwich(
    model: LatentGraphModel, train: Pairs, *, generator: Generator, block: int = 1, num_pairs: int = MOST_PAIRS
) -> Sandwich:
    """Return standard errors of a trained model from at most ``num_pairs`` of its training pairs.

    ``block``  is the number of neighbouring pairs that may be correlated, above 1 for a series.
    """
    model.graph.require_all_pairs("sandwich")
    model.loss.require_compares("a sandwich")
    refused = refusal(model, MOST_PARAMETERS)
    if refused is not None:
        raise InputError(refused)
    graph = model.graph
    probs = graph.edge_probs.detach()
    interior = ~graph.fixed & interior_edges(probs)
    edges, names = _counted(model, interior), predictor_names(model)
    if not edges.any():
        return Sandwich(torch.zeros_like(probs), interior)
    some = some_pairs(train, num_pairs, block)
    view = _View(model, edges, names, generator)
    first, second = view.gradients(some), view.gradients(some)
    dependence = Dependence(block, some.series)
    spread = dependence.covariances(first - first.mean(0), second - second.mean(0)) / len(some)
    bend = view.curvature(some)
    values, vectors = torch.linalg.eigh(bend)
    floor = FLATTEST * values.abs().median()
    inverse = vectors @ torch.diag(1 / values.clamp_min(floor)) @ vectors.mT
    count = int(edges.sum())
    variance = (inverse @ spread @ inverse).diagonal()[:count] / len(train)
    flat = vectors[:count, values <= floor].square().sum(1) > 0.5  # mostly in directions with almost no curvature
    found = torch.where(flat | (variance <= 0), NOTHING_KNOWN, variance.clamp_min(0).sqrt().clamp_max(NOTHING_KNOWN))
    errors = torch.zeros_like(probs)
    errors[edges] = found.to(probs)
    return Sandwich(graph.symmetrize(errors), interior)


def refusal(model: LatentGraphModel, most: int) -> str | None:
    """Return why a sandwich of a model over all pairs, with a loss that compares, is not possible; None if it is."""
    estimator = model.estimator
    if estimator.group_size != 1 or not estimator.takes_credit:
        return f"a sandwich requires the estimator ScoreFunction, got {type(estimator).__name__}; use the bootstrap"
    if model.prior is not None:
        return "a sandwich requires a model without a prior, got one; use the bootstrap"
    interior = ~model.graph.fixed & interior_edges(model.graph.edge_probs.detach())
    size = int(_counted(model, interior).sum())
    size += sum(model.get_parameter(name).numel() for name in predictor_names(model))
    if size > most:
        return f"a sandwich requires at most {most} edges and parameters, got {size}; use the bootstrap"
    return None


def _counted(model: LatentGraphModel, interior: EdgeMask) -> EdgeMask:
    return model.graph.upper_triangle(interior.to(model.graph.raw.dtype)) > 0


class _View:
    """The model as a function of the chosen edges' probabilities and the predictor's parameters, in this order."""

    def __init__(self, model: LatentGraphModel, edges: EdgeMask, names: list[str], generator: Generator) -> None:
        self.model, self.edges, self.names, self.generator = copy.deepcopy(model), edges, names, generator
        if model.loss.baseline == "paper":  # it shrinks the gradient of a single pair
            self.model.loss = model.loss.with_baseline("leave_one_out")
        self.model.share_graphs = False
        self.raw_name, raw = f"graph.{model.graph.link.parameter}", model.graph.raw.detach().clone().requires_grad_()
        (slopes,) = torch.autograd.grad(model.graph.link.probs(raw).sum(), raw)
        self.slope = slopes[edges]  # derivative of a probability by the stored number
        self.parameters = {name: self.model.get_parameter(name).detach() for name in trainable_names(model)}
        self.constants, self.gradient = constants_of(self.model), gradient_of_one(self.model)

    def gradients(self, pairs: Pairs) -> Gradients:
        """Return the gradient of each pair, with separate graphs; pairs are weighted by their observed targets."""
        parts = [self._each(pairs[start : start + CHUNK]) for start in range(0, len(pairs), CHUNK)]
        gradients, weights = (torch.cat(part).double() for part in zip(*parts, strict=True))
        return gradients * weights[:, None] / weights.mean()

    def _each(self, pairs: Pairs) -> tuple[Gradients, Float[Tensor, " pair"]]:
        shape = (len(pairs), *self.model.uniforms_shape(1)[1:])
        uniforms = draw_uniforms(*shape, generator=self.generator, dtype=pairs.inputs.dtype)
        batch = [pairs.inputs, pairs.targets, uniforms.to(pairs.inputs.device)]
        fields = [getattr(pairs, name) for name in self.model.context_fields]
        if pairs.observed is not None or fields:
            batch.append(torch.ones_like(pairs.targets) if pairs.observed is None else pairs.observed)
        batch += fields
        given = [*self.parameters.values(), *self.constants.values()]
        places = (*[None] * len(given), *[0] * len(batch))
        outputs = vmap(self.gradient, in_dims=places)(*given, *(values[:, None] for values in batch))
        by_name = dict(zip(self.parameters, outputs, strict=False))
        rest = [by_name[name].flatten(1) for name in self.names]
        _, weights, *_ = outputs[len(self.parameters) :]
        return torch.cat([by_name[self.raw_name][:, self.edges] / self.slope, *rest], 1), weights[:, 0]

    def curvature(self, pairs: Pairs) -> Square:
        """Return the curvature: for edges from scores, for the predictor from finite differences of gradients.

        For the differences ``pairs`` are thinned to about ``DIFFERENCED_PAIRS``.
        """
        top = edge_curvature(self.model, pairs, self.edges, generator=self.generator)
        fewer = pairs[:: max(1, len(pairs) // DIFFERENCED_PAIRS)]
        columns = [column for name in self.names for column in self._columns(name, fewer)]
        if not columns:
            return top
        right = torch.stack(columns, 1)  # (numbers of the graph and parameters, parameters)
        count = len(top)
        upper = torch.cat([top, right[:count]], 1)
        lower = torch.cat([right[:count].mT, (right[count:] + right[count:].mT) / 2], 1)
        return torch.cat([upper, lower])

    def _columns(self, name: str, pairs: Pairs) -> list[Tensor]:
        """Return the derivative of the mean gradient by each entry of one parameter."""
        value = self.parameters[name]
        step = STEP * float(value.square().mean().sqrt().clamp_min(torch.finfo(value.dtype).eps ** 0.5))
        state, columns = self.generator.get_state(), []
        for place in range(value.numel()):
            means = []
            for sign in (1, -1):
                moved = value.clone(memory_format=torch.contiguous_format)
                moved.view(-1)[place] += sign * step
                self.generator.set_state(state)  # the same graphs
                view = copy.copy(self)
                view.parameters = {**self.parameters, name: moved}
                means.append(view.gradients(pairs).mean(0))
            columns.append((means[0] - means[1]) / (2 * step))
        return columns


def predictor_names(model: LatentGraphModel) -> list[str]:
    """Return the trained parameters of the predictor and the noise."""
    return [name for name in trainable_names(model) if not name.startswith("graph.")]


def some_pairs(train: Pairs, num_pairs: int, block: int) -> Pairs:
    """Return some of the pairs: evenly spread, or neighbours if they are correlated."""
    if len(train) <= num_pairs:
        return train
    if block > 1:
        return train[len(train) - num_pairs :]
    places = torch.linspace(0, len(train) - 1, num_pairs, device=train.inputs.device).round().long()
    return train[places]


RESIDUAL_PAIRS, RESIDUAL_GRAPHS = 512, 64


@torch.no_grad()
def residual_deviation(model: LatentGraphModel, train: Pairs, seed: int = 0) -> float:
    r"""Return $\sigma$, the root mean square of $y - E\,\hat y$, from some of the pairs; above 0."""
    some = some_pairs(train, RESIDUAL_PAIRS, 1)
    generator = generator_for(seed, "residual", train.inputs.device)
    described = model.outputs(some.inputs, RESIDUAL_GRAPHS, generator=generator, context=Context.of(some))
    left = some.targets - model.observation.mean(described).mean(1)
    seen = torch.ones_like(left) if some.observed is None else some.observed
    squares = torch.where(seen > 0, left, 0.0).square().sum() / seen.sum().clamp_min(1)
    return float(squares.sqrt().clamp_min(torch.finfo(torch.float32).eps))

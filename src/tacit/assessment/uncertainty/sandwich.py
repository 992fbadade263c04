r"""Standard errors without another training: the sandwich of curvature and the spread of gradients.

The estimate is where the mean gradient over the pairs is zero, so that to first order it errs by

$$V = \frac1n\, H^{-1}\, \Sigma\, H^{-1}, \qquad \Sigma = \mathrm{Cov}_{(x, y)}\big[ E_A\, g(x, y) \big]$$

with $g$ the gradient of one pair and $H$ the curvature. $E_A\,g$ is never seen, only $g$ under some graphs; but two
estimates of it under independent graphs have the covariance of what they have in common, so that
$\Sigma = \mathrm{Cov}(g^{(1)}, g^{(2)})$ without the randomness of graphs. In a series neighbouring gradients are
correlated; their covariances up to a lag are added with falling weights (Newey and West).

It holds for edges well inside (0, 1), of a model that is right and trained to its minimum; edges at the boundary are
taken as known. It needs no training, and is refused where there are more than some hundred edges and parameters.
"""

import copy
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.func import vmap

from tacit.assessment.uncertainty.boundary import NOTHING_KNOWN, interior_edges
from tacit.assessment.uncertainty.curvature import edge_curvature
from tacit.data import Pairs
from tacit.errors import InputError
from tacit.randomness import draw_uniforms
from tacit.shapes import EdgeMask, EdgeProbs
from tacit.training import LatentGraphModel, constants_of, gradient_of_one, trainable_names

Gradients = Float[Tensor, "pair parameter"]
MOST_PARAMETERS = 1500  # the matrix of all pairs of them is inverted
MOST_PAIRS = 8192  # to estimate from: 1.5% of a covariance
DIFFERENCED_PAIRS = 2048  # for the predictor's columns, where the same graphs serve both ends of a difference
CHUNK = 128
STEP = 0.02  # of a parameter of the predictor, relative to the size of its tensor
FLATTEST = 1e-3  # of the median curvature: below, a direction is taken to bend so much


@dataclass(frozen=True, eq=False)
class Sandwich:
    """Standard errors of the edges marked in ``interior``; others are taken as known, and have 0.

    Where the loss hardly bends the error is 0.5: nothing is known.
    """

    std_errors: EdgeProbs
    interior: EdgeMask


def sandwich(
    model: LatentGraphModel, train: Pairs, *, generator: Generator, block: int = 1, num_pairs: int = MOST_PAIRS
) -> Sandwich:
    """Return standard errors of a trained model from at most ``num_pairs`` of its training pairs.

    ``block``  is the number of neighbouring pairs that may hang together, above 1 for a series.
    """
    model.graph.require_all_pairs("sandwich")
    model.loss.require_compares("a sandwich")
    refused = refusal(model, MOST_PARAMETERS)
    if refused is not None:
        raise InputError(refused)
    graph = model.graph
    probs = graph.edge_probs.detach()
    interior = ~graph.fixed & interior_edges(probs)
    edges, names = _counted(model, interior), _of_the_predictor(model)
    if not edges.any():
        return Sandwich(torch.zeros_like(probs), interior)
    some = _some(train, num_pairs, block)
    view = _View(model, edges, names, generator)
    first, second = view.gradients(some), view.gradients(some)
    spread = _long_run_covariance(first, second, block)
    bend = view.curvature(some)
    values, vectors = torch.linalg.eigh(bend)
    floor = FLATTEST * values.abs().median()
    inverse = vectors @ torch.diag(1 / values.clamp_min(floor)) @ vectors.mT
    count = int(edges.sum())
    variance = (inverse @ spread @ inverse).diagonal()[:count] / len(train)
    flat = vectors[:count, values <= floor].square().sum(1) > 0.5  # mostly in directions that hardly bend
    found = torch.where(flat | (variance <= 0), NOTHING_KNOWN, variance.clamp_min(0).sqrt().clamp_max(NOTHING_KNOWN))
    errors = torch.zeros_like(probs)
    errors[edges] = found.to(probs)
    return Sandwich(graph.symmetrize(errors), interior)


def refusal(model: LatentGraphModel, most: int) -> str | None:
    """Return why a sandwich of a model over all pairs, with a loss that compares, cannot be; None if it can."""
    estimator = model.estimator
    if estimator.group_size != 1 or not estimator.takes_credit:
        return f"a sandwich requires the estimator ScoreFunction, got {type(estimator).__name__}; use the bootstrap"
    if model.prior is not None:
        return "a sandwich requires a model without a prior, got one; use the bootstrap"
    interior = ~model.graph.fixed & interior_edges(model.graph.edge_probs.detach())
    size = int(_counted(model, interior).sum())
    size += sum(model.get_parameter(name).numel() for name in _of_the_predictor(model))
    if size > most:
        return f"a sandwich requires at most {most} edges and parameters, got {size}; use the bootstrap"
    return None


def _counted(model: LatentGraphModel, interior: EdgeMask) -> EdgeMask:
    return model.graph.upper_triangle(interior.to(model.graph.raw.dtype)) > 0


def _of_the_predictor(model: LatentGraphModel) -> list[str]:
    return [name for name in trainable_names(model) if not name.startswith("graph.")]


class _View:
    """The model as a function of the chosen edges' probabilities and the predictor's parameters, in this order."""

    def __init__(self, model: LatentGraphModel, edges: EdgeMask, names: list[str], generator: Generator) -> None:
        self.model, self.edges, self.names, self.generator = copy.deepcopy(model), edges, names, generator
        loss = model.loss
        if loss.baseline == "paper":  # it shrinks the gradient of a single pair
            self.model.loss = loss.with_baseline("leave_one_out")
        self.raw = f"graph.{model.graph.link.parameter}"
        self.parameters = {name: self.model.get_parameter(name).detach() for name in trainable_names(model)}
        self.constants = constants_of(self.model)
        raw = self.parameters[self.raw].clone().requires_grad_()
        (slope,) = torch.autograd.grad(model.graph.link.probs(raw).sum(), raw)
        self.slope = slope[edges]  # of a probability in what is stored
        self.gradient = gradient_of_one(self.model)

    def gradients(self, pairs: Pairs) -> Gradients:
        """Return the gradient of each pair by itself, under graphs drawn for it."""
        parts = [self._each(pairs[start : start + CHUNK]) for start in range(0, len(pairs), CHUNK)]
        gradients, weights = (torch.cat(part).double() for part in zip(*parts, strict=True))
        return gradients * (weights / weights.mean())[:, None]  # a pair counts by what was observed of it

    def _each(self, pairs: Pairs) -> tuple[Gradients, Float[Tensor, " pair"]]:
        shape = (len(pairs), *self.model.uniforms_shape(1)[1:])
        uniforms = draw_uniforms(*shape, generator=self.generator, dtype=pairs.inputs.dtype)
        batch = [pairs.inputs, pairs.targets, uniforms, *([] if pairs.observed is None else [pairs.observed])]
        given = [*self.parameters.values(), *self.constants.values()]
        places = (*[None] * len(given), *[0] * len(batch))
        outputs = vmap(self.gradient, in_dims=places)(*given, *(values[:, None] for values in batch))
        by_name = dict(zip(self.parameters, outputs, strict=False))
        edges = by_name[self.raw][:, self.edges] / self.slope
        rest = [by_name[name].flatten(1) for name in self.names]
        _, weights, *_ = outputs[len(self.parameters) :]
        return torch.cat([edges, *rest], 1), weights[:, 0]

    def curvature(self, pairs: Pairs) -> Float[Tensor, "parameter parameter"]:
        """Return the curvature: of edges from scores, of the predictor's parameters from differences of gradients."""
        top = edge_curvature(self.model, pairs, self.edges, generator=self.generator)
        fewer = pairs[:: max(1, len(pairs) // DIFFERENCED_PAIRS)]
        columns = [column for name in self.names for column in self._columns(name, fewer)]
        if not columns:
            return top
        right = torch.stack(columns, 1)  # (edges and parameters, parameters)
        count = len(top)
        upper = torch.cat([top, right[:count]], 1)
        lower = torch.cat([right[:count].mT, (right[count:] + right[count:].mT) / 2], 1)
        return torch.cat([upper, lower])

    def _columns(self, name: str, pairs: Pairs) -> list[Tensor]:
        """Return the derivative of the mean gradient by each number of one parameter."""
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


def _some(train: Pairs, num_pairs: int, block: int) -> Pairs:
    """Return some of the pairs: spread over all, or neighbours where they hang together."""
    if len(train) <= num_pairs:
        return train
    if block > 1:
        return train[len(train) - num_pairs :]
    places = torch.linspace(0, len(train) - 1, num_pairs, device=train.inputs.device).round().long()
    return train[places]


def _long_run_covariance(first: Gradients, second: Gradients, block: int) -> Float[Tensor, "parameter parameter"]:
    first, second = first - first.mean(0), second - second.mean(0)
    total = first.mT @ second
    for lag in range(1, block):
        total += (1 - lag / block) * (first[:-lag].mT @ second[lag:] + second[lag:].mT @ first[:-lag])
    return (total + total.mT) / 2 / len(first)

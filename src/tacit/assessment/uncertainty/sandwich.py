r"""Standard errors without another training: the sandwich of curvature and covariance of gradients.

At the estimate the mean gradient over the pairs is zero, so to first order its covariance is

$$V = \frac1n\, H^{-1}\, \Sigma\, H^{-1}, \qquad \Sigma = \mathrm{Cov}_{(x, y)}\big[ E_A\, g(x, y) \big]$$

with $g$ the gradient of one pair and $H$ the curvature. $E_A\,g$ can only be estimated from some graphs; two estimates
from independent graphs have the covariance of their common part, so $\Sigma = \mathrm{Cov}(g^{(1)}, g^{(2)})$ does not
include the randomness of graphs. Pairs that depend on each other are allowed for as in every other sandwich
(:class:`~tacit.local.Dependence`).

It is valid for edges well inside (0, 1), of a model that is right and trained to its minimum; edges at the boundary are
treated as known. It requires no training, and is limited to a number of edges and parameters.
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
from tacit.local import Dependence
from tacit.randomness import draw_uniforms
from tacit.shapes import EdgeMask, EdgeProbs
from tacit.training import LatentGraphModel, constants_of, gradient_of_one, trainable_names

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

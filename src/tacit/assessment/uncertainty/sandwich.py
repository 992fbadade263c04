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

from dataclasses import dataclass

import torch
from torch import Generator

from tacit.assessment.uncertainty.boundary import NOTHING_KNOWN, interior_edges
from tacit.assessment.uncertainty.curvature import edge_curvature
from tacit.assessment.uncertainty.pair_gradients import (
    PairGradients,
    Square,
    predictor_names,
    some_pairs,
)
from tacit.data import Pairs
from tacit.errors import InputError
from tacit.local import Dependence
from tacit.shapes import EdgeMask, EdgeProbs
from tacit.training import LatentGraphModel

MOST_PARAMETERS = 1500  # size of the matrix that is inverted
MOST_PAIRS = 8192  # training pairs that are used: an error of 1.5% of a covariance
FLATTEST = 1e-3  # smallest curvature of a direction, relative to the median


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
        raw_name, raw = f"graph.{model.graph.link.parameter}", model.graph.raw.detach().clone().requires_grad_()
        (slopes,) = torch.autograd.grad(model.graph.link.probs(raw).sum(), raw)
        slope = slopes[edges]  # derivative of a probability by the stored number
        self.model, self.edges, self.generator = model, edges, generator
        self.gradients = PairGradients(model, names, lambda given: given[raw_name][:, edges] / slope, generator)

    def curvature(self, pairs: Pairs) -> Square:
        """Return the curvature: for edges from scores, for the predictor from finite differences of gradients."""
        top = edge_curvature(self.model, pairs, self.edges, generator=self.generator)
        return self.gradients.with_predictor(top, pairs)

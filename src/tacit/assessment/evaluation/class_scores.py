r"""Scores for specific observation models: log score, Brier score and ranked probability score.

With $P$ the mean over graphs,

$$\mathrm{log\ score} = \log P(y), \qquad \mathrm{Brier} = (P(y = 1) - y)^2, \qquad
  \mathrm{RPS} = \sum_{k < K} \big(P(y \le c_k) - 1[y \le c_k]\big)^2$$

A higher log score is better; for the others lower is better. The variance of a mean over $S$ graphs is subtracted from
its square, so that the last two scores are unbiased for any number of graphs; the bias of the log score is $O(1 / S)$.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.assessment.evaluation.point import discrete_nodes
from tacit.errors import InputError
from tacit.observation import MixedObservation, ObservationModel, OrderedCategories, Support
from tacit.shapes import PointPrediction, TargetParams, Targets

PerNode = Bool[Tensor, " node"]
ROUNDING = 1e-3  # tolerance when a scaled target is matched to a category


def class_scores(
    observation: ObservationModel, described: TargetParams, targets: Targets, scale: Float[Tensor, "*pair node channel"]
) -> dict[str, tuple[PointPrediction, PerNode]]:
    """Return each applicable score for every target, and the nodes that it applies to.

    ``scale``  the size of a scaled unit; densities are in the units of the data

    >>> from tacit.observation import PoissonCounts
    >>> means, none = torch.full((1, 8, 2, 1), 1.5), torch.zeros(1, 2, 1)
    >>> found = class_scores(PoissonCounts(2), means, none, torch.ones(2, 1))
    >>> {name: round(values[0, 0, 0].item(), 4) for name, (values, _) in found.items()}
    {'log_score': -1.5}
    """
    nodes, found = targets.shape[1], dict[str, tuple[PointPrediction, PerNode]]()
    try:
        logs = observation.log_prob(described, targets)
    except InputError:  # the model has no density
        pass
    else:
        masses = discrete_nodes(observation, nodes).to(scale.device)[:, None]
        mean = logs.logsumexp(1) - math.log(logs.shape[1])
        found["log_score"] = mean - torch.where(masses, 0.0, scale.log()), torch.ones(nodes, dtype=torch.bool)
    yes_no = _nodes_with(observation, "two values", nodes)
    if yes_no.any():
        errors = (observation.mean(described) - targets[:, None]) * _over_graphs(scale)
        found["brier_score"] = _square_of_mean(errors), yes_no
    categories = _scaled_categories(observation, targets)
    if categories is not None:
        steps = []
        for one in categories[:-1]:
            up_to = observation.cdf(described, one.expand_as(targets))[1]
            steps.append(_square_of_mean(up_to - (targets <= one + ROUNDING).to(up_to)[:, None]))
        found["ranked_probability_score"] = torch.stack(steps).sum(0), _nodes_with(observation, "categories", nodes)
    return found


def _over_graphs(scale: Tensor) -> Tensor:
    """Return scales of pairs with an axis for graphs; scales of nodes are unchanged."""
    return scale[:, None] if scale.ndim == 3 else scale


def _square_of_mean(errors: Float[Tensor, "batch graph node channel"]) -> PointPrediction:
    """Return the square of the mean over graphs minus the variance of that mean."""
    graphs = errors.shape[1]
    noise = errors.var(1) / graphs if graphs > 1 else torch.zeros_like(errors[:, 0])
    return errors.mean(1).square() - noise


def _nodes_with(observation: ObservationModel, support: Support, num_nodes: int) -> PerNode:
    supports = observation.supports or (observation.support,) * num_nodes
    return torch.tensor([one == support for one in supports])


def _scaled_categories(
    observation: ObservationModel, targets: Targets
) -> Float[Tensor, "category node channel"] | None:
    """Return the values of ordered categories as scaled targets; None if there are no such nodes."""
    parts = [(observation, list(range(targets.shape[1])))]
    if isinstance(observation, MixedObservation):
        parts = list(zip(observation.models, observation.nodes, strict=True))
    for model, nodes in parts:
        if isinstance(model, OrderedCategories):
            found = targets.new_zeros(len(model.categories), *targets.shape[1:])
            found[:, nodes] = model.to_targets(model.categories[:, None, None]).to(targets)
            return found
    return None

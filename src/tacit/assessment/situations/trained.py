r"""A Wald test of edges that depend on the situation, for models that are trained by gradients.

Three steps, from a fit in which every edge is constant:

1. All tested edges get weights, $\mathrm{logit}\,\theta_{ij}(c) = a_{ij} + b_{ij} \cdot \phi(c)$, and are trained, with
   the predictor if it is learned. Edges that are not tested are fixed.
2. A Wald test for each edge (:mod:`tacit.assessment.situations.wald`), with a false discovery rate.
3. The edges that vary keep their weights, those of the others are 0, and a shorter training follows.

The result of step 3 is updated by the Newton step to which the standard errors refer, unless the validation loss rises.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from tacit.assessment.situations.varying import FDR, VaryingEdges, called_varying
from tacit.assessment.situations.wald import EdgeNumbers, edge_numbers, is_split
from tacit.assessment.uncertainty import loss_difference, residual_deviation, short
from tacit.data import Pairs
from tacit.errors import require
from tacit.estimators import ScoreFunction
from tacit.graph import BernoulliGraph, ConditionalBernoulliGraph, Context, ContextVariable, shrinkage_of
from tacit.randomness import generator_for
from tacit.shapes import EdgeMask
from tacit.training import FitSettings, LatentGraphModel, Progress, fit, with_graph

LONGEST = 1.0  # largest Newton step of a logit; longer steps are unreliable
SPLIT = (
    "there are too many edges and features to test all edges at once: edges were tested in groups of nodes, with the "
    "other edges fixed, so that standard errors may be slightly too small"
)


def vary_by_training(
    model: LatentGraphModel,
    variables: Sequence[ContextVariable],
    train: Pairs,
    validation: Pairs,
    settings: FitSettings,
    tested: EdgeMask,
    fdr: float = FDR,
    *,
    seed: int = 0,
    compile: bool = True,
    block: int = 1,
    on_progress: Callable[[Progress], None] | None = None,
) -> VaryingEdges:
    """Return which of the tested edges depend on the variables, and a model in which they do.

    ``model``     a fit with constant edges, any predictor and a loss that compares graphs; it is not changed
    ``settings``  settings of the fit
    ``tested``    edges that exist and act at times
    ``block``     number of neighbouring pairs that may be correlated, above 1 for a series

    A prior for the edges is not used, because tested edges exist.
    """
    _require_fitting(model)
    tested = tested.to(model.graph.raw.device) & model.graph.learned
    nothing = torch.full(tested.shape, torch.nan, dtype=torch.float64, device=tested.device)
    if not tested.any():
        return VaryingEdges(None, tested, torch.zeros_like(tested), nothing, torch.zeros(0, 1, 1))
    plain = replace(settings, halve_after=(), patience=None)
    first = conditional_model(model, variables, train, tested, seed=seed)
    first = _trained(first, train, validation, plain, seed, compile, on_progress)
    once = _counted(first, tested)
    found = edge_numbers(first, train, once, generator=generator_for(seed, "wald", tested.device), block=block)
    p_values = nothing.clone()
    p_values[once] = found.p_values
    varies = called_varying(p_values, fdr)
    notes = (SPLIT,) if is_split(first, once) else ()
    if not varies.any():
        return VaryingEdges(None, tested, varies, _both_ends(first, p_values), torch.zeros(0, 1, 1), notes)
    second = _with_varying(first, _both_ends(first, varies))
    second = _trained(second, train, validation, short(plain), seed + 1, compile, on_progress)
    errors = edge_numbers(second, train, once, generator=generator_for(seed, "errors", tested.device), block=block)
    final = _moved(second, errors, once, validation)
    varies = _both_ends(first, varies)
    covariances = _covariances(final, errors, once, varies)
    return VaryingEdges(_as_before(final, model), tested, varies, _both_ends(first, p_values), covariances, notes)


def conditional_model(
    model: LatentGraphModel, variables: Sequence[ContextVariable], train: Pairs, tested: EdgeMask, *, seed: int = 0
) -> LatentGraphModel:
    """Return a model that starts at a constant fit: tested edges may depend on the variables, others are fixed."""
    probs, graph = model.graph.edge_probs.detach(), model.graph
    start = BernoulliGraph(probs, ~tested, symmetric=graph.symmetric, candidates=graph.candidates)
    sigma = residual_deviation(model, train, seed)
    shrinkage = shrinkage_of(len(train), train.num_nodes if model.loss.scope == "node" else 1, sigma)
    varying = ConditionalBernoulliGraph(
        start, copy.deepcopy(list(variables)), Context.of(train), varying=tested, shrinkage=shrinkage
    )
    return with_graph(model, varying)


def _trained(
    model: LatentGraphModel,
    train: Pairs,
    validation: Pairs,
    settings: FitSettings,
    seed: int,
    compile: bool,
    on_progress: Callable[[Progress], None] | None,
) -> LatentGraphModel:
    result = fit(
        model, train, validation, settings, seeds=(seed,), compile=compile, start_at_model=True, on_progress=on_progress
    )
    if result.interrupted:
        raise KeyboardInterrupt
    return result.model


def _with_varying(model: LatentGraphModel, varies: EdgeMask) -> LatentGraphModel:
    """Return the model with weights 0 for edges that do not vary."""
    copied = copy.deepcopy(model)
    graph = _graph_of(copied)
    graph.varying = varies.clone()
    graph.context_weights.data = torch.where(varies[..., None], graph.context_weights.data, 0.0)
    return copied


@torch.no_grad()
def _moved(model: LatentGraphModel, numbers: EdgeNumbers, edges: EdgeMask, validation: Pairs) -> LatentGraphModel:
    """Return the model after the Newton step, or unchanged if the validation loss rises."""
    graph = _graph_of(model)
    logits, weights = graph.raw.detach().clone(), graph.context_weights.detach().clone()
    before = torch.cat([logits[edges][:, None], weights[edges]], 1).double()
    step = (numbers.estimates - before).clamp(-LONGEST, LONGEST)
    after = (before + torch.where(numbers.free, step, 0.0)).to(logits)
    logits[edges], weights[edges] = after[:, 0], after[:, 1:]
    state = {"graph.edge_logits": logits, "graph.context_weights": weights, **numbers.predictor}
    if not all(bool(value.isfinite().all()) for value in state.values()):
        return model
    rise, _ = loss_difference(model, validation, state, {})
    if rise > 0:
        return model
    moved = copy.deepcopy(model)
    moved.load_state_dict(state, strict=False)
    return moved


def _covariances(model: LatentGraphModel, numbers: EdgeNumbers, edges: EdgeMask, varies: EdgeMask) -> Tensor:
    """Return the covariances of the edges that vary, in the order of ``varies.nonzero()``."""
    places = torch.full(edges.shape, -1, device=edges.device)
    places[edges] = torch.arange(int(edges.sum()), device=edges.device)
    if model.graph.symmetric:
        places = torch.maximum(places, places.mT)
    return numbers.covariances[places[varies]]


def _as_before(model: LatentGraphModel, constant: LatentGraphModel) -> LatentGraphModel:
    """Return the model with the fixed edges of the constant fit: others were fixed only during this training."""
    graph = _graph_of(model)
    probs = graph.edge_probs.detach()
    held = graph.fixed & ~constant.graph.fixed
    smallest = torch.finfo(probs.dtype).tiny
    with torch.no_grad():
        graph.raw[held] = torch.logit(probs[held].clamp(smallest, 1 - torch.finfo(probs.dtype).eps))
        graph.fixed.copy_(constant.graph.fixed)
        graph.fixed_probs.copy_(constant.graph.fixed_probs)
    return model


def _counted(model: LatentGraphModel, tested: EdgeMask) -> EdgeMask:
    return model.graph.upper_triangle(tested.to(model.graph.raw.dtype)) > 0


def _both_ends(model: LatentGraphModel, values: Tensor) -> Tensor:
    """Copy the values of i <= j to both entries of a pair if the graph is symmetric."""
    if not model.graph.symmetric:
        return values
    return torch.where(torch.ones_like(values, dtype=torch.bool).triu(), values, values.mT)


def _graph_of(model: LatentGraphModel) -> ConditionalBernoulliGraph:
    assert isinstance(model.graph, ConditionalBernoulliGraph)
    return model.graph


def _require_fitting(model: LatentGraphModel) -> None:
    estimator, loss = model.estimator, type(model.loss).__name__
    require(
        model.loss.compares,
        f"depends_on requires a loss that compares graphs, such as EnergyScore or MMD, got {loss}; set another loss",
    )
    require(
        isinstance(estimator, ScoreFunction),
        f"depends_on requires the estimator ScoreFunction, got {type(estimator).__name__}; set it",
    )
    require(
        isinstance(model.graph, BernoulliGraph) and model.graph.has_edge_probs,
        f"depends_on requires a fit with constant edges, got {type(model.graph).__name__}; use BernoulliGraph",
    )

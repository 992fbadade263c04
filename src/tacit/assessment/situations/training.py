r"""Edges that depend on the situation by training, with any predictor: without tests, standard errors and intervals.

All ``varying`` edges get weights, $\mathrm{logit}\,\theta_{ij}(c) = a_{ij} + b_{ij} \cdot \phi(c)$, and are trained
from a fit in which every edge is constant, with the predictor if it is learned. The other edges are fixed during the
training. The weights are shrunk towards 0; a prior for the edges is not used, because these edges exist.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from tacit.assessment.situations.varying import VaryingEdges
from tacit.assessment.uncertainty import residual_deviation
from tacit.data import Pairs
from tacit.errors import require
from tacit.estimators import ScoreFunction
from tacit.graph import BernoulliGraph, ConditionalBernoulliGraph, Context, ContextVariable, shrinkage_of
from tacit.shapes import EdgeMask
from tacit.training import FitSettings, LatentGraphModel, Progress, fit, with_graph


def vary_by_training(
    model: LatentGraphModel,
    variables: Sequence[ContextVariable],
    train: Pairs,
    validation: Pairs,
    settings: FitSettings,
    varying: EdgeMask,
    *,
    seed: int = 0,
    compile: bool = True,
    on_progress: Callable[[Progress], None] | None = None,
) -> VaryingEdges:
    """Return a model in which the given edges depend on the variables; the model, a constant fit, is not changed.

    ``settings``  settings of the fit
    ``varying``   edges that exist and act at times
    """
    graph, loss, estimator = model.graph, model.loss, model.estimator
    require(
        loss.compares,
        "depends_on requires a loss that compares graphs, such as EnergyScore or MMD, got "
        f"{type(loss).__name__}; set another loss",
    )
    require(
        isinstance(estimator, ScoreFunction),
        f"depends_on requires the estimator ScoreFunction, got {type(estimator).__name__}; set it",
    )
    require(
        isinstance(graph, BernoulliGraph) and graph.has_edge_probs,
        f"depends_on requires a fit with constant edges, got {type(graph).__name__}; use BernoulliGraph",
    )
    probs = graph.edge_probs.detach()
    varying = varying.to(probs.device) & graph.learned
    start = BernoulliGraph(probs, ~varying, symmetric=graph.symmetric, candidates=graph.candidates)
    units = train.num_nodes if loss.scope == "node" else 1
    conditional = ConditionalBernoulliGraph(
        start,
        copy.deepcopy(list(variables)),
        Context.of(train),
        varying=varying,
        shrinkage=shrinkage_of(len(train), units, residual_deviation(model, train, seed)),
    )
    result = fit(
        with_graph(model, conditional),
        train,
        validation,
        replace(settings, halve_after=(), patience=None),
        seeds=(seed,),
        compile=compile,
        start_at_model=True,
        on_progress=on_progress,
    )
    if result.interrupted:
        raise KeyboardInterrupt
    final = result.model.graph
    assert isinstance(final, ConditionalBernoulliGraph)
    with torch.no_grad():  # edges that were fixed only during this training
        held, kind = final.fixed & ~graph.fixed, torch.finfo(probs.dtype)
        final.raw[held] = torch.logit(final.edge_probs[held].clamp(kind.tiny, 1 - kind.eps))
        final.fixed.copy_(graph.fixed)
        final.fixed_probs.copy_(graph.fixed_probs)
    numbers = 1 + final.num_features
    unknown = torch.full((int(varying.sum()), numbers, numbers), torch.nan, dtype=torch.float64)
    p_values = torch.full(varying.shape, torch.nan, dtype=torch.float64)
    return VaryingEdges(result.model, torch.zeros_like(varying), varying, p_values, unknown.to(probs.device))

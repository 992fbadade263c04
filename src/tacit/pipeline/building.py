"""Build the objects of a resolved config: the graph with its rules, the predictor, the noise and the model."""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor, nn

from tacit.assessment.evidence import WithinStep
from tacit.config import FitConfig, ModelConfig
from tacit.data import Pairs, distinct_inputs, ridge_regression
from tacit.edges import OPEN
from tacit.errors import InputError, require
from tacit.graph import BernoulliGraph, CandidateEdges, EdgePrior, EdgeRules, LagRanges, density_prior
from tacit.local import (
    edge_start,
    filter_start,
    is_affordable,
    local_ridge,
    regression_steps,
    start_ridge,
)
from tacit.losses import EnergyScore
from tacit.observation import ObservationModel, SimultaneousNoise
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.observation_kinds import build_observation, kinds_of
from tacit.pipeline.parts import OwnParts
from tacit.pipeline.preparation import Preparation
from tacit.predictors import GraphFilter, SimultaneousFilter
from tacit.randomness import generator_for
from tacit.training import LatentGraphModel

START = (0.05, 0.15)  # range of the initial edge probabilities: a sparse graph in which every edge is possible
KEPT_START = (0.6, 0.9)  # of a filter: edges that exist act often
START_SPREAD = 0.3  # of logits, between replicas of a warm start
START_JITTER = 0.1  # of weights, between replicas of a warm start


def build_model(
    config: FitConfig,
    dataset: Dataset,
    rules: EdgeRules,
    own: OwnParts,
    seed: int,
    kept: Bool[np.ndarray, " edge"] | None = None,
    within: WithinStep | None = None,
) -> LatentGraphModel:
    """Return the untrained model; with ``kept``, over the index of the rules, only these edges are learned."""
    low, high = KEPT_START if kept is not None and own.kind(config.predictor).warm_start else START
    start = rules.build(
        generator=generator_for(seed, "graph"),
        low=low,
        high=high,
        link=config.model.build_link(),
        layout=config.graph.layout,
        kept=kept,
    )
    predictor = _build_predictor(config, dataset.preparation, start.candidates, own)
    if rules.lag_ranges is not None and isinstance(predictor, GraphFilter):
        predictor.restrict_lags(_allowed_lags(rules.lag_ranges, start, dataset.preparation))
    if within is not None and isinstance(predictor, SimultaneousFilter):
        predictor.allow_within(within.acyclic & (start.edge_probs > 0), within.directions == OPEN)
    train = dataset.split.train
    if config.predictor.warm_start and not config.graph.simultaneous:  # otherwise regressions give the fit
        predictor = _warm_start(predictor, train, start, found=kept is not None)
    prior = build_prior(config, dataset, rules, own) if kept is None else None
    return _assemble(config, dataset.preparation, start, predictor, own, train, prior)


def _allowed_lags(ranges: LagRanges, graph: BernoulliGraph, preparation: Preparation) -> Bool[Tensor, "row slot lag"]:
    """Return which inputs of the window each edge of the graph may use, the oldest first."""
    sources, targets = graph.layout.sources.flatten(), graph.layout.targets.flatten()
    allowed = ranges.allowed(sources, targets, window=preparation.sizes.window, horizon=preparation.horizon)
    return allowed.view(*graph.edge_shape, -1)


def empty_graph(config: FitConfig, preparation: Preparation, candidates: CandidateEdges | None) -> BernoulliGraph:
    """Return a graph of the right shape, into which stored tensors are loaded."""
    link, symmetric = config.model.build_link(), config.graph.symmetric
    return BernoulliGraph.empty(len(preparation.nodes), link=link, symmetric=symmetric, candidates=candidates)


def empty_model(
    config: FitConfig,
    preparation: Preparation,
    candidates: CandidateEdges | None,
    own: OwnParts,
    train: Pairs | None = None,
    prior: EdgePrior | None = None,
) -> LatentGraphModel:
    """Return a model of the right shapes, into which stored tensors are loaded; with pairs it can be trained."""
    predictor = _build_predictor(config, preparation, candidates, own)
    return _assemble(config, preparation, empty_graph(config, preparation, candidates), predictor, own, train, prior)


def _assemble(
    config: FitConfig,
    preparation: Preparation,
    start: BernoulliGraph,
    predictor: nn.Module,
    own: OwnParts,
    train: Pairs | None,
    prior: EdgePrior | None,
) -> LatentGraphModel:
    """Return the model of these parts; without training pairs its loss is for scores, not for training."""
    sizes, model, loss = preparation.sizes, config.model, own.loss
    observation: ObservationModel
    if config.graph.simultaneous:
        observation = SimultaneousNoise(sizes.num_nodes, sizes.out_channels)
    else:
        observation = build_observation(config, preparation)
    if train is None:  # for predictions only: the loss of the fit may have been an object that is not stored
        loss, num_graphs = EnergyScore(baseline="none"), max(2, model.num_graphs)
        model = ModelConfig(graph=model.graph, link=model.link, num_graphs=num_graphs)
    targets = None if train is None else train.targets
    return model.build(start, predictor, targets, loss=loss, observation=observation, prior=prior)


def _build_predictor(
    config: FitConfig, preparation: Preparation, candidates: CandidateEdges | None, own: OwnParts
) -> nn.Module:
    sizes, noise = (
        preparation.sizes,
        kinds_of(config, preparation.nodes)[0],
    )  # in a table by node, all take the same number of outputs
    kind = own.kind(config.predictor)
    config.predictor.require_used(kind)
    if config.graph.simultaneous:
        residual = bool(config.predictor.residual)
        return SimultaneousFilter(
            sizes.num_nodes, sizes.window, sizes.num_features, residual=residual, known=sizes.known, levels=sizes.levels
        )
    return kind.build(sizes, config.predictor, candidates, noise)


def _warm_start(predictor: nn.Module, train: Pairs, graph: BernoulliGraph, *, found: bool) -> GraphFilter:
    """Start the graph from a regression, unless its edges are ``found``; return the filter with these weights."""
    if not isinstance(predictor, GraphFilter):
        raise InputError(f"warm_start in [predictor] requires a filter, got {type(predictor).__name__}; leave it out")
    if found and regression_steps(predictor, graph, train):  # :func:`start_at_regression` sets the weights
        predictor.jitter = START_JITTER
        return predictor
    possible = graph.edge_probs.detach() > 0
    ridge = start_ridge(train, predictor, graph.layout, candidates=graph.layout.among(possible) if found else None)
    if not found:
        graph.start_around(edge_start(ridge, graph.layout).float(), START_SPREAD)
    return filter_start(ridge, predictor, possible, jitter=START_JITTER)


def build_prior(config: FitConfig, dataset: Dataset, rules: EdgeRules, own: OwnParts) -> EdgePrior | None:
    """Return the edge prior; unless the config sets its weight, this depends on the noise and the amount of data."""
    graph, train, sizes = config.graph, dataset.split.train, dataset.preparation.sizes
    if graph.density is None and not rules.priors:
        require(
            graph.prior_weight is None, "prior_weight in [graph] requires priors; set density, or name an edge file"
        )
        return None
    sigma = _table_sigma(dataset, rules.candidate_edges) if graph.layout == "table" else _matrix_sigma(dataset)
    weights = own.kind(config.predictor).edge_weights(sizes)  # number of weights per edge
    density = 0.5 if graph.density is None else graph.density  # without a density only the weight is used
    prior = density_prior(density, sigma, len(train), sizes.num_nodes, weights)
    weight = prior.weight if graph.prior_weight is None else graph.prior_weight
    default = None if graph.density is None else prior.probs.item()
    return rules.prior(weight, default, layout=graph.layout)


def _matrix_sigma(dataset: Dataset) -> float:
    """Return the residual deviation of a regression on all nodes."""
    train, known = dataset.split.train, dataset.preparation.sizes.known
    once = distinct_inputs(train, known)
    train, later = (replace(part, inputs=part.inputs * once) for part in (train, dataset.split.validation))
    return float(ridge_regression(train, later).sigmas.mean())


def _table_sigma(dataset: Dataset, candidates: CandidateEdges) -> float:
    """Return the residual deviation of regressions on the candidates, or on the node itself if that takes long."""
    train, sizes = dataset.split.train, dataset.preparation.sizes
    sent = None if not sizes.known else torch.arange(sizes.in_channels - sizes.known)
    own = None if not sizes.known else torch.arange(sizes.in_channels)
    if not is_affordable(candidates, sizes.in_channels - sizes.known, train, sizes.in_channels):
        nowhere = torch.zeros(0, dtype=torch.long)
        candidates = CandidateEdges.from_edges(nowhere, nowhere, candidates.num_nodes)
    found = local_ridge(train, dataset.split.validation, candidates, own=own, sent=sent)
    return float(found.sigmas.mean())

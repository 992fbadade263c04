"""From settled choices to objects: the predictor, the graph with its rules, and the model that is trained."""

import torch
from torch import nn

from tacit.config import FitConfig, PredictorConfig
from tacit.data import Pairs
from tacit.data.ridge import ridge_regression
from tacit.errors import InputError, require
from tacit.graph import BernoulliGraph, EdgePrior, Slots, density_prior
from tacit.losses import integrating_noise
from tacit.own_data.problem import Problem
from tacit.predictors import (
    ConvolutionStack,
    GraphFilter,
    PyGPredictor,
    RecurrentGNN,
    WithInputNoise,
    WithNoise,
    noisy_channels,
)
from tacit.predictors.recurrent import HeadNoise
from tacit.randomness import generator_for
from tacit.training import (
    LatentGraphModel,
    filter_start,
    is_affordable,
    local_ridge,
    ridge_start,
    table_edge_start,
    table_filter_start,
    table_ridge,
)

START = (0.05, 0.15)  # edge probabilities begin here: few, none impossible
START_SPREAD = 0.3  # of logits, between replicas of a warm start
START_JITTER = 0.1  # of weights, between replicas of a warm start
PYG_MODELS = {"gcn": "GCN", "gin": "GIN", "gat": "GAT", "sage": "GraphSAGE"}


def build_model(config: FitConfig, problem: Problem, seed: int) -> LatentGraphModel:
    """Return the model at its start."""
    low, high = START
    graph = problem.rules.build(
        generator=generator_for(seed, "graph"),
        low=low,
        high=high,
        link=config.model.build_link(),
        over_table=config.graph.layout == "table",
    )
    warm = (problem.split.train, graph) if config.predictor.warm_start else None
    sizes = problem.preparation.sizes
    predictor = build_predictor(config.predictor, len(problem.nodes), sizes, slots=graph.slots, warm=warm)
    return assemble(config, graph, predictor, problem.split.train, _prior(config, problem))


def assemble(
    config: FitConfig,
    graph: BernoulliGraph,
    predictor: nn.Module,
    train: Pairs | None = None,
    prior: EdgePrior | None = None,
) -> LatentGraphModel:
    """Return the model of these parts, with the loss and the estimator of the config."""
    model = config.model
    require(
        model.prior is None and model.loss != "elbo",
        "prior and loss 'elbo' in [model] are for tacit demo; say what is believed of edges by density in [graph]",
    )
    channels = noisy_channels(predictor)
    loss = model.build_loss(None if train is None else train.targets)
    return LatentGraphModel(
        graph,
        predictor,
        loss if channels is None else integrating_noise(loss, channels),
        estimator=model.build_estimator(),
        num_graphs=model.num_graphs,
        share_graphs=model.share_graphs,
        credit=model.credit,
        prior=prior,
    )


def build_predictor(
    config: PredictorConfig,
    num_nodes: int,
    sizes: tuple[int, int, int],
    *,
    slots: Slots | None = None,
    warm: tuple[Pairs, BernoulliGraph] | None = None,
) -> nn.Module:
    """Return the predictor, with its noise; over a table of candidates it takes the ``slots``.

    ``warm`` are the pairs whose regression a filter begins with, and the graph, which then begins with it too.
    """
    config.require_used()
    window, features, out = sizes
    in_channels, residual = window * features, bool(config.residual)
    inner: nn.Module
    if config.kind == "recurrent":
        head: HeadNoise = "input" if config.noise == "input" else "none"
        inner = RecurrentGNN(window, features, out, config.hidden, config.layers, residual, noise=head)
        if config.noise == "input":
            return inner
    elif config.kind == "filter":
        sent = features if window == 1 else None
        inner = GraphFilter(
            num_nodes,
            window,
            features,
            out,
            activation=config.activation,
            residual=residual,
            sent_features=sent,
            slots=slots,
        )
        if warm is not None:
            inner = _warm_filter(inner, *warm)
    elif config.kind == "convolution":
        widths = [in_channels, *[config.hidden] * config.layers, out]
        inner = ConvolutionStack.random(widths, output="linear", generator=generator_for(0, "predictor"))
    else:
        inner = PyGPredictor(
            _pyg_model(config, in_channels, out),
            window=window,
            num_features=features,
            out_channels=out,
            residual=residual,
        )
    if config.noise == "node":
        return WithNoise(inner, num_nodes, out)
    return WithInputNoise(inner, num_nodes, in_channels, out) if config.noise == "input" else inner


def sent_lags(sizes: tuple[int, int, int]) -> int:
    """Return how many numbers a node of a filter sends to another."""
    window, features, out = sizes
    return window * (features if window == 1 else min(out, features))


def _warm_filter(predictor: GraphFilter, train: Pairs, graph: BernoulliGraph) -> GraphFilter:
    """Start the graph where a regression points, and return the filter at its weights."""
    if graph.slots is None:
        graph.start_around(ridge_start(train).float(), START_SPREAD)
        probs = graph.edge_probs.detach()
        return filter_start(train, predictor, probs, in_expectation=False, jitter=START_JITTER)
    found = table_ridge(train, predictor, graph.slots)
    graph.start_around(table_edge_start(found, graph.slots).float(), START_SPREAD)
    return table_filter_start(found, predictor, jitter=START_JITTER)


def _pyg_model(config: PredictorConfig, in_channels: int, out: int) -> nn.Module:
    try:
        from torch_geometric.nn import models
    except ImportError:
        raise InputError(
            f"predictor '{config.kind}' needs torch-geometric, which is not installed; pip install 'tacit[pyg]'"
        ) from None
    name = PYG_MODELS[config.kind]
    with torch.random.fork_rng(devices=[]):  # it draws its first weights at once; a fit replaces them
        module: nn.Module = getattr(models, name)(in_channels, config.hidden, config.layers + 1, out)
    return module


def _prior(config: FitConfig, problem: Problem) -> EdgePrior | None:
    """Return the soft priors, as strong as the data is noisy and scarce unless the config says how strong."""
    graph, train = config.graph, problem.split.train
    if graph.density is None and not problem.rules.priors:
        require(graph.prior_weight is None, "prior_weight in [graph] needs priors; set density, or name an edge file")
        return None
    table = graph.layout == "table"
    sigma = _table_sigma(problem) if table else _matrix_sigma(problem)
    window, features, out = problem.preparation.sizes
    weights = 0  # that come with an edge: those of a filter are its own, networks share theirs
    if config.predictor.kind == "filter":
        weights = window * (features if window == 1 else out)
    density = 0.5 if graph.density is None else graph.density  # then only the weight is used
    prior = density_prior(density, sigma, len(train), len(problem.nodes), weights)
    weight = prior.weight if graph.prior_weight is None else graph.prior_weight
    default = None if graph.density is None else prior.probs.item()
    return problem.rules.prior(weight, default, over_table=table)


def _matrix_sigma(problem: Problem) -> float:
    """Return the deviation of what a regression on all nodes leaves."""
    return float(ridge_regression(problem.split.train, problem.split.validation).sigmas.mean())


def _table_sigma(problem: Problem) -> float:
    """Return the deviation of what regressions on the candidates leave; on the node itself where that takes long."""
    train, slots = problem.split.train, problem.rules.slots
    if not is_affordable(slots, train.inputs.shape[2]):
        nowhere = torch.zeros(0, dtype=torch.long)
        slots = Slots.from_edges(nowhere, nowhere, slots.num_nodes)
    return float(local_ridge(train, problem.split.validation, slots).sigmas.mean())

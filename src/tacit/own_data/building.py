"""From settled choices to objects: the predictor, the graph with its rules, and the model that is trained."""

import torch
from torch import nn

from tacit.config import FitConfig, PredictorConfig
from tacit.data import Pairs
from tacit.data.ridge import ridge_regression
from tacit.errors import InputError, require
from tacit.graph import BernoulliGraph, EdgePrior, density_prior
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
from tacit.training import LatentGraphModel
from tacit.training.warm_start import filter_start, ridge_start

START = (0.05, 0.15)  # edge probabilities begin here: few, none impossible
START_SPREAD = 0.3  # of logits, between replicas of a warm start
PYG_MODELS = {"gcn": "GCN", "gin": "GIN", "gat": "GAT", "sage": "GraphSAGE"}


def build_model(config: FitConfig, problem: Problem, seed: int) -> LatentGraphModel:
    """Return the model at its start."""
    predictor = build_predictor(config.predictor, len(problem.nodes), problem.preparation.sizes, warm=None)
    low, high = START
    link = config.model.build_link()
    graph = problem.rules.build(generator=generator_for(seed, "graph"), low=low, high=high, link=link)
    if config.predictor.warm_start:
        graph.start_around(ridge_start(problem.split.train).float(), START_SPREAD)
        sizes = problem.preparation.sizes
        predictor = build_predictor(config.predictor, len(problem.nodes), sizes, warm=(problem.split.train, graph))
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
    warm: tuple[Pairs, BernoulliGraph] | None = None,
) -> nn.Module:
    """Return the predictor, with its noise; ``warm`` are the pairs and the graph that a filter begins with."""
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
            num_nodes, window, features, out, activation=config.activation, residual=residual, sent_features=sent
        )
        if warm is not None:
            inner = filter_start(warm[0], inner, warm[1].edge_probs.detach(), in_expectation=False, jitter=0.1)
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
    sigma = float(ridge_regression(train, problem.split.validation).sigmas.mean())
    window, features, out = problem.preparation.sizes
    weights = 0  # that come with an edge: those of a filter are its own, networks share theirs
    if config.predictor.kind == "filter":
        weights = window * (features if window == 1 else out)
    density = 0.5 if graph.density is None else graph.density  # then only the weight is used
    prior = density_prior(density, sigma, len(train), len(problem.nodes), weights)
    weight = prior.weight if graph.prior_weight is None else graph.prior_weight
    return problem.rules.prior(weight, default=None if graph.density is None else prior.probs.item())

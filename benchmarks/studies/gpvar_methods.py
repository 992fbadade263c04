"""The methods that the GPVAR study compares, each from the parts of one series to what it found."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from benchmarks.polynomial_filter import PolynomialFilter
from benchmarks.studies.gpvar_system import GPVARSystem
from benchmarks.studies.ranking import edge_ranking

from tacit.assessment.evaluation import point_prediction
from tacit.data import Pairs, Split
from tacit.data.regression import RegressionFit
from tacit.experiments.replication import rounded, shortened
from tacit.experiments.study import Listener, Options, Values
from tacit.graph import BernoulliGraph
from tacit.local import edge_start, start_ridge
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise
from tacit.predictors import GraphFilter
from tacit.randomness import generator_for
from tacit.training import FitResult, FitSettings, LatentGraphModel, fit

Start = Literal["few edges", "ridge", "no graph"]
Method = Callable[[Split, int, Options, Listener], Values]  # from the parts of a series and the number of the run

WINDOW = 2  # the lags that the system reads, for every method
FEW_EDGES = (0.05, 0.15)  # where theta starts, unless a regression says more
START_SPREAD = 0.3  # of the logits around a ridge start, so that replicas differ
REPLICAS, QUICK_REPLICAS = 3, 2  # of psi learned, for each series; the lowest validation loss is kept
NUM_GRAPHS = 8
SCORE_GRAPHS = 101  # for point predictions; odd, so that the median is one of them
CHUNK = 1_000  # pairs that are scored at once, under graphs of their own


@dataclass(frozen=True)
class Steps:
    """How many steps of one series train, validate and test, in the order of time.

    >>> parts = Steps(120, 40, 10).cut(GPVARSystem(), seed=0)
    >>> [len(part) for part in (parts.train, parts.validation, parts.test)]
    [118, 40, 10]
    """

    train: int
    validation: int
    test: int

    def cut(self, system: GPVARSystem, seed: int) -> Split:
        """Return the pairs of a fresh series; a part may look back into the one before, never ahead."""
        pairs = system.pairs(self.train + self.validation + self.test, seed, window=WINDOW)
        first = self.train - WINDOW  # training reads and predicts its own steps alone
        last = first + self.validation
        return Split(pairs[:first], pairs[first:last], pairs[last:])


def trained(start: Start, settings: FitSettings, *, known: bool = False) -> Method:
    """Return the training of a graph, psi known or learned, sigma learned; or of psi alone with no graph."""

    def method(parts: Split, number: int, options: Options, listener: Listener) -> Values:
        system = GPVARSystem()
        predictor = system.true_predictor() if known else PolynomialFilter(torch.zeros_like(system.coefficients))
        noise = GaussianNoise(system.num_nodes)
        model = LatentGraphModel(
            _graph(start, parts), predictor, EnergyScore(scope="node"), observation=noise, num_graphs=NUM_GRAPHS
        )
        replicas = 1 if known or start == "no graph" else QUICK_REPLICAS if options.quick else REPLICAS
        on_device = parts.to(options.torch_device)
        result = fit(
            model,
            on_device.train,
            on_device.validation,
            shortened(settings, options),
            seeds=range(number * replicas, (number + 1) * replicas),  # each series has starts of its own
            compile=options.torch_device.type == "cpu" and not options.quick,
            on_progress=listener.step,
        )
        if result.interrupted:  # half a training is no record: the next start does it again
            raise KeyboardInterrupt
        return _describe(result, system, on_device)

    return method


def regression(solve: Callable[[Pairs, Pairs], RegressionFit]) -> Method:
    """Return a vector autoregression: weights of edges, and no probability."""

    def method(parts: Split, number: int, options: Options, listener: Listener) -> Values:
        del number, options, listener
        found = solve(parts.train, parts.validation)
        return {
            **edge_ranking(found.edge_scores, GPVARSystem().true_edge_probs, threshold=None),
            "point_mae": float((found.predict(parts.test.inputs) - parts.test.targets).abs().mean()),
            "penalty": found.penalty,
        }

    return method


def _graph(start: Start, parts: Split) -> BernoulliGraph:
    """Return where the graph begins; a node's own path is part of the filter, so the diagonal is held at 0."""
    nodes = parts.train.num_nodes
    if start == "no graph":
        return BernoulliGraph(torch.zeros(nodes, nodes), fixed=torch.ones(nodes, nodes, dtype=torch.bool))
    middle = torch.full((nodes, nodes), sum(FEW_EDGES) / 2).fill_diagonal_(0)
    graph = BernoulliGraph(middle, fixed=torch.eye(nodes, dtype=torch.bool), initial_range=FEW_EDGES)
    if start == "ridge":
        graph.start_around(edge_start(start_ridge(parts.train, GraphFilter(nodes, WINDOW, 1))), spread=START_SPREAD)
    return graph


def _describe(result: FitResult, system: GPVARSystem, parts: Split) -> Values:
    """Return how the run that validation keeps ended, and F1 and validation loss of every start."""
    model, truth = result.model, system.true_edge_probs
    stack = model.graph.probs_from(result.parameters[f"graph.{model.graph.link.parameter}"])
    return {
        **edge_ranking(model.graph.edge_probs, truth),
        **_point_errors(model, parts.test),
        "start_f1": [edge_ranking(probs, truth)["f1"] for probs in stack],
        "start_validation_loss": [replica.validation_loss for replica in result.replicas],
        "coefficients": rounded(dict(model.predictor.named_parameters())["coefficients"]),
        "edge_probs": rounded(model.graph.edge_probs),
        "warnings": result.warnings,
        "steps": result.steps,
        "train_seconds": result.train_seconds,
    }


def _point_errors(model: LatentGraphModel, pairs: Pairs) -> Values:
    """Return the MAE of median and mean over graphs (the noise has both at 0, so it is not drawn), and mean sigma."""
    generator = generator_for(0, "score", pairs.inputs.device)
    sums: dict[str, float] = {}
    for start in range(0, len(pairs), CHUNK):
        chunk = pairs[start : start + CHUNK]
        described = model.outputs(chunk.inputs, SCORE_GRAPHS, generator=generator)
        means, sigmas = model.observation.mean(described), model.observation.variance(described).sqrt()
        for name, values in (
            ("point_mae", (point_prediction(means, "median") - chunk.targets).abs()),
            ("mean_mae", (point_prediction(means, "mean") - chunk.targets).abs()),
            ("mean_sigma", sigmas),
        ):
            sums[name] = sums.get(name, 0.0) + float(values.mean()) * len(chunk)
    return {name: total / len(pairs) for name, total in sums.items()}

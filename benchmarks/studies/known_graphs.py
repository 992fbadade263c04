"""One system whose graph is known: the method beside ridge and lasso, all from the same pairs, none sees the answer.

There are few pairs, so all of them train. A penalty of a regression and the number of lags are chosen by leaving out
one block of pairs after another; the strength of the prior follows from an expected density, see
:mod:`tacit.graph.priors`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from benchmarks.studies.known_data import KnownGraph
from benchmarks.studies.lasso import LASSO_PENALTIES, lasso_path
from benchmarks.studies.ranking import edge_ranking
from torch import Tensor

from tacit.data import Pairs, Scaling, Series
from tacit.data.regression import RIDGE_PENALTIES, PathSolver, RegressionFit, regress, ridge_path
from tacit.data.windows import Windows
from tacit.experiments.study import Listener, Options, Values
from tacit.graph import EdgePrior, EdgeRules, density_prior
from tacit.local import filter_start, start_ridge
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise
from tacit.predictors import GraphFilter
from tacit.randomness import generator_for
from tacit.training import CosineDecay, FitResult, FitSettings, LatentGraphModel, fit

# Chosen on simulated networks (genes with signed regulators, perturbed and measured with noise), not on the data of
# these studies: from an undecided graph and the weights of a ridge regression, hundreds of edges sort themselves out.
START, START_SPREAD, START_JITTER = 0.5, 0.3, 0.1
STEPS, MANY_STEPS, QUICK_STEPS = 1_000, 2_000, 30
MANY_NODES = 50  # from here one set of graphs serves a batch, or a step would draw millions of edges
BATCH = 100
RATE = 0.05
SCALED_SHARE = 0.8  # of the pairs, the first ones: their rows give the units
BLOCKS = 5  # left out one after another to choose a penalty

PriorRule = Callable[[float, Pairs], EdgePrior]  # from the deviation of what a ridge regression leaves, and the pairs


@dataclass(frozen=True)
class Problem:
    """All pairs of one system, and the graph that is to be found."""

    pairs: Pairs
    truth: Tensor

    @classmethod
    def of(cls, known: KnownGraph, window: int) -> "Problem":
        """Return the pairs of all experiments, in deviations of the values; no pair reaches from one into another."""
        series, windows = Series.joined(known.experiments), Windows(window)
        rows = windows.target_rows(series, series.channels)
        scaled = np.arange(len(series)) <= rows[round(SCALED_SHARE * len(rows)) - 1]
        pairs = windows.pairs(series, Scaling.measured(series, scaled, series.channels), rows - windows.horizon)
        return cls(Pairs(pairs.inputs, pairs.targets), torch.from_numpy(known.adjacency).float())

    def newest(self, window: int) -> "Problem":
        """Return the same targets with fewer lags."""
        inputs = self.pairs.inputs[..., self.pairs.inputs.shape[-1] - window :].contiguous()
        return Problem(Pairs(inputs, self.pairs.targets), self.truth)


def sparse(neighbours: float, *, weights_cost: bool = True) -> PriorRule:
    """Return the rule for nodes that are expected to read so many others, with or without the cost of weights."""

    def rule(sigma: float, pairs: Pairs) -> EdgePrior:
        window = pairs.inputs.shape[-1]
        density = neighbours / (pairs.num_nodes - 1)
        return density_prior(density, sigma, len(pairs), pairs.num_nodes, window if weights_cost else 0)

    return rule


def blockwise_errors(pairs: Pairs, solve: PathSolver, penalties: Sequence[float]) -> Tensor:
    """Return the sum of squares of each penalty on blocks of pairs that were left out, one block after another.

    >>> inputs = torch.randn(40, 2, 1, generator=torch.Generator().manual_seed(0))
    >>> errors = blockwise_errors(Pairs(inputs, inputs.flip(1)), ridge_path, [1e-6, 1.0])
    >>> bool(errors[0] < 1e-6 < errors[1])
    True
    """
    errors = torch.zeros(len(penalties), dtype=torch.float64)
    for block in torch.tensor_split(torch.arange(len(pairs)), BLOCKS):
        kept = torch.ones(len(pairs), dtype=torch.bool)
        kept[block] = False
        for number, penalty in enumerate(penalties):
            found = regress(pairs[kept], pairs[~kept], solve, [penalty])
            left = found.predict(pairs.inputs[~kept]) - pairs.targets[~kept]
            errors[number] += left.double().square().sum()
    return errors


def regression(pairs: Pairs, solve: PathSolver, penalties: Sequence[float]) -> RegressionFit:
    """Return a regression on all pairs, its penalty the best on blocks that were left out."""
    return regress(pairs, pairs, solve, [penalties[int(blockwise_errors(pairs, solve, penalties).argmin())]])


def compare(problem: Problem, prior: PriorRule, options: Options, listener: Listener, *, most_seeds: int) -> Values:
    """Return how ridge, lasso and the method rank the edges; of the method every start, and the mean of them."""
    ridge = regression(problem.pairs, ridge_path, RIDGE_PENALTIES)
    lasso = regression(problem.pairs, lasso_path, LASSO_PENALTIES)
    return {
        "num_pairs": len(problem.pairs),
        "num_edges": int(problem.truth.sum() - problem.truth.diagonal().sum()),
        "window": problem.pairs.inputs.shape[-1],
        "ridge": _ranking(ridge, problem),
        "lasso": _ranking(lasso, problem),
        **learned(problem, prior(float(ridge.sigmas.mean()), problem.pairs), options, listener, most_seeds=most_seeds),
    }


def learned(problem: Problem, prior: EdgePrior, options: Options, listener: Listener, *, most_seeds: int) -> Values:
    """Train from several starts, and return the ranking of each and of their mean edge probabilities."""
    result = _train(problem.pairs.to(options.torch_device), prior, options, listener, min(options.seeds, most_seeds))
    graph = result.model.graph
    stack = graph.probs_from(result.parameters[f"graph.{graph.link.parameter}"]).detach().cpu()
    mean, edge = stack.mean(0), problem.truth > 0
    away = ~torch.eye(len(mean), dtype=torch.bool)
    return {
        "starts": [edge_ranking(probs, problem.truth) for probs in stack],
        "mean_of_starts": edge_ranking(mean, problem.truth),
        "expected_edges": float(mean.sum()),
        "probs_on_edges": _sorted(mean[edge & away]),
        "probs_elsewhere": _sorted(mean[~edge & away]),
        "prior_prob": prior.probs.item(),
        "prior_weight": prior.weight,
        "warnings": result.warnings,
        "steps": result.steps,
        "train_seconds": result.train_seconds,
    }


def _train(pairs: Pairs, prior: EdgePrior, options: Options, listener: Listener, num_seeds: int) -> FitResult:
    nodes, window = pairs.num_nodes, pairs.inputs.shape[-1]
    many = nodes >= MANY_NODES
    graph = EdgeRules(tuple(str(node) for node in range(nodes))).build(generator=generator_for(0, "graph"))
    start = torch.full((nodes, nodes), START).fill_diagonal_(0)
    graph.start_around(start, START_SPREAD)
    untrained = GraphFilter(nodes, window, num_features=1)
    predictor = filter_start(start_ridge(pairs.to("cpu"), untrained), untrained, start > 0, jitter=START_JITTER)
    model = LatentGraphModel(
        graph,
        predictor,
        EnergyScore(scope="node"),
        observation=GaussianNoise(nodes),
        num_graphs=16 if many else 8,
        share_graphs=many,
        prior=prior,
    )
    batch = min(BATCH, len(pairs))
    steps = QUICK_STEPS if options.quick else MANY_STEPS if many else STEPS
    result = fit(
        model,
        pairs,
        pairs,  # nothing is chosen by it: the starts are averaged
        FitSettings(epochs=-(-steps // (len(pairs) // batch)), batch_size=batch, schedule=CosineDecay(RATE)),
        seeds=range(num_seeds),
        compile=options.torch_device.type == "cpu" and not options.quick,
        on_progress=listener.step,
    )
    if result.interrupted:  # half a training is no record: the next start does it again
        raise KeyboardInterrupt
    return result


def _ranking(found: RegressionFit, problem: Problem) -> Values:
    return {**edge_ranking(found.edge_scores, problem.truth, threshold=None), "penalty": found.penalty}


def _sorted(probs: Tensor) -> list[float]:
    """Return probabilities from the highest down: which edge has which stays with those who have the data."""
    return [round(value, 4) for value in probs.double().sort(descending=True).values.tolist()]

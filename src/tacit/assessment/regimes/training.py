r"""Regimes of a graph by training, for models whose likelihood cannot be summed over the states of the gates.

The result has no standard errors and no intervals.

Each number of regimes is trained from several starts around the constant fit, with the predictor if it is learned; the
start with the lowest validation loss is kept. Regimes of the rows (``blocks="rows"``) are trained with the loss of the
model. A loss of node scope does not depend on how regimes of different rows are combined, so regimes of the whole graph
(``blocks="all"``) are trained with MMD at joint scope, with a kernel of a tenth of the residual standard deviation.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import torch

from tacit.assessment.regimes.fitted import RegimeFit, choose_number, constant_regime, without_errors
from tacit.assessment.uncertainty import residual_deviation
from tacit.data import Pairs
from tacit.errors import require, require_int
from tacit.graph import BernoulliGraph, Blocks, MixtureGraph
from tacit.local import Dependence, Difference, paired_difference
from tacit.losses import MMD, RationalQuadratic
from tacit.randomness import generator_for, replica_seeds
from tacit.training import FitSettings, LatentGraphModel, Progress, fit, pair_losses, with_graph

STARTS = 4
# Graphs per pair. Measured on two regimes of 12 nodes (28,000 pairs, 10 epochs): at joint scope the error of the
# probabilities is .045 with 16 graphs and .031 with 48, in little more time.
FEWEST_GRAPHS, JOINT_GRAPHS = 16, 48
KERNEL_SHARE = 0.1  # scale of the kernel, relative to the residual standard deviation
JUDGED_GRAPHS = 64  # per pair, when losses are compared


def regimes_by_training(
    model: LatentGraphModel,
    train: Pairs,
    validation: Pairs,
    settings: FitSettings,
    *,
    num_regimes: int | Literal["auto"] = "auto",
    blocks: Blocks = "rows",
    seed: int = 0,
    compile: bool = True,
    block: int = 1,
    on_progress: Callable[[Progress], None] | None = None,
) -> RegimeFit:
    """Train regimes of a graph around a constant fit, which is not changed.

    ``settings``     settings of the fit
    ``num_regimes``  a number, or "auto": chosen by the validation loss, at most ``MOST_REGIMES``
    ``block``        number of neighbouring pairs that may be correlated, above 1 for a series
    """
    graph = model.graph
    require(
        isinstance(graph, BernoulliGraph) and graph.has_edge_probs,
        f"regimes requires a fit with constant edges, got {type(graph).__name__}; use BernoulliGraph",
    )
    if num_regimes != "auto":
        require_int("num_regimes", num_regimes)
    if num_regimes == 1:
        return constant_regime(model, blocks, ())
    loss, num_graphs = model.loss, FEWEST_GRAPHS
    if blocks == "all":
        kernel = RationalQuadratic(KERNEL_SHARE * residual_deviation(model, train, seed))
        loss, num_graphs = MMD(kernel, scope="joint"), JOINT_GRAPHS
    start = BernoulliGraph(
        graph.edge_probs.detach(), graph.fixed, symmetric=graph.symmetric, candidates=graph.candidates
    )
    first, second = max(1, round(0.3 * settings.epochs)), max(2, round(0.6 * settings.epochs))
    settings = replace(settings, halve_after=(first, second) if second < settings.epochs else (), patience=None)

    def trained(count: int) -> LatentGraphModel:
        mixed = with_graph(model, MixtureGraph(start, count, blocks), loss, max(model.num_graphs, num_graphs))
        seeds = replica_seeds(seed, STARTS)
        fresh = [mixed.graph.initial_parameters(generator_for(one, "regimes")) for one in seeds]
        starts = {f"graph.{name}": torch.stack([each[name] for each in fresh]) for name in fresh[0]}
        result = fit(
            mixed,
            train,
            validation,
            settings,
            seeds=seeds,
            compile=compile,
            start_at_model=True,
            starts=starts,
            on_progress=on_progress,
        )
        if result.interrupted:
            raise KeyboardInterrupt
        return result.model

    @torch.no_grad()
    def difference(one: LatentGraphModel, other: LatentGraphModel) -> Difference:
        losses = []
        for each in (one, other):
            judge = copy.deepcopy(each)
            judge.share_graphs, judge.num_graphs = False, max(JUDGED_GRAPHS, each.num_graphs)
            generator = generator_for(seed, "regimes", validation.inputs.device)
            losses.append(pair_losses(judge, {}, validation, generator=generator))
        return paired_difference(losses[0][0], *losses[1], Dependence(block, validation.series))

    found, steps = choose_number(trained, difference) if num_regimes == "auto" else (trained(num_regimes), ())
    mixture = found.graph
    assert isinstance(mixture, MixtureGraph)
    if mixture.num_regimes == 1:
        return constant_regime(model, blocks, steps)
    mixture.load_state_dict(mixture.ordered(), strict=False)
    probs, weights, marginals = (
        without_errors(one.detach()) for one in (mixture.regime_probs, mixture.regime_weights, mixture.edge_probs)
    )
    final = with_graph(found, mixture, model.loss, model.num_graphs)
    return RegimeFit(final, mixture.num_regimes, blocks, probs, weights, marginals, steps)

r"""Fit of a graph with regimes, and choice of their number.

Each number of regimes $K$ is trained from several starts around the constant fit, with the predictor if it is learned;
the start with the lowest validation loss is used. $K + 1$ regimes are preferred to $K$ if the validation loss decreases
by more than ``PRICE`` = 2 paired standard errors. $K = 1$ is trained like the others, so that the compared models
differ only in the number of regimes, and not in the length of training. If $K = 1$ is preferred, the constant fit is
kept unchanged.

Regimes of the rows (``blocks="rows"``) are trained with the loss of the model: the rows are independent blocks, so a
loss of node scope is sufficient, with credit by receptive field. The weights of the chosen regimes are then replaced by
the mean of their posterior probabilities over the training pairs. Regimes of the whole graph (``blocks="all"``) are
trained and compared with MMD at joint scope, instead of the model's own loss: a loss of node scope does not depend on
how regimes of different rows are combined, and the energy score at joint scope is less sensitive to it. The kernel is
rational quadratic, with a scale of a tenth of the residual standard deviation. Estimates at joint scope are noisy,
because every edge gets credit for all nodes. If the model's own loss has node scope, two short trainings follow, of
each node given the regime inferred from the other nodes (:mod:`tacit.assessment.regimes.given`). They are kept unless
the validation loss at joint scope increases by more than ``PRICE`` standard errors. The weights of the regimes are then
the mean of their posterior probabilities over the training pairs.

Standard errors come from bootstrap replicas: short trainings on resampled pairs that start at the fit, with regimes
matched to those of the fit. They include the randomness of training.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.assessment.regimes.at_boundary import put_at_boundary, released
from tacit.assessment.regimes.fitted import Estimate, RegimeFit, RegimeStep, undetermined
from tacit.assessment.regimes.matching import match_regimes
from tacit.assessment.regimes.sharpening import Fitted, can_sharpen, sharpened, with_posterior_weights
from tacit.assessment.uncertainty import (
    resample_rows,
    residual_deviation,
    rounded_at_boundary,
    short,
    with_usual_errors,
)
from tacit.data import Pairs
from tacit.errors import require, require_int
from tacit.graph import BernoulliGraph, Blocks, MixtureGraph
from tacit.losses import MMD, Loss, RationalQuadratic
from tacit.randomness import generator_for, replica_seeds
from tacit.shapes import EdgeMask, PairLoss
from tacit.training import (
    Difference,
    FitSettings,
    LatentGraphModel,
    Progress,
    fit,
    pair_losses,
    paired_difference,
    with_graph,
)

MOST_REGIMES = 4
STARTS = 4
REPLICAS = 16
PRICE = 2.0  # standard errors by which one more regime must lower the validation loss
# Graphs per pair. Measured on two regimes of 12 nodes (28,000 pairs, 10 epochs): at joint scope the error of the
# probabilities is .045 with 16 graphs and .031 with 48, in little more time.
FEWEST_GRAPHS, JOINT_GRAPHS = 16, 48
KERNEL_SHARE = 0.1  # scale of the kernel, relative to the residual standard deviation
JUDGED_GRAPHS = 64  # per pair, when losses are compared
LEVEL = 0.95  # of the intervals

T = TypeVar("T")
OnProgress = Callable[[Progress], None] | None


def fit_regimes(
    model: LatentGraphModel,
    train: Pairs,
    validation: Pairs,
    settings: FitSettings,
    *,
    num_regimes: int | Literal["auto"] = "auto",
    blocks: Blocks = "rows",
    replicas: int = REPLICAS,
    seed: int = 0,
    compile: bool = True,
    block: int = 1,
    on_progress: OnProgress = None,
) -> RegimeFit:
    """Fit regimes of a graph around a constant fit; the method is in the module docstring.

    ``model``        a fit with constant edges; it is not changed
    ``settings``     settings of the fit
    ``num_regimes``  a number, or "auto": chosen by the validation loss, at most ``MOST_REGIMES``
    ``replicas``     bootstrap replicas; 0 for no standard errors
    ``block``        number of neighbouring pairs that may be correlated, above 1 for a series
    """
    require(
        isinstance(model.graph, BernoulliGraph) and model.graph.has_edge_probs,
        f"regimes requires a fit with constant edges, got {type(model.graph).__name__}; use BernoulliGraph",
    )
    if num_regimes != "auto":
        require_int("num_regimes", num_regimes)
    require_int("replicas", replicas, 0)
    if num_regimes == 1:
        return constant_regime(model, blocks, ())
    loss = model.loss if blocks == "rows" else _joint_loss(model, train, seed)
    held = rounded_at_boundary(model, validation)

    def trained(count: int) -> LatentGraphModel:
        return _trained(held, loss, count, blocks, train, validation, settings, seed, compile, on_progress)

    def difference(one: LatentGraphModel, other: LatentGraphModel) -> Difference:
        return _difference(one, other, validation, seed, block)

    found, steps = choose_number(trained, difference) if num_regimes == "auto" else (trained(num_regimes), ())
    if _mixture_of(found).num_regimes == 1:
        return constant_regime(model, blocks, steps)
    if blocks == "rows":
        found = with_posterior_weights(found, train, validation, seed, PRICE)
    fitted = Fitted(found, found, train, validation)
    if blocks == "all" and can_sharpen(found, model.loss):
        fitted = _sharper(fitted, model, settings, seed, compile, block, on_progress)
    probs, weights, marginals = _errors(
        fitted, model.graph.learned, settings, replicas, seed, compile, block, on_progress
    )
    unknown = undetermined(_mixture_of(fitted.model))
    of_row = unknown[_mixture_of(fitted.model).block_of_row]
    estimates = probs.bounded(of_row[:, None] & model.graph.learned), weights.bounded(unknown[:, None]), marginals
    final = with_graph(fitted.model, released(_mixture_of(fitted.model), model.graph), model.loss, model.num_graphs)
    return RegimeFit(final, _mixture_of(final).num_regimes, blocks, *_by_weight(final, *estimates), steps)


def choose_number(
    fitted: Callable[[int], T], difference: Callable[[T, T], Difference]
) -> tuple[T, tuple[RegimeStep, ...]]:
    """Return the fit with the last regime that improves the validation loss, and the comparisons.

    ``fitted``      the fit with a number of regimes
    ``difference``  the validation loss of the first fit minus that of the second
    """
    best, steps = fitted(1), list[RegimeStep]()
    for count in range(2, MOST_REGIMES + 1):
        richer = fitted(count)
        change = difference(richer, best)
        steps.append(RegimeStep(count, change, change.mean < -PRICE * change.std_error))
        if not steps[-1].better:
            break
        best = richer
    return best, tuple(steps)


def _sharper(
    fitted: Fitted,
    constant: LatentGraphModel,
    settings: FitSettings,
    seed: int,
    compile: bool,
    block: int,
    on_progress: OnProgress,
) -> Fitted:
    """Return the fit after trainings of each node given the others, or the original fit if the joint loss rises."""
    sharper = sharpened(
        fitted.model,
        constant.loss,
        max(constant.num_graphs, FEWEST_GRAPHS),
        fitted.train,
        fitted.validation,
        short(settings),
        seed,
        compile,
        on_progress,
    )
    rise, error = _difference(sharper.model, fitted.model, fitted.validation, seed, block)
    return sharper if rise <= PRICE * error else fitted


def _joint_loss(model: LatentGraphModel, train: Pairs, seed: int) -> Loss:
    return MMD(RationalQuadratic(KERNEL_SHARE * residual_deviation(model, train, seed)), scope="joint")


def _trained(
    held: LatentGraphModel,
    loss: Loss,
    num_regimes: int,
    blocks: Blocks,
    train: Pairs,
    validation: Pairs,
    settings: FitSettings,
    seed: int,
    compile: bool,
    on_progress: OnProgress,
) -> LatentGraphModel:
    """Return the best of several starts, with regimes sorted by weight."""
    graph = held.graph
    start = BernoulliGraph(
        graph.edge_probs.detach(), graph.fixed, symmetric=graph.symmetric, candidates=graph.candidates
    )
    num_graphs = max(held.num_graphs, FEWEST_GRAPHS if blocks == "rows" else JOINT_GRAPHS)
    model = with_graph(held, MixtureGraph(start, num_regimes, blocks), loss, num_graphs)
    seeds = replica_seeds(seed, STARTS)
    fresh = [model.graph.initial_parameters(generator_for(one, "regimes")) for one in seeds]
    starts = {f"graph.{name}": torch.stack([each[name] for each in fresh]) for name in fresh[0]}
    first, second = max(1, round(0.3 * settings.epochs)), max(2, round(0.6 * settings.epochs))
    halving = (first, second) if second < settings.epochs else ()
    result = fit(
        model,
        train,
        validation,
        replace(settings, halve_after=halving, patience=None),
        seeds=seeds,
        compile=compile,
        start_at_model=True,
        starts=starts,
        on_progress=on_progress,
    )
    if result.interrupted:
        raise KeyboardInterrupt
    mixture = _mixture_of(result.model)
    mixture.load_state_dict(mixture.ordered(), strict=False)
    return put_at_boundary(result.model, validation)


def _mixture_of(model: LatentGraphModel) -> MixtureGraph:
    assert isinstance(model.graph, MixtureGraph)
    return model.graph


@torch.no_grad()
def _difference(richer: LatentGraphModel, poorer: LatentGraphModel, pairs: Pairs, seed: int, block: int) -> Difference:
    """Return the loss of ``richer`` minus that of ``poorer``, with blocks of neighbouring pairs if ``block`` > 1."""
    (one, weights), (other, _) = (_losses(model, pairs, seed) for model in (richer, poorer))
    one, other, weights = (in_blocks(values, block) for values in (one, other, weights))
    return paired_difference(one, other, weights)


def _losses(model: LatentGraphModel, pairs: Pairs, seed: int) -> tuple[PairLoss, Float[Tensor, " batch"]]:
    judge = copy.deepcopy(model)
    judge.share_graphs, judge.num_graphs = False, max(JUDGED_GRAPHS, model.num_graphs)
    return pair_losses(judge, {}, pairs, generator=generator_for(seed, "regimes", pairs.inputs.device))


def in_blocks(values: Tensor, block: int) -> Tensor:
    """Return the sums over blocks of neighbours, or the values if there are fewer than two blocks.

    The last block may be shorter.
    """
    if len(values) < 2 * block:
        return values
    missing = -len(values) % block
    return torch.nn.functional.pad(values, (0, missing)).view(-1, block).sum(1)


def _errors(
    fitted: Fitted,
    learned: EdgeMask,
    settings: FitSettings,
    replicas: int,
    seed: int,
    compile: bool,
    block: int,
    on_progress: OnProgress,
) -> tuple[Estimate, Estimate, Estimate]:
    """Return probabilities, weights and marginals with standard errors from replicas on resampled pairs."""
    graph, train = _mixture_of(fitted.model), fitted.train
    probs, weights, marginals = graph.regime_probs.detach(), graph.regime_weights.detach(), graph.edge_probs.detach()
    if replicas < 2:
        return _without_errors(probs), _without_errors(weights), _without_errors(marginals)
    seeds = replica_seeds(seed, replicas)
    rows = resample_rows(train, seeds, block)
    result = fit(
        copy.deepcopy(fitted.trained),
        train,
        fitted.validation,
        short(settings),
        seeds=seeds,
        compile=compile,
        start_at_model=True,
        resamples=rows,
        on_progress=on_progress,
    )
    if result.interrupted:
        raise KeyboardInterrupt
    all_probs, all_weights, all_marginals = [], [], []
    for place in range(replicas):
        one = copy.deepcopy(graph)
        own = {name.removeprefix("graph."): value[place] for name, value in result.parameters.items()}
        one.load_state_dict({name: value for name, value in own.items() if name in dict(one.named_parameters())}, False)
        if fitted.posterior is None:
            one.load_state_dict(one.permuted(match_regimes(graph, probs, one.regime_probs.detach())), strict=False)
            all_weights.append(one.regime_weights.detach())
        else:  # regimes are given, and their order does not change
            all_weights.append(fitted.posterior[rows[place].to(fitted.posterior.device)].mean(0))
        all_probs.append(one.regime_probs.detach())
        all_marginals.append(torch.einsum("rk,krs->rs", all_weights[-1][graph.block_of_row], all_probs[-1]))
    return (
        _estimate(probs, torch.stack(all_probs), learned.expand_as(probs), len(train)),
        _estimate(weights, torch.stack(all_weights), torch.ones_like(weights, dtype=torch.bool), len(train)),
        _estimate(marginals, torch.stack(all_marginals), learned, len(train)),
    )


def _without_errors(values: Tensor) -> Estimate:
    """Return values without standard errors."""
    unknown = torch.full_like(values, torch.nan)
    return Estimate(values, unknown, unknown, unknown)


def _estimate(value: Tensor, replicas: Tensor, learned: Tensor, num_pairs: int) -> Estimate:
    """Return standard errors and intervals; near 0 and 1 an error is at least as large as is typical elsewhere."""
    from scipy.stats import t as student_t

    flat = value.flatten(0, -2)
    deviation = replicas.double().std(0).to(value).flatten(0, -2)
    errors = torch.where(learned.flatten(0, -2), deviation, 0.0)
    errors = with_usual_errors(flat, errors, learned.flatten(0, -2), num_pairs).clamp_max(0.5)
    reach = float(student_t.isf((1 - LEVEL) / 2, len(replicas) - 1)) * errors.view_as(value)
    return Estimate(value, errors.view_as(value), (value - reach).clamp_min(0), (value + reach).clamp_max(1))


def _by_weight(
    model: LatentGraphModel, probs: Estimate, weights: Estimate, marginals: Estimate
) -> tuple[Estimate, Estimate, Estimate]:
    """Sort the regimes of the model by weight, the largest first; return the estimates in this order."""
    graph = _mixture_of(model)
    order = graph.regime_weights.detach().argsort(-1, descending=True)
    graph.load_state_dict(graph.permuted(order), strict=False)
    of_row = order[graph.block_of_row].mT[..., None]  # (regime, row, 1)
    return (
        Estimate(*(values.gather(0, of_row.expand_as(values)) for values in probs)),
        Estimate(*(values.gather(1, order) for values in weights)),
        marginals,
    )


def constant_regime(model: LatentGraphModel, blocks: Blocks, steps: tuple[RegimeStep, ...]) -> RegimeFit:
    """Return the result for a single regime."""
    probs = model.graph.edge_probs.detach()[None]
    weights = probs.new_ones(model.graph.num_nodes if blocks == "rows" else 1, 1)
    return RegimeFit(
        None, 1, blocks, _without_errors(probs), _without_errors(weights), _without_errors(probs[0]), steps
    )

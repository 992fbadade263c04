r"""Fit a graph with regimes, and choose how many there are.

Each number of regimes $K$ is trained from several starts around the constant fit, with the predictor if it is learned;
the start with the lowest validation loss is taken. $K + 1$ regimes are preferred to $K$ where the validation loss falls
by more than ``PRICE`` = 2 paired standard errors: that is the price of a regime. $K = 1$ is trained like the others, so
that what is compared differs in the number of regimes alone, and not in how long it was trained. Where it is preferred
the constant fit stands as it was.

Regimes of the rows (``blocks="rows"``) are trained with the loss of the model: its rows are independent blocks, so that
a loss of node scope sees all of it, with credit by receptive field. Regimes of the whole graph (``blocks="all"``) are
trained and compared with another loss, MMD at joint scope, whatever the model's own: a loss of node scope does not see
which regimes of different rows belong together, and the energy score at joint scope sees it less sharply. The kernel
is rational quadratic, its scale a tenth of what the model leaves. What joint scope finds is noisy, because every edge
answers for all nodes. Where the model's own loss has node scope, two short trainings follow, of each node given the
regime that the other nodes show (:mod:`tacit.assessment.regimes.given`). They are kept unless the validation loss at
joint scope rises by more than ``PRICE`` standard errors. The weights of the regimes are then the mean of their
probabilities over the training pairs.

Errors are those of bootstrap replicas: short trainings on resampled pairs that start at the fit, their regimes matched
to those of the fit. Their spread contains the randomness of training.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.assessment.regimes.at_boundary import put_at_boundary, released
from tacit.assessment.regimes.fitted import Estimate, RegimeFit, RegimeStep
from tacit.assessment.regimes.matching import match_regimes
from tacit.assessment.regimes.sharpening import Fitted, can_sharpen, sharpened
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
# Per pair. Measured on two regimes of 12 nodes (28,000 pairs, 10 epochs): with 16 at joint scope probabilities err by
# .045, with 48 by .031, in little more time.
FEWEST_GRAPHS, JOINT_GRAPHS = 16, 48
KERNEL_SHARE = 0.1  # scale of the kernel, of the deviation that the model leaves
JUDGED_GRAPHS = 64  # per pair, where losses are compared
LEVEL = 0.95  # of the intervals

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
    """Return the regimes of a graph around a constant fit; see the module's text.

    ``model``        a fit with constant edges; it stays as it is
    ``settings``     those of the fit
    ``num_regimes``  a number, or "auto": chosen by the validation loss, at most ``MOST_REGIMES``
    ``replicas``     of the bootstrap; 0 for no standard errors
    ``block``        number of neighbouring pairs that may hang together, above 1 for a series
    """
    require(
        isinstance(model.graph, BernoulliGraph) and model.graph.has_edge_probs,
        f"regimes requires a fit with constant edges, got {type(model.graph).__name__}; use BernoulliGraph",
    )
    if num_regimes != "auto":
        require_int("num_regimes", num_regimes)
    require_int("replicas", replicas, 0)
    if num_regimes == 1:
        return _constant(model, blocks, ())
    loss = model.loss if blocks == "rows" else _joint_loss(model, train, seed)
    held = rounded_at_boundary(model, validation)

    def trained(count: int) -> LatentGraphModel:
        return _trained(held, loss, count, blocks, train, validation, settings, seed, compile, on_progress)

    found, steps = _chosen(trained, validation, seed, block) if num_regimes == "auto" else (trained(num_regimes), ())
    if _mixture_of(found).num_regimes == 1:
        return _constant(model, blocks, steps)
    fitted = Fitted(found, found, train, validation)
    if blocks == "all" and can_sharpen(found, model.loss):
        fitted = _sharper(fitted, model, settings, seed, compile, block, on_progress)
    estimates = _errors(fitted, model.graph.learned, settings, replicas, seed, compile, block, on_progress)
    final = with_graph(fitted.model, released(_mixture_of(fitted.model), model.graph), model.loss, model.num_graphs)
    return RegimeFit(final, _mixture_of(final).num_regimes, blocks, *_by_weight(final, *estimates), steps)


def _chosen(
    trained: Callable[[int], LatentGraphModel], validation: Pairs, seed: int, block: int
) -> tuple[LatentGraphModel, tuple[RegimeStep, ...]]:
    """Return the fit up to the last regime that is worth its price, and the comparisons; all are trained alike."""
    best, steps = trained(1), list[RegimeStep]()
    for count in range(2, MOST_REGIMES + 1):
        richer = trained(count)
        difference = _difference(richer, best, validation, seed, block)
        steps.append(RegimeStep(count, difference, difference.mean < -PRICE * difference.std_error))
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
    """Return the fit after trainings of each node given the others, or as it was where the joint loss rises."""
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
    """Return the best of several starts, its regimes ordered by weight."""
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
    """Return how much higher the loss of one model is, over blocks of neighbouring pairs where they hang together."""
    (one, weights), (other, _) = (_losses(model, pairs, seed) for model in (richer, poorer))
    if block > 1 and len(one) >= 2 * block:
        one, other, weights = (_in_blocks(values, block) for values in (one, other, weights))
    return paired_difference(one, other, weights)


def _losses(model: LatentGraphModel, pairs: Pairs, seed: int) -> tuple[PairLoss, Float[Tensor, " batch"]]:
    judge = copy.deepcopy(model)
    judge.share_graphs, judge.num_graphs = False, max(JUDGED_GRAPHS, model.num_graphs)
    return pair_losses(judge, {}, pairs, generator=generator_for(seed, "regimes", pairs.inputs.device))


def _in_blocks(values: Tensor, block: int) -> Tensor:
    """Return the sums over blocks of neighbours; the last block may be shorter."""
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
    """Return probabilities, weights and marginals with the errors that replicas on resampled pairs show."""
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
        else:  # regimes are given, and keep their numbers
            all_weights.append(fitted.posterior[rows[place].to(fitted.posterior.device)].mean(0))
        all_probs.append(one.regime_probs.detach())
        all_marginals.append(torch.einsum("rk,krs->rs", all_weights[-1][graph.block_of_row], all_probs[-1]))
    return (
        _estimate(probs, torch.stack(all_probs), learned.expand_as(probs), len(train)),
        _estimate(weights, torch.stack(all_weights), torch.ones_like(weights, dtype=torch.bool), len(train)),
        _estimate(marginals, torch.stack(all_marginals), learned, len(train)),
    )


def _without_errors(values: Tensor) -> Estimate:
    """Return values whose errors are not known."""
    unknown = torch.full_like(values, torch.nan)
    return Estimate(values, unknown, unknown, unknown)


def _estimate(value: Tensor, replicas: Tensor, learned: Tensor, num_pairs: int) -> Estimate:
    """Return errors and intervals; near 0 and 1 an error is no less than is usual inside."""
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
    """Put the regimes of the model in the order of their weights, the largest first; return the estimates in it."""
    graph = _mixture_of(model)
    order = graph.regime_weights.detach().argsort(-1, descending=True)
    graph.load_state_dict(graph.permuted(order), strict=False)
    of_row = order[graph.block_of_row].mT[..., None]  # (regime, row, 1)
    return (
        Estimate(*(values.gather(0, of_row.expand_as(values)) for values in probs)),
        Estimate(*(values.gather(1, order) for values in weights)),
        marginals,
    )


def _constant(model: LatentGraphModel, blocks: Blocks, steps: tuple[RegimeStep, ...]) -> RegimeFit:
    """Return the answer that one regime is enough."""
    probs = model.graph.edge_probs.detach()[None]
    weights = probs.new_ones(model.graph.num_nodes if blocks == "rows" else 1, 1)
    return RegimeFit(
        None, 1, blocks, _without_errors(probs), _without_errors(weights), _without_errors(probs[0]), steps
    )

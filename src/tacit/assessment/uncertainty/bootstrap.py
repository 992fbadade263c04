r"""Standard errors of edge probabilities by a bootstrap: replicas on resampled data, started at the fit.

A replica that trains on a resample of the pairs differs from the fit because of the other data, and because of the
randomness of a short training (sampled graphs, order of batches). A few replicas train on the original data: they
differ only because of the second. So

$$V_\mathrm{data} = (1 - \rho)\, V_\mathrm{resampled}, \qquad
\rho = \frac{\sum_{ij} V_\mathrm{same}}{\sum_{ij} V_\mathrm{resampled}}$$

with $V$ the variance of $\theta_{ij}$ over replicas. The share $\rho$ is one number for all edges, because the variance
over few replicas is a poor estimate for a single edge and a good one for many. If the sandwich can be computed,
$1 - \rho$ comes from it instead (:mod:`tacit.assessment.uncertainty.resamples`). The mean over all
$R = R_r + R_s$ replicas, the *bagged* estimate, averages over the randomness of training. Its standard error is

$$s^2 = V_\mathrm{data} \Big(1 + \frac{R_r}{R^2}\Big) + \frac{\rho\, V_\mathrm{resampled}}{R}$$

Each resample may select its own edges (``kept``): the others are 0 in its replica, and the error of an edge is computed
over the replicas that keep it, conditional on its existence.

Further fits use *other starts*: the whole training, from other initial values, on the original data. With $D_{ij}$ the
mean squared distance between the bagged estimate and the starts that predict as well,

$$s^2 \leftarrow s^2 + \max\Big(D_{ij},\; s^2\, \frac{\operatorname{median} D}{\operatorname{median} s^2}\Big)$$

so that intervals contain the results of other starts: the second term is the typical distance, since two or three
starts are not enough for a single edge. A bias that all replicas and starts share is not included.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.assessment.uncertainty.boundary import (
    NOTHING_KNOWN,
    interior_edges,
    loss_difference,
    mean_loss,
    rounded_at_boundary,
    with_usual_errors,
)
from tacit.assessment.uncertainty.decisions import EdgeIntervals, ReplicaProbs, intervals_around
from tacit.assessment.uncertainty.resamples import (
    FEWEST_KEEPING,
    EdgeMasks,
    Kept,
    data_share,
    kept_edges,
    kept_mean,
    kept_variance,
    resample_rows,
)
from tacit.assessment.uncertainty.sandwich import refusal, sandwich
from tacit.data import Pairs
from tacit.errors import require_int
from tacit.graph import GraphDistribution
from tacit.randomness import generator_for, replica_seeds
from tacit.shapes import EdgeMask, EdgeProbs
from tacit.training import CosineDecay, FitResult, FitSettings, LatentGraphModel, Progress, fit

REPLICAS = 32
SAME_SHARE = 0.25  # share of the replicas that train on the original data
# Measured on the 12-node system (28,000 pairs, fit of 10 epochs at a rate of 0.1, three data sets, 32 replicas): from 2
# to 30 epochs V_data was the same, .0069-.0071 squared; 3 epochs at a fifth of the rate gave rho = .55 at a cost of 1.6
# fits on a GPU, 10 epochs rho = .35 at 5 fits.
EPOCHS_SHARE, RATE_SHARE, AVERAGED = 0.3, 0.2, 0.5
FEWEST_REPLICAS = 4
# Distance between fit and bagged estimate in standard errors, root mean square over edges; 1 for the fit above.
SETTLED = 3.0
UNSETTLED = (
    "the fit has not converged: further training on the same and on resampled data moves edge probabilities by "
    "{size:.1f} standard errors, which are added to the errors; train for more epochs"
)
STARTS = 2  # full fits from other starts; each costs a fit
MUCH_LOSS = 0.01  # share of the validation loss: a start that is clearly worse, and by more, is no equivalent solution
QUICK_SANDWICH = 300  # edges and parameters; up to this number a sandwich takes no longer than the fit on two cores
SELDOM_KEPT = "fewer than {fewest} of {replicas} resamples keep {edges} of the edges: their errors are wide"
OTHER_STARTS = 500  # offset of the seeds of other starts; there are fewer replicas
NEVER = 1e-6  # new value of edges that were fixed at 0: an edge at 0 could not change in a later training

StartProbs = Float[Tensor, "start row slot"]


@dataclass(frozen=True, eq=False)
class EdgeUncertainty:
    """The bagged estimate of each edge probability, and its standard error.

    ``parameters``  means over all replicas, by name
    ``rho``         share of the replicas' variance that is due to training
    ``learned``     edges that are not fixed; others have no error
    ``degrees``     degrees of freedom of the standard errors
    ``resampled``   the probabilities of each replica on a resample
    """

    edge_probs: EdgeProbs
    std_errors: EdgeProbs
    learned: EdgeMask
    symmetric: bool
    rho: float
    degrees: int
    resampled: ReplicaProbs
    parameters: dict[str, Tensor]
    train_seconds: float
    warnings: list[str]

    def intervals(self, level: float = 0.95, *, simultaneous: bool = False) -> EdgeIntervals:
        """Return confidence intervals of the given ``level``, for each edge or simultaneous for all edges."""
        return intervals_around(
            self.edge_probs,
            self.std_errors,
            self.degrees,
            level,
            simultaneous=simultaneous,
            learned=self.learned,
            symmetric=self.symmetric,
        )


def bootstrap(
    model: LatentGraphModel,
    train: Pairs,
    validation: Pairs,
    settings: FitSettings,
    *,
    replicas: int = REPLICAS,
    starts: int = STARTS,
    block: int = 1,
    seed: int = 0,
    compile: bool = True,
    kept: Kept | None = None,
    untrained: LatentGraphModel | None = None,
    sandwich_limit: int = QUICK_SANDWICH,
    on_progress: Callable[[Progress], None] | None = None,
) -> EdgeUncertainty:
    """Return the uncertainty of a trained model, from ``replicas`` short trainings that start at its parameters.

    ``settings`` are those of the fit; the replicas use fewer epochs and a lower rate. ``starts`` is the number of full
    fits from other initial values of ``untrained``, the model before its training; without ``untrained`` there are
    none, and errors are those around the solution that was found.
    ``block`` is the number of neighbouring pairs that are resampled together, above 1 for pairs of a series; see
    :func:`usual_block`. Pairs of several series are resampled by whole series; see :mod:`tacit.data.resampling`.
    ``kept`` returns the edges that may exist given the rows of a resample; others are 0 in its replica.
    ``sandwich_limit`` is the number of edges and parameters up to which a sandwich is computed.
    The model is not changed. Ctrl-C stops the bootstrap; only the standard errors are lost.
    """
    model.graph.require_all_pairs("bootstrap")
    require_int("replicas", replicas, FEWEST_REPLICAS)
    require_int("starts", starts, 0)
    same = max(2, round(SAME_SHARE * replicas))
    seeds = replica_seeds(seed, replicas)
    rows = resample_rows(train, seeds[same:], block)
    unchanged = torch.arange(len(train), device=rows.device).expand(same, -1)
    rounded = rounded_at_boundary(model, validation)
    every = torch.ones_like(model.graph.fixed)
    masks = torch.cat([every.expand(same, *every.shape), kept_edges(rows, every, kept)])
    result = fit(
        rounded,
        train,
        validation,
        short(settings),
        seeds=seeds,
        compile=compile,
        start_at_model=True,
        starts=None if kept is None else _without(rounded.graph, masks),
        resamples=torch.cat([unchanged, rows]),
        on_progress=on_progress,
    )
    if result.interrupted:
        raise KeyboardInterrupt
    reference = _sandwich_of(model, train, block, seed, sandwich_limit)
    others = _other_starts(model, untrained, train, validation, settings, starts, seed, compile, on_progress)
    return _summary(result, same, model.graph, len(train), masks=masks, reference=reference, others=others)


def _without(graph: GraphDistribution, masks: EdgeMasks) -> dict[str, Tensor]:
    """Return the initial values of replicas: those of the graph, with exactly 0 for edges that they do not keep."""
    probs = torch.where(masks, graph.link.probs(graph.raw.detach()), 0.0)
    return {f"graph.{graph.link.parameter}": graph.link.raw(probs)}


def _sandwich_of(model: LatentGraphModel, train: Pairs, block: int, seed: int, limit: int) -> EdgeProbs | None:
    """Return the sandwich's standard errors, if there are not too many edges and parameters."""
    if not model.loss.compares or not model.graph.has_edge_probs or refusal(model, limit) is not None:
        return None
    generator = generator_for(seed, "sandwich", train.inputs.device)
    return sandwich(model, train, generator=generator, block=block).std_errors


def _other_starts(
    model: LatentGraphModel,
    untrained: LatentGraphModel | None,
    train: Pairs,
    validation: Pairs,
    settings: FitSettings,
    starts: int,
    seed: int,
    compile: bool,
    on_progress: Callable[[Progress], None] | None,
) -> StartProbs | None:
    """Return the results of fits from other starts that predict as well as the model."""
    if untrained is None or not starts:
        return None
    seeds = [s + OTHER_STARTS for s in replica_seeds(seed, starts)]
    again = fit(
        copy.deepcopy(untrained),
        train,
        validation,
        replace(settings, halve_after=(), patience=None),
        seeds=seeds,
        compile=compile,
        on_progress=on_progress,
    )
    if again.interrupted:
        raise KeyboardInterrupt
    raw, before = f"graph.{model.graph.link.parameter}", model.state_dict()
    as_good = []
    for place in range(starts):
        state = {name: value[place] for name, value in again.parameters.items()}
        rise = loss_difference(model, validation, {**before, **state}, before)
        if not rise.clearly_higher or rise.mean <= MUCH_LOSS * abs(mean_loss(model, validation, before)):
            as_good.append(model.graph.probs_from(state[raw]).detach())
    return torch.stack(as_good) if as_good else None


def short(settings: FitSettings) -> FitSettings:
    """Return the settings of the replicas: fewer epochs, a lower rate, and an average over the second half."""
    epochs, predictor = max(1, round(EPOCHS_SHARE * settings.epochs)), settings.predictor_learning_rate
    return FitSettings(
        epochs=epochs,
        batch_size=settings.batch_size,
        schedule=CosineDecay(RATE_SHARE * settings.schedule(0, settings.epochs)),
        adam_betas=settings.adam_betas,
        predictor_learning_rate=None if predictor is None else RATE_SHARE * predictor,
        average_fraction=AVERAGED,
    )


def _summary(
    result: FitResult,
    same: int,
    fitted: GraphDistribution,
    num_pairs: int,
    *,
    masks: EdgeMasks | None = None,
    reference: EdgeProbs | None = None,
    others: StartProbs | None = None,
) -> EdgeUncertainty:
    """Summarise the replicas, the first ``same`` of which were trained on the original data."""
    graph, learned = result.model.graph, ~fitted.fixed
    raw_name = f"graph.{graph.link.parameter}"
    replicas = graph.probs_from(result.parameters[raw_name]).detach()
    kept = torch.ones_like(replicas) if masks is None else masks.to(replicas)
    count, resampled = kept.sum(0), kept[same:].sum(0)
    of_training, of_both = (kept_variance(replicas[part], kept[part]) for part in (slice(same), slice(same, None)))
    seen = learned & (resampled >= min(FEWEST_KEEPING, len(replicas) - same))
    degrees = len(replicas) - same - 1
    share = data_share(of_training, of_both, seen, reference, degrees)
    rho = max(0.0, 1 - share)
    factor = share * (1 + resampled / count**2) + rho / count
    bagged = fitted.symmetrize(kept_mean(replicas, kept))
    errors = torch.where(learned, fitted.symmetrize((of_both * factor).sqrt()), 0.0).to(bagged)
    errors[learned & (errors == 0) & interior_edges(bagged)] = NOTHING_KNOWN  # it never had a gradient
    errors = with_usual_errors(bagged, errors, seen, num_pairs)
    errors, warnings = _with_drift(bagged, errors, fitted.edge_probs.detach(), seen)
    errors = with_other_starts(bagged, errors, learned, others)
    if (learned & ~seen).any():
        errors[learned & ~seen] = NOTHING_KNOWN
        few = int((learned & ~seen).sum())
        warnings.append(SELDOM_KEPT.format(fewest=FEWEST_KEEPING, replicas=len(replicas) - same, edges=few))
    means = {name: value.mean(0) for name, value in result.parameters.items()}
    return EdgeUncertainty(
        bagged,
        errors,
        learned,
        graph.symmetric,
        rho,
        degrees,
        replicas[same:],
        {**means, raw_name: graph.link.raw(bagged.clamp(NEVER, 1 - NEVER))},
        result.train_seconds,
        [*warnings, *result.warnings],
    )


def with_other_starts(bagged: EdgeProbs, errors: EdgeProbs, learned: EdgeMask, others: StartProbs | None) -> EdgeProbs:
    """Return the errors with the distance of other starts added: that of the edge or the typical one, if larger.

    >>> one, error, learned = torch.tensor([[0.5, 0.5, 0.5]]), torch.full((1, 3), 0.1), torch.ones(1, 3) > 0
    >>> with_other_starts(one, error, learned, torch.tensor([[[0.55, 0.55, 0.9]]])).round(decimals=2)
    tensor([[0.1100, 0.1100, 0.4100]])
    """
    if others is None or not (known := learned & (errors > 0) & (errors < NOTHING_KNOWN)).any():
        return errors
    away, before = (others - bagged).square().mean(0).to(errors), errors.square()
    usual = before * away[known].median() / before[known].median()
    return torch.where(known, (before + torch.maximum(away, usual)).sqrt().clamp_max(NOTHING_KNOWN), errors)


def _with_drift(bagged: EdgeProbs, errors: EdgeProbs, fitted: EdgeProbs, seen: EdgeMask) -> tuple[EdgeProbs, list[str]]:
    """Return the errors and a warning; if all replicas drift away from the fit, the distance is added to the errors."""
    gap, moved = bagged - fitted, seen & (errors > 0) & (errors < NOTHING_KNOWN)
    size = (gap[moved] / errors[moved]).square().mean().sqrt() if moved.any() else torch.zeros(())
    if size <= SETTLED:
        return errors, []
    return torch.where(seen, torch.hypot(errors, gap), errors), [UNSETTLED.format(size=float(size))]

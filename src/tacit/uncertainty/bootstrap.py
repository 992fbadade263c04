r"""How well are the edge probabilities known? Fits of resampled data, all at once, from where the fit ended.

A replica that trains on a resample of the pairs differs from the fit by what other data would have changed, and by the
randomness of a short training (graphs drawn, order of batches). A few replicas train on the data as it is: they differ
by the second alone. So

$$V_\mathrm{data} = (1 - \rho)\, V_\mathrm{resampled}, \qquad
\rho = \frac{\sum_{ij} V_\mathrm{same}}{\sum_{ij} V_\mathrm{resampled}}$$

with $V$ the variance of $\theta_{ij}$ over replicas; the share $\rho$ is one number for all edges, because the variance
of few replicas is a poor estimate for one edge and a good one for many. The mean over all $R = R_r + R_s$ replicas, the
*bagged* estimate, averages the randomness of training away. Its standard error is

$$s^2 = V_\mathrm{data} \Big(1 + \frac{R_r}{R^2}\Big) + \frac{\rho\, V_\mathrm{resampled}}{R}$$

What every replica gets wrong alike, a bias, does not show here. Start and basin are those of the fit: it says how far
the answer would move with other data, not with another start.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from tacit.data import Pairs
from tacit.data.resampling import bootstrap_rows, require_resamplable
from tacit.errors import require_whole
from tacit.graph import GraphDistribution
from tacit.randomness import generator_for, replica_seeds
from tacit.shapes import EdgeMask, EdgeProbs
from tacit.training import CosineDecay, FitResult, FitSettings, LatentGraphModel, Progress, fit
from tacit.uncertainty.boundary import NOTHING_KNOWN, interior_edges, rounded_at_boundary, with_usual_errors
from tacit.uncertainty.checks import ReplicaProbs
from tacit.uncertainty.intervals import EdgeIntervals, bagged_edge_probs, intervals_around

REPLICAS = 32
SAME_SHARE = 0.25  # of the replicas, which train on the data as it is
# Measured on the 12-node system (28,000 pairs, fit of 10 epochs at a rate of 0.1, three data sets, 32 replicas): from 2
# to 30 epochs V_data came out the same, .0069-.0071 squared; 3 epochs at a fifth of the rate left rho = .55 at a cost
# of 1.6 fits on a GPU, 10 epochs rho = .35 at 5 fits.
EPOCHS_SHARE, RATE_SHARE, AVERAGED = 0.3, 0.2, 0.5
FEWEST_REPLICAS = 4
# Distance between fit and bagged estimate in standard errors, root mean square over edges; 1 for the fit above.
SETTLED = 3.0
UNSETTLED = (
    "the fit had not settled: trained further, on the same and on resampled data, edge probabilities move on by "
    "{size:.1f} standard errors, which is added to the errors; train for more epochs"
)
NEVER = 1e-6  # edges that were held at 0 are put here: an edge at 0 could not return in a later training
MOST_RHO = 0.9  # training may seem to explain all of the variance by chance
TINY = torch.finfo(torch.float64).tiny


@dataclass(frozen=True, eq=False)
class EdgeUncertainty:
    """The bagged estimate of each edge probability and how far it may be off.

    ``parameters``  means over all replicas, by name; ``rho``  the share of the replicas' variance that is due to
    training; ``learned``  edges that are not held at a value: others have no error; ``degrees``  of freedom of the
    standard errors; ``resampled``  the probabilities of each replica on a resample.
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
        """Return intervals that hold the true probability with chance ``level``, of each edge or of all at once."""
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
    block: int = 1,
    seed: int = 0,
    compile: bool = True,
    on_progress: Callable[[Progress], None] | None = None,
) -> EdgeUncertainty:
    """Return the uncertainty of a trained model, from ``replicas`` short trainings that start where it ended.

    ``settings`` are those of the fit; the replicas take part of its epochs at part of its rate. ``block`` is the number
    of neighbouring pairs that are drawn together, above 1 for pairs of a series; see :func:`usual_block`. Pairs of
    several series are drawn by whole series; see :mod:`tacit.data.resampling`.
    The model stays as it is. Ctrl-C stops it with nothing lost but the standard errors.
    """
    model.graph.require_all_pairs("bootstrap")
    require_whole("replicas", replicas, FEWEST_REPLICAS)
    require_resamplable(len(train), block, train.series)
    same = max(2, round(SAME_SHARE * replicas))
    seeds = replica_seeds(seed, replicas)
    rows = [
        bootstrap_rows(len(train), generator=generator_for(s, "resample"), block=block, series=train.series)
        for s in seeds[same:]
    ]
    unchanged = torch.arange(len(train)).expand(same, -1)
    result = fit(
        rounded_at_boundary(model, validation),
        train,
        validation,
        short(settings),
        seeds=seeds,
        compile=compile,
        start_at_model=True,
        resamples=torch.cat([unchanged, torch.stack(rows)]),
        on_progress=on_progress,
    )
    if result.interrupted:
        raise KeyboardInterrupt
    return _summary(result, same, model.graph, len(train))


def short(settings: FitSettings) -> FitSettings:
    """Return the settings of the replicas: fewer epochs, a lower rate, and an average over the latter half."""
    epochs = max(1, round(EPOCHS_SHARE * settings.epochs))
    return FitSettings(
        epochs=epochs,
        batch_size=settings.batch_size,
        schedule=CosineDecay(RATE_SHARE * settings.schedule(0, settings.epochs)),
        adam_betas=settings.adam_betas,
        predictor_rate=settings.predictor_rate,
        average_fraction=AVERAGED,
    )


def _summary(result: FitResult, same: int, fitted: GraphDistribution, num_pairs: int) -> EdgeUncertainty:
    """Return what the replicas show, the first ``same`` of which had the data as it is."""
    graph, learned = result.model.graph, ~fitted.fixed
    raw_name = f"graph.{graph.link.parameter}"
    replicas = graph.probs_from(result.parameters[raw_name]).detach()
    count = len(replicas)
    of_training, of_both = (part.double().var(0) for part in (replicas[:same], replicas[same:]))
    rho = min(MOST_RHO, float(of_training[learned].sum() / of_both[learned].sum().clamp_min(TINY)))
    factor = (1 - rho) * (1 + (count - same) / count**2) + rho / count
    bagged = fitted.mirrored(bagged_edge_probs(replicas))
    errors = torch.where(learned, fitted.mirrored((of_both * factor).sqrt()), 0.0).to(bagged)
    errors[learned & (errors == 0) & interior_edges(bagged)] = NOTHING_KNOWN  # no gradient ever moved it
    errors = with_usual_errors(bagged, errors, learned, num_pairs)
    errors, warnings = _with_drift(bagged, errors, fitted.edge_probs.detach(), learned)
    means = {name: value.mean(0) for name, value in result.parameters.items()}
    return EdgeUncertainty(
        bagged,
        errors,
        learned,
        graph.symmetric,
        rho,
        count - same - 1,
        replicas[same:],
        {**means, raw_name: graph.link.raw(bagged.clamp(NEVER, 1 - NEVER))},
        result.train_seconds,
        [*warnings, *result.warnings],
    )


def _with_drift(
    bagged: EdgeProbs, errors: EdgeProbs, fitted: EdgeProbs, learned: EdgeMask
) -> tuple[EdgeProbs, list[str]]:
    """Return the errors, with the distance from the fit added where replicas all move away from it, and a warning."""
    gap, moved = bagged - fitted, learned & (errors > 0) & (errors < NOTHING_KNOWN)
    size = (gap[moved] / errors[moved]).square().mean().sqrt() if moved.any() else torch.zeros(())
    if size <= SETTLED:
        return errors, []
    return torch.where(learned, torch.hypot(errors, gap), errors), [UNSETTLED.format(size=float(size))]

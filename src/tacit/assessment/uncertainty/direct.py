"""Estimates of how often each edge acts, without training: by mean and variance, or by the exact likelihood."""

from tacit.assessment.uncertainty.acting import Acting, acting
from tacit.assessment.uncertainty.acting_likelihood import acting_by_likelihood
from tacit.assessment.uncertainty.resamples import Kept
from tacit.data import Pairs
from tacit.local import has_likelihood, has_moment_estimate
from tacit.shapes import EdgeMask
from tacit.training import LatentGraphModel


def has_direct_estimate(model: LatentGraphModel) -> bool:
    """Return whether it can be estimated without training how often edges act."""
    return has_moment_estimate(model) or (has_likelihood(model) and not model.observation.by_moments)


def estimate_acting(
    model: LatentGraphModel,
    train: Pairs,
    *,
    replicas: int = 16,
    block: int = 1,
    seed: int = 0,
    kept: Kept | None = None,
    intervals: bool = True,
    switching: bool = False,
    earlier: Acting | None = None,
    likely: EdgeMask | None = None,
    always: bool = False,
) -> Acting:
    """Return how often the learned edges act; see :func:`acting` and :func:`acting_by_likelihood`.

    Resamples scale the errors of the moment estimate. Without ``intervals`` the likelihood gives no errors. What the
    likelihood says is taken from an ``earlier`` result of the same pairs and edges, if it is given. Common gates are
    searched for where an edge that is ``likely`` to exist has a gate. No gates are tested if edges ``always`` act.
    """
    if has_moment_estimate(model):
        return acting(
            model,
            train,
            replicas=replicas,
            block=block,
            seed=seed,
            kept=kept,
            intervals=intervals,
            switching=switching,
            earlier=earlier,
            likely=likely,
        )
    return earlier or acting_by_likelihood(
        model, train, block=block, intervals=intervals, switching=switching, likely=likely, always=always
    )

"""Standard errors of probabilities: from regressions of mean and variance where possible, otherwise by resampling."""

from dataclasses import dataclass, replace

import torch
from scipy import special
from torch import Tensor

from tacit.assessment.uncertainty import (
    MOST_PARAMETERS,
    QUICK_SANDWICH,
    STARTS,
    Acting,
    EdgeIntervals,
    EdgeUncertainty,
    Kept,
    acting_words,
    adopt,
    bootstrap,
    estimate_acting,
)
from tacit.data import Split, resampling_words
from tacit.edges import ACTS
from tacit.local import has_moment_estimate
from tacit.training import FitSettings, LatentGraphModel, Listener

LEVEL = 0.95
LEAST_ERROR = 1e-9  # of a probability, in its test
WIDTH = 4.0  # standard errors in an interval of that level
STANDARD_ERRORS = "Standard errors from"
FEW_SERIES = "There are too few series for a bootstrap of series: standard errors ignore differences between series."
# Standard errors, and fraction of the validation loss, by which the estimate from regressions may be worse. Standard
# errors alone are too small for a validation part of one or two series, which training also used to choose its epoch.
MUCH_WORSE, MUCH_LOSS = 3.0, 0.02
NOT_ADOPTED = (
    "How often edges act was not estimated without training, because the model then "
    "forecasts worse: relations may be nonlinear, or the noise may depend on the inputs."
)
BOTH = "Intervals contain both estimates."


@dataclass(frozen=True, eq=False)
class EdgeErrors:
    """Columns of the edges by name, numbers for the record, and sentences.

    ``rejected``  the estimate was not used, because the model would forecast worse with it
    """

    columns: dict[str, Tensor]
    uncertainty: dict[str, float]
    findings: list[str]
    rejected: bool = False

    def holding(self, other: "EdgeErrors") -> "EdgeErrors":
        """Return intervals that also contain those of a rejected estimate, with larger errors."""
        low = torch.minimum(self.columns["low"], other.columns["low"])
        high = torch.maximum(self.columns["high"], other.columns["high"])
        reach = torch.maximum(high - self.columns["bagged"], self.columns["bagged"] - low)
        errors = torch.maximum(self.columns["std_error"], reach / (WIDTH / 2))
        one, two = self.columns["acting"], other.columns["acting"]
        acting = torch.where(one == two, one, ACTS.index("undecided"))
        columns = {**self.columns, "low": low, "high": high, "std_error": errors, "acting": acting}
        return replace(self, columns=columns, findings=[f"{NOT_ADOPTED} {BOTH}", *self.findings])


def estimate_std_errors(
    model: LatentGraphModel,
    split: Split,
    settings: FitSettings,
    *,
    replicas: int,
    block: int,
    seed: int,
    compile: bool,
    listener: Listener,
    moments: bool,
    kept: Kept | None = None,
    untrained: LatentGraphModel | None = None,
    starts: int = STARTS,
    thorough: bool = False,
    change: bool = False,
    trained: bool = True,
    switching: bool = False,
    earlier: Acting | None = None,
) -> EdgeErrors:
    """Return how often edges act, with standard errors; with ``change`` the model gets the better estimate.

    With ``moments`` the estimate comes from regressions of mean and variance, and ``replicas`` resamples scale its
    errors. Otherwise, or if the model would forecast worse with this estimate, replicas are trained on resampled data.
    ``kept`` selects the edges of each resample, ``starts`` is the number of further fits from other random starts, and
    ``thorough`` raises the size limit of the sandwich estimate. No replicas are trained unless ``trained``.
    ``switching`` means that regimes are fitted next. ``earlier`` is what the fit of the same pairs and edges found.
    """
    found = None
    if moments:
        found = _from_moments(
            model,
            split,
            replicas=replicas,
            block=block,
            seed=seed,
            kept=kept,
            change=change,
            switching=switching,
            earlier=earlier,
        )
    if replicas and trained and (found is None or found.rejected):
        resampled = _from_bootstrap(
            bootstrap(
                model,
                split.train,
                split.validation,
                settings,
                replicas=replicas,
                starts=starts,
                block=block,
                seed=seed,
                compile=compile,
                kept=kept,
                untrained=untrained,
                sandwich_limit=MOST_PARAMETERS if thorough else QUICK_SANDWICH,
                on_progress=listener.step,
            ),
            model,
            split,
            block=block,
            change=change,
        )
        found = resampled if found is None else resampled.holding(found)
    if found is None or found.rejected:
        return EdgeErrors({}, {}, [] if found is None else [NOT_ADOPTED])
    return found


def _from_moments(
    model: LatentGraphModel,
    split: Split,
    *,
    replicas: int,
    block: int,
    seed: int,
    kept: Kept | None,
    change: bool,
    switching: bool,
    earlier: Acting | None,
) -> EdgeErrors:
    """Return how often edges act; with ``change`` the model gets this estimate, unless it then forecasts worse."""
    found = estimate_acting(
        model,
        split.train,
        replicas=replicas,
        block=block,
        seed=seed,
        kept=kept,
        switching=switching,
        earlier=earlier,
    )
    adopted = change and adopt(model, found.parameters, split.validation, worse=MUCH_WORSE, tolerance=MUCH_LOSS)
    uncertainty = {
        "replicas": float(replicas if has_moment_estimate(model) else 0),
        "inflation": float(found.inflation.median()) if len(found.inflation) else 1.0,
        "degrees": float(int(found.degrees)),
        "always": float(found.always.sum()),
        "adopted": float(adopted),
    }
    by_moments = has_moment_estimate(model)
    drawn = resampling_words(len(split.train), block, split.train.series) if replicas and by_moments else ""
    sizes = f", scaled by {replicas} resamples of the data ({drawn})" if drawn else ""
    source = "regressions of mean and variance of each node" if by_moments else "the likelihood of each node"
    said = f"{STANDARD_ERRORS} {source}{sizes}."
    return EdgeErrors(
        _columns(found.std_errors, found.intervals(LEVEL), found.bagged)
        | {"acting": found.acting.cpu(), "gate_nats": found.nats, "together": found.together},
        uncertainty,
        [said, *_few_series(split, drawn), *_sentences(found.warnings)],
        rejected=change and not adopted,
    )


def _from_bootstrap(
    found: EdgeUncertainty, model: LatentGraphModel, split: Split, *, block: int, change: bool
) -> EdgeErrors:
    """Return the estimate of the replicas; with ``change`` the model gets their mean if it predicts as well."""
    adopted = change and adopt(model, found.parameters, split.validation)
    uncertainty = {
        "replicas": float(len(found.resampled)),
        "rho": found.rho,
        "degrees": float(found.degrees),
        "train_seconds": found.train_seconds,
        "adopted": float(adopted),
    }
    said = (
        "the estimate is the mean over them"
        if adopted
        else "the estimate is the fit, because their mean predicts worse; errors and intervals are those of the mean"
        if change
        else "the estimate is the fit; errors and intervals are those of the mean over them"
    )
    drawn = resampling_words(len(split.train), block, split.train.series)
    first = f"{STANDARD_ERRORS} {len(found.resampled)} resamples of the data ({drawn}); {said}."
    symmetrize = model.graph.symmetrize
    around = found.intervals(LEVEL)
    columns = _columns(found.std_errors, around, found.edge_probs)
    columns = {name: symmetrize(values) for name, values in columns.items()}
    away = (1 - columns["bagged"]) / columns["std_error"].clamp_min(LEAST_ERROR)
    p_values = torch.from_numpy(special.stdtr(found.degrees, -away.double().cpu().numpy())).to(away)
    acting = acting_words(columns["low"], columns["high"], p_values, model.graph.learned)
    return EdgeErrors(
        {**columns, "acting": acting.cpu()},
        uncertainty,
        [first, *_few_series(split, drawn), *_sentences(found.warnings)],
    )


def _columns(std_errors: Tensor, around: EdgeIntervals, bagged: Tensor) -> dict[str, Tensor]:
    return {"std_error": std_errors, "low": around.low, "high": around.high, "bagged": bagged}


def _few_series(split: Split, drawn: str) -> list[str]:
    return [FEW_SERIES] if split.train.series is not None and "within" in drawn else []


def _sentences(warnings: list[str]) -> list[str]:
    return [f"{line[0].upper()}{line[1:]}." for line in warnings]

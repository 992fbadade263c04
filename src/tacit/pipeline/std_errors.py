"""Standard errors of probabilities: from regressions of mean and variance where possible, otherwise by resampling."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from scipy import special
from torch import Tensor

from tacit.assessment.uncertainty import (
    MOST_PARAMETERS,
    QUICK_SANDWICH,
    EdgeIntervals,
    acting_words,
    adopt,
    bootstrap,
    estimate_acting,
)
from tacit.data import FEWEST_SERIES, Split, resampling_words
from tacit.edges import ACTS
from tacit.local import has_moment_estimate
from tacit.pipeline.state import Fit
from tacit.words import Finding, FindingKind, find

LEVEL = 0.95
LEAST_ERROR = 1e-9  # of a probability, in its test
WIDTH = 4.0  # standard errors in an interval of that level
# Standard errors, and fraction of the validation loss, by which the estimate from regressions may be worse. Standard
# errors alone are too small for a validation part of one or two series, which training also used to choose its epoch.
MUCH_WORSE, MUCH_LOSS = 3.0, 0.02


@dataclass(frozen=True, eq=False)
class EdgeErrors:
    """Columns of the edges by name, numbers for the record, and findings.

    ``rejected``  the estimate was not used, because the model would forecast worse with it
    """

    columns: dict[str, Tensor]
    uncertainty: dict[str, float | str]
    findings: list[Finding]
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
        return replace(self, columns=columns, findings=[find(FindingKind.NOT_ADOPTED, both=True), *self.findings])


def estimate_std_errors(fit: Fit, *, moments: bool, change: bool) -> EdgeErrors:
    """Return how often edges act, with standard errors; with ``change`` the model gets the better estimate.

    With ``moments`` the estimate comes from regressions of mean and variance, and resamples scale its errors.
    Otherwise, or if the model would forecast worse with this estimate, replicas are trained on resampled data.
    """
    options, model = fit.config.assessment, fit.result.model
    trained = not fit.result.late_fall and not model.observation.joint
    found = _from_moments(fit, change=change) if moments else None
    if options.replicas and trained and (found is None or found.rejected):
        resampled = _from_bootstrap(fit, change=change)
        found = resampled if found is None else resampled.holding(found)
    if found is None or found.rejected:
        return EdgeErrors({}, {}, [] if found is None else [find(FindingKind.NOT_ADOPTED)])
    return found


def _from_moments(fit: Fit, *, change: bool) -> EdgeErrors:
    """Return how often edges act; with ``change`` the model gets this estimate, unless it then forecasts worse."""
    model, split, replicas = fit.result.model, fit.split, fit.config.assessment.replicas
    found = estimate_acting(
        model,
        split.train,
        replicas=replicas,
        block=fit.block,
        seed=fit.seed,
        kept=fit.kept,
        switching=bool(fit.config.graph.regimes),
        earlier=fit.acting,
        likely=fit.likely,
    )
    adopted = change and adopt(model, found.parameters, split.validation, worse=MUCH_WORSE, tolerance=MUCH_LOSS)
    by_moments = has_moment_estimate(model)
    method = "regressions" if by_moments else "likelihood"
    uncertainty: dict[str, float | str] = {
        "method": method,
        "replicas": float(replicas if by_moments else 0),
        "inflation": float(found.inflation.median()) if len(found.inflation) else 1.0,
        "degrees": float(int(found.degrees)),
        "always": float(found.always.sum()),
        "adopted": float(adopted),
    }
    resampled = replicas > 0 and by_moments
    drawn = resampling_words(len(split.train), fit.block, split.train.series) if resampled else ""
    return EdgeErrors(
        _columns(found.std_errors, found.intervals(LEVEL), found.bagged)
        | {"acting": found.acting.cpu(), "gate_nats": found.nats, "together": found.together},
        uncertainty,
        _findings(split, found.warnings, resampled=resampled, method=method, resamples=replicas, drawn=drawn),
        rejected=change and not adopted,
    )


def _from_bootstrap(fit: Fit, *, change: bool) -> EdgeErrors:
    """Return the estimate of trained replicas; with ``change`` the model gets their mean if it predicts as well."""
    model, split, options = fit.result.model, fit.split, fit.config.assessment
    found = bootstrap(
        model,
        split.train,
        split.validation,
        fit.done,
        replicas=options.replicas,
        starts=options.starts or 0,
        block=fit.block,
        seed=fit.seed,
        compile=fit.compile,
        kept=fit.kept,
        untrained=fit.untrained if change else None,  # a finished fit does not have it
        sandwich_limit=MOST_PARAMETERS if options.thorough else QUICK_SANDWICH,
        on_progress=fit.listener.step,
    )
    adopted = change and adopt(model, found.parameters, split.validation)
    uncertainty: dict[str, float | str] = {
        "method": "bootstrap",
        "replicas": float(len(found.resampled)),
        "rho": found.rho,
        "degrees": float(found.degrees),
        "train_seconds": found.train_seconds,
        "adopted": float(adopted),
    }
    about: dict[str, Any] = {
        "method": "bootstrap",
        "resamples": len(found.resampled),
        "drawn": resampling_words(len(split.train), fit.block, split.train.series),
        "estimate": "mean" if adopted else "fit, worse mean" if change else "fit",
    }
    columns = _columns(found.std_errors, found.intervals(LEVEL), found.edge_probs)
    columns = {name: model.graph.symmetrize(values) for name, values in columns.items()}
    away = (1 - columns["bagged"]) / columns["std_error"].clamp_min(LEAST_ERROR)
    p_values = torch.from_numpy(special.stdtr(found.degrees, -away.double().cpu().numpy())).to(away)
    acting = acting_words(columns["low"], columns["high"], p_values, model.graph.learned)
    return EdgeErrors(
        {**columns, "acting": acting.cpu()},
        uncertainty,
        _findings(split, found.warnings, resampled=True, **about),
    )


def _columns(std_errors: Tensor, around: EdgeIntervals, bagged: Tensor) -> dict[str, Tensor]:
    return {"std_error": std_errors, "low": around.low, "high": around.high, "bagged": bagged}


def _findings(split: Split, warnings: list[str], *, resampled: bool, **about: Any) -> list[Finding]:
    """Return how the errors were computed, whether series are too few to be resampled, and the warnings."""
    found, series = [find(FindingKind.STD_ERRORS, **about)], split.train.series
    if resampled and series is not None and 1 < len(torch.unique(series)) < FEWEST_SERIES:
        found.append(find(FindingKind.FEW_SERIES))
    return [*found, *(find(FindingKind.FIT_WARNING, warning=line) for line in warnings)]

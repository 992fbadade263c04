"""Choice of the predictor by a short training of each kind on the edges that may exist.

The evidence for edges does not depend on the predictor, so it can be chosen by its forecasts: a linear filter that
starts from regressions, or a network shared by all nodes if there are enough pairs to train one.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from tacit.assessment.evaluation import forecast_scores, target_spreads
from tacit.config import FitConfig
from tacit.data import Pairs
from tacit.errors import InputError
from tacit.local import start_at_regression
from tacit.pipeline.building import build_model
from tacit.pipeline.choices import resolve_defaults
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.evidence import RegressionEvidence
from tacit.pipeline.parts import OwnParts
from tacit.randomness import generator_for
from tacit.registry import PREDICTORS
from tacit.training import CosineDecay, FitSettings, LatentGraphModel, Listener, fit

ENOUGH_FOR_A_NETWORK = 2000  # pairs
FILTER, NETWORK = "filter", "feedforward"
STEPS = 150  # of the short training
MOST_SCORED = 1000  # validation pairs
CLEARLY = 0.01  # fraction by which a network must lower the CRPS: the edges of a filter are easier to interpret


@dataclass(frozen=True, eq=False)
class KindChoice:
    """The chosen kind, the data with its window, and the reason."""

    kind: str
    dataset: Dataset
    reason: str


def choose_kind(
    config: FitConfig,
    dataset: Dataset,
    with_longer_window: Callable[[], Dataset],
    evidence: RegressionEvidence,
    own: OwnParts,
    seed: int,
    device: torch.device,
    listener: Listener,
) -> KindChoice:
    """Return the kind with the lower scaled CRPS on validation pairs; a network may have a longer window."""
    able = [kind for kind in (FILTER, NETWORK) if _uses_options(config, kind)]
    if NETWORK in able and FILTER not in able:
        return KindChoice(NETWORK, with_longer_window(), "it uses the options of [predictor]")
    few = not dataset.preparation.is_series or len(dataset.split.train) < ENOUGH_FOR_A_NETWORK
    if few or NETWORK not in able:
        return KindChoice(FILTER, dataset, "it has a weight per edge, so effects can have either sign")
    seen = {FILTER: dataset, NETWORK: with_longer_window()}
    found = {}
    for kind, data in seen.items():
        listener.stage(f"choice of predictor: {kind}")
        found[kind] = _short_score(config, kind, data, evidence, own, seed, device, listener)
    lower = 1 - found[NETWORK] / found[FILTER]
    said = f"{abs(lower):.1%} {'lower' if lower > 0 else 'higher'}"
    kind = NETWORK if lower > CLEARLY else FILTER
    reason = f"after a short training the CRPS of a network is {said} than that of a linear filter"
    return KindChoice(kind, seen[kind], reason)


def _uses_options(config: FitConfig, kind: str) -> bool:
    """Return whether a kind uses every option of [predictor] that was set."""
    try:
        config.predictor.require_used(PREDICTORS[kind])
    except InputError:
        return False
    return True


def _short_score(
    config: FitConfig,
    kind: str,
    dataset: Dataset,
    evidence: RegressionEvidence,
    own: OwnParts,
    seed: int,
    device: torch.device,
    listener: Listener,
) -> float:
    predictor = config.predictor.model_copy(update={"kind": kind})
    config = config.model_copy(update={"predictor": predictor})
    config, _ = resolve_defaults(config, dataset, evidence.rules, own, evidence, on_gpu=False)
    model = build_model(config, dataset, evidence.rules, own, seed, evidence.kept)
    split = dataset.split.to(device)
    model = model.to(device, split.train.inputs.dtype)
    validation = _part(split.validation, MOST_SCORED)
    if not start_at_regression(model, split.train):
        _train(model, split.train, validation, config, seed, listener)
    spread = target_spreads(split.train)
    generator = generator_for(seed, "kind", device)
    scores = forecast_scores(model, validation, generator=generator, spread=torch.ones_like(spread))
    known = torch.ones_like(validation.targets) if validation.observed is None else validation.observed
    known, crps = known.cpu(), scores.pair_crps.cpu() / spread.cpu()
    return float((crps * known).sum() / known.sum())


def _train(
    model: LatentGraphModel, train: Pairs, validation: Pairs, config: FitConfig, seed: int, listener: Listener
) -> None:
    training = config.training
    batch = training.batch_size or 1
    rate = training.predictor_learning_rate or training.learning_rate
    rows = torch.randperm(len(train), generator=generator_for(seed, "kind"))[: STEPS * batch // 2]
    part = train[rows.to(train.inputs.device)]
    settings = FitSettings(
        epochs=max(1, STEPS * batch // len(part)),
        batch_size=batch,
        schedule=CosineDecay(training.learning_rate),
        predictor_learning_rate=rate,
    )
    result = fit(model, part, validation, settings, seeds=(seed,), compile=False, on_progress=listener.step)
    if result.interrupted:
        raise KeyboardInterrupt


def _part(pairs: Pairs, most: int) -> Pairs:
    """Return evenly spaced pairs, at most ``most``."""
    return pairs[:: max(1, -(-len(pairs) // most))]

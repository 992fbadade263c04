"""Defaults that are chosen from the data, each with a reason, and the choice of the predictor by short trainings."""

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.assessment.evaluation import forecast_scores, target_spreads
from tacit.assessment.uncertainty import STARTS
from tacit.config import FitConfig
from tacit.data import Pairs, resamplable, usual_block
from tacit.errors import InputError, require
from tacit.graph import EdgeRules
from tacit.local import Dependence, is_affordable, start_at_regression
from tacit.pipeline.building import build_model
from tacit.pipeline.dataset import USUAL_WINDOW, Dataset
from tacit.pipeline.evidence import RegressionEvidence, evidence_method
from tacit.pipeline.observation_kinds import has_links
from tacit.pipeline.parts import MOST_EXPANDED, OwnParts
from tacit.pipeline.preparation import block_length
from tacit.predictors import PredictorKind
from tacit.randomness import generator_for
from tacit.registry import LOSSES, OBSERVATIONS, PREDICTORS
from tacit.training import CosineDecay, FitSettings, LatentGraphModel, Listener, fit
from tacit.words import Choice, choose

NEAR_STEPS = 400  # if training starts from regressions
FEWEST_EPOCHS, MOST_EPOCHS = 4, 200
COMPILE_FROM = 600  # steps; compiling takes as long as some hundred steps
REPLICAS, THOROUGH_REPLICAS, THOROUGH_STARTS = 16, 32, 8
NO_NOISE, PLAIN_NOISE = "none", "gaussian"


class _Open:
    """A config in which options are still open; each choice is made once, with a reason."""

    def __init__(self, config: FitConfig) -> None:
        self.config, self.choices = config, list[Choice]()

    def choose(self, section: str, key: str, value: Any, reason: str | None, **values: Any) -> Any:
        """Return the given value, or set ``value``; without a ``reason`` the choice is not reported."""
        given = getattr(getattr(self.config, section), key)
        if given not in (None, "auto"):
            return given
        changed = getattr(self.config, section).model_copy(update={key: value})
        self.config = self.config.model_copy(update={section: changed})
        if reason is not None:
            self.choices.append(choose(section if key == "kind" else key, value, reason, **values))
        return value


def resolve_defaults(
    config: FitConfig,
    dataset: Dataset,
    rules: EdgeRules,
    own: OwnParts,
    evidence: RegressionEvidence | None = None,
    *,
    on_gpu: bool,
) -> tuple[FitConfig, list[Choice]]:
    """Return the config with all options set, and the options that were chosen."""
    require(
        config.model.prior is None or LOSSES[config.model.loss].has_prior,
        f"prior in [model] requires a loss with a prior, got loss '{config.model.loss}'; set density in [graph] "
        "instead",
    )
    chosen, pairs = _Open(config), len(dataset.split.train)
    if dataset.preparation.is_series:
        window = dataset.preparation.sizes.window
        reason, about = "few rows" if window < USUAL_WINDOW else "usual", dict[str, Any]()
        if evidence is not None and window == evidence.window:
            reason, about = "lags of edges", {"columns": evidence.form.words()}
            if window > evidence.form.lags and window == evidence.lags_needed:
                reason, about = "all lags of rules", {}
        chosen.choose("data", "window", window, reason, **about)
    method = evidence_method(config, own)
    chosen.choose("graph", "evidence", method, "several edges" if evidence is None else "each node")
    layout, why, numbers = rules.usual_layout(config.graph.layout)
    layout = chosen.choose("graph", "layout", layout, why, **numbers)
    chosen.choose("predictor", "kind", "filter", "weight per edge")
    kind = own.kind(chosen.config.predictor)
    _choose_parts(chosen, dataset, rules, own, kind, layout)
    near = evidence is not None and bool(chosen.config.predictor.warm_start) and layout == "matrix"
    steps = _choose_training(chosen, pairs, kind, near=near)
    pays = not on_gpu and steps >= COMPILE_FROM and kind.compiles
    why = "recorded" if on_gpu else "long compiling" if not kind.compiles else "faster" if pays else "slower"
    chosen.choose("training", "compile", pays, why)
    large = layout == "table" and len(dataset.nodes) > MOST_EXPANDED
    quick = kind.quick or on_gpu or config.assessment.thorough
    _choose_assessment(chosen, dataset, quick=quick, large=large)
    return chosen.config, chosen.choices


def _choose_parts(
    chosen: _Open, dataset: Dataset, rules: EdgeRules, own: OwnParts, kind: PredictorKind, layout: str
) -> None:
    """Choose whether changes are predicted, the starting values, and the noise of the targets."""
    series = dataset.preparation.is_series
    links = has_links(chosen.config)
    changes = series and kind.predicts_change and not links
    reason = "output in other units" if links else "last value" if changes else "no last value"
    chosen.choose("predictor", "residual", changes, reason if "residual" in kind.uses else None)
    loss = chosen.config.model.build_loss(dataset.split.train.targets) if own.loss is None else own.loss
    if own.loss is not None:
        chosen.choices.append(choose("loss", type(loss).__name__, "object"))
    usual = OBSERVATIONS[kind.observation]
    if not usual.random:
        noise, reason = kind.observation, "graph only"
    elif not loss.learns_noise:
        noise, reason = NO_NOISE, "cannot learn noise"
    elif usual.follows_input and not series:
        noise, reason = PLAIN_NOISE, "level per node"
    else:
        noise, reason = kind.observation, "follows input" if usual.follows_input else "level per node"
    chosen.choose("observation", "kind", noise, reason, loss=type(loss).__name__)
    linear = kind.warm_start and chosen.config.predictor.activation == "linear"
    reason = "good start" if linear else "linear only"
    if linear and layout == "table":
        channels = kind.edge_channels(dataset.preparation.sizes, chosen.config.predictor)
        read = max(channels, dataset.preparation.sizes.in_channels)
        linear = is_affordable(rules.candidate_edges, channels, dataset.split.train, read)
        reason = "good start on candidates" if linear else "long regressions"
    chosen.choose("predictor", "warm_start", linear, reason if kind.warm_start else None)


def _choose_training(chosen: _Open, pairs: int, kind: PredictorKind, *, near: bool) -> int:
    """Choose epochs, batches and rates, and return the number of steps; fewer with a start ``near`` the solution."""
    usual = 128 if pairs >= 5000 else 64 if pairs >= 1000 else 32
    batch: int = chosen.choose("training", "batch_size", usual, "number of pairs")
    steps = max(1, pairs // min(batch, pairs))
    count = NEAR_STEPS if near else kind.steps
    wanted = min(MOST_EPOCHS, max(FEWEST_EPOCHS, math.ceil(count / steps)))
    epochs: int = chosen.choose(
        "training", "epochs", wanted, "steps", steps=min(count, wanted * steps), per_epoch=steps
    )
    patience = max(6, math.ceil(epochs / 3))
    chosen.choose("training", "patience", patience, "late epochs")
    chosen.choose("training", "predictor_learning_rate", kind.learning_rate, "usual rate")
    if near:
        chosen.choose("training", "replicas", 1, "from regressions")
    else:
        reason = "poor minima" if kind.replicas > 1 else "similar starts"
        chosen.choose("training", "replicas", kind.replicas, reason)
    return epochs * steps


def _choose_assessment(chosen: _Open, dataset: Dataset, *, quick: bool, large: bool) -> None:
    options, train = chosen.config.assessment, dataset.split.train
    usual, starts = (THOROUGH_REPLICAS, THOROUGH_STARTS) if options.thorough else (REPLICAS, STARTS)
    errors, reason = (usual, "resamples") if quick else (0, "long errors")
    if errors and options.block is None:  # a given block that is too long is refused later
        block = block_length(options, dataset.preparation, len(train))
        if not resamplable(len(train), block, train.series):
            errors, reason = 0, "few pairs"
    for holds, why in ((large, "many nodes"), (not options.enabled, "off")):
        if holds:
            errors, reason, quick = 0, why, False
    about = {"few pairs": {"pairs": len(train)}, "many nodes": {"limit": MOST_EXPANDED}}.get(reason, {})
    errors = chosen.choose("assessment", "bootstrap_replicas", errors, reason, **about)
    chosen.choose("assessment", "starts", starts if errors else 0, None)
    why = "gain" if quick else reason if reason in ("many nodes", "off") else "long controls"
    chosen.choose("assessment", "controls", quick, why, **(about if why == reason else {}))


ENOUGH_FOR_A_NETWORK = 2000  # pairs
FILTER, NETWORK = "filter", "feedforward"
STEPS = 150  # of the short training
MOST_SCORED = 1000  # validation pairs
# fraction by which a network must lower the CRPS, and in how many standard errors: the edges of a filter are easier to
# interpret and have intervals
CLEARLY, ERRORS = 0.01, 2.0


def settle_events(config: FitConfig) -> tuple[FitConfig, list[Choice]]:
    """Return the config with the options that counts of events leave no choice for, and the choices."""
    if not config.data.events:
        return config, []
    updates, choices = dict[str, Any](), list[Choice]()
    data: dict[str, Any] = {"cut_series": True}  # some types are only on a few units
    if config.data.background == ("auto",):
        data["background"] = ("none",)
        choices.append(choose("background", "none", "rows after events"))
    updates["data"] = config.data.model_copy(update=data)
    for section, kind, reason in (
        ("predictor", FILTER, "rates add up"),
        ("observation", "negative_binomial", "events in groups"),
    ):
        options = getattr(config, section)
        if options.kind == "auto":
            updates[section] = options.model_copy(update={"kind": kind})
            choices.append(choose(section, kind, reason))
    return config.model_copy(update=updates), choices


def choose_kind(
    config: FitConfig,
    dataset: Dataset,
    with_longer_window: Callable[[], Dataset],
    evidence: RegressionEvidence,
    own: OwnParts,
    seed: int,
    device: torch.device,
    listener: Listener,
) -> tuple[Choice, Dataset]:
    """Return the kind with the lower scaled CRPS on validation pairs, and its data; a network may see more steps."""
    able = [kind for kind in (FILTER, NETWORK) if _uses_options(config, kind)]
    if NETWORK in able and FILTER not in able:
        return choose("predictor", NETWORK, "own options"), with_longer_window()
    few = not dataset.preparation.is_series or len(dataset.split.train) < ENOUGH_FOR_A_NETWORK
    if few or NETWORK not in able:
        return choose("predictor", FILTER, "weight per edge"), dataset
    seen, crps = {FILTER: dataset, NETWORK: with_longer_window()}, {}
    places = [  # pairs with a longer window begin later, so rows are compared by their series and times
        {key: place for place, key in enumerate(_keys(data.split.validation))} for data in seen.values()
    ]
    rows = sorted(places[0].keys() & places[1].keys())
    step = max(1, -(-len(rows) // MOST_SCORED))
    rows = rows[::step]
    for (kind, data), of_kind in zip(seen.items(), places, strict=True):
        listener.stage(f"choice of predictor: {kind}")
        validation = data.split.validation[torch.tensor([of_kind[row] for row in rows])]
        crps[kind] = _short_scores(config, kind, data, validation, evidence, own, seed, device, listener)
    gains, total = crps[FILTER] - crps[NETWORK], float(crps[FILTER].sum())
    block = usual_block(len(rows), -(-dataset.preparation.reach // step))
    apart = (gains - gains.mean())[:, None]
    dependence = Dependence.of_rows(len(rows), block, torch.tensor([series for series, _ in rows]))
    lower, error = float(gains.sum()) / total, float(dependence.covariance(apart, apart)) ** 0.5 / total
    kind = NETWORK if lower > max(CLEARLY, ERRORS * error) else FILTER
    side, needs = "lower" if lower > 0 else "higher", CLEARLY if kind == FILTER and lower > 0 else None
    made = choose("predictor", kind, "short training", size=abs(lower), side=side, error=error, needs=needs)
    return made, seen[kind]


def _keys(pairs: Pairs) -> list[tuple[int, float]]:
    """Return the series and the time of each pair."""
    assert pairs.times is not None, "pairs of series have times"
    series = [0] * len(pairs) if pairs.series is None else pairs.series.tolist()
    return list(zip(series, pairs.times.tolist(), strict=True))


def _uses_options(config: FitConfig, kind: str) -> bool:
    """Return whether a kind uses every option of [predictor] that was set."""
    try:
        config.predictor.require_used(PREDICTORS[kind])
    except InputError:
        return False
    return True


def _short_scores(
    config: FitConfig,
    kind: str,
    dataset: Dataset,
    validation: Pairs,
    evidence: RegressionEvidence,
    own: OwnParts,
    seed: int,
    device: torch.device,
    listener: Listener,
) -> Float[Tensor, " pair"]:
    """Return the scaled CRPS of validation pairs after a short training, summed over nodes."""
    predictor = config.predictor.model_copy(update={"kind": kind})
    config = config.model_copy(update={"predictor": predictor})
    config, _ = resolve_defaults(config, dataset, evidence.rules, own, evidence, on_gpu=False)
    model = build_model(config, dataset, evidence.rules, own, seed, evidence.kept)
    split = dataset.split.to(device)
    model = model.to(device, split.train.inputs.dtype)
    validation = validation.to(device)
    if not start_at_regression(model, split.train):
        _train(model, split.train, validation, config, seed, listener)
    spread = target_spreads(split.train)
    generator = generator_for(seed, "kind", device)
    scores = forecast_scores(model, validation, generator=generator, spread=torch.ones_like(spread))
    known = torch.ones_like(validation.targets) if validation.observed is None else validation.observed
    known, crps = known.cpu(), scores.pair_crps.cpu() / spread.cpu()
    return (crps * known).sum((1, 2)).double()


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

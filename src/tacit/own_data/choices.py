"""What the user left open, chosen from the shape of the data, with the reason in words.

The figures behind the choices: docs/results (air-quality, dream4, gpvar).
"""

import math
from typing import Any

from tacit.config import FitConfig
from tacit.data.resampling import resamplable
from tacit.own_data.building import sent_lags
from tacit.own_data.layout import MOST_EXPANDED, usual_layout
from tacit.own_data.problem import Problem
from tacit.own_data.trust import block_length
from tacit.training import is_affordable

ENOUGH_FOR_A_NETWORK = 2000  # pairs
STEPS = 1500
FEWEST_EPOCHS, MOST_EPOCHS = 4, 200
COMPILE_FROM = 600  # steps; compiling takes as long as some hundred steps
RATES = {"filter": 0.01}  # of the predictor; networks take the other
NETWORK_RATE = 0.003
REPLICAS = 16
LONG_ERRORS = "would take several times the fit here; --std-errors 16 asks for them"
LONG_CONTROLS = "two more trainings; --set trust.controls=true asks for them"
LARGE = f"it needs all pairs of nodes, and there are more than {MOST_EXPANDED} nodes"
NOISE_LOSSES = ("energy", "mmd")  # those that can learn how large the noise of the targets is


def settle(config: FitConfig, problem: Problem, *, on_gpu: bool) -> tuple[FitConfig, list[str]]:
    """Return the config with nothing left open, and a sentence for each choice that was made."""
    pairs, series = len(problem.split.train), problem.preparation.is_series
    chosen: dict[str, dict[str, Any]] = {"data": {}, "graph": {}, "predictor": {}, "training": {}, "trust": {}}
    reasons = []

    def choose(section: str, key: str, value: Any, reason: str) -> Any:
        given = getattr(getattr(config, section), key)
        if given not in (None, "auto"):
            return given
        chosen[section][key] = value
        reasons.append(f"{key} = {_said(value)}: {reason}")
        return value

    if series:
        window = problem.preparation.sizes[0]
        choose("data", "window", window, "every lag costs weights, and the rows are few" if window < 12 else "usual")
    layout, reason = usual_layout(config.graph.layout, problem.rules)
    if problem.rules.candidates is None:
        chosen["graph"]["layout"] = layout  # there was nothing to choose
    else:
        layout = choose("graph", "layout", layout, reason)
    if not series:
        kind = choose("predictor", "kind", "convolution", "pairs without time: graph convolutions shared by the nodes")
    elif pairs < ENOUGH_FOR_A_NETWORK:
        reason = f"{pairs:,} training pairs are few for a network; a weight per edge finds relations of either sign"
        kind = choose("predictor", "kind", "filter", reason)
    else:
        reason = f"{pairs:,} training pairs are enough to learn how the past of a node is best read"
        kind = choose("predictor", "kind", "recurrent", reason)
    changes = series and kind != "convolution"
    reason = "the last value is a good start" if changes else "no last value to add to"
    choose("predictor", "residual", changes, reason)
    if config.model.loss not in NOISE_LOSSES:
        noise, reason = "none", f"the loss {config.model.loss} cannot learn how large it is"
    elif series and kind != "filter":
        noise, reason = "input", "how sure a prediction can be changes with the situation"
    else:
        noise, reason = "node", "one size per node"
    choose("predictor", "noise", noise, reason)
    linear = kind == "filter" and config.predictor.activation == "linear"
    reason = "a regression points to the edges, and has no bad basins" if linear else "for linear filters only"
    if linear and layout == "table":
        linear = is_affordable(problem.rules.slots, sent_lags(problem.preparation.sizes))
        reason = f"{reason}; of each node on its candidates" if linear else "regressions on the candidates take long"
    choose("predictor", "warm_start", linear, reason)
    batch = choose("training", "batch_size", 128 if pairs >= 5000 else 64 if pairs >= 1000 else 32, "by their number")
    steps = max(1, pairs // min(batch, pairs))
    wanted = min(MOST_EPOCHS, max(FEWEST_EPOCHS, math.ceil(STEPS / steps)))
    epochs = choose("training", "epochs", wanted, f"about {STEPS:,} steps, {steps} an epoch")
    patience = max(6, math.ceil(epochs / 3))
    choose("training", "patience", patience, "steps are large at first, and the best often comes late")
    rate = RATES.get(kind, NETWORK_RATE)
    choose("training", "predictor_learning_rate", rate, "a filter is simple" if kind in RATES else "usual for networks")
    if kind in ("filter", "convolution"):
        replicas, reason = 4, "several starts, because some end badly; the worse half stops early"
    else:  # on the air of Beijing three starts were within 0.4% of each other in CRPS
        replicas, reason = 1, "starts of a network that predicts changes end alike"
    choose("training", "replicas", replicas, reason)
    pays = not on_gpu and epochs * steps >= COMPILE_FROM and kind in ("filter", "recurrent", "convolution")
    choose("training", "compile", pays, "pays for this many steps" if pays else "would take longer than it saves")
    quick = kind in ("filter", "convolution") or on_gpu
    errors, reason = (REPLICAS, "replicas on resampled data") if quick else (0, LONG_ERRORS)
    wished = config.trust.block is not None  # then a block that is too long is a mistake, and is refused
    if errors and not wished and not resamplable(pairs, block_length(config, problem.preparation, pairs)):
        errors, reason = 0, f"{pairs:,} training pairs are too few to resample"
    large = layout == "table" and len(problem.nodes) > MOST_EXPANDED
    choose("trust", "std_errors", 0 if large else errors, LARGE if large else reason)
    reason = LARGE if large else "what the graph is worth" if quick else LONG_CONTROLS
    choose("trust", "controls", quick and not large, reason)
    sections = {name: getattr(config, name).model_copy(update=values) for name, values in chosen.items()}
    return config.model_copy(update=sections), reasons


def _said(value: Any) -> str:
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)

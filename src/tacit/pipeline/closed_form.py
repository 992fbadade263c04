"""The fit of a linear filter without training: from regressions of mean and variance, or from the likelihood.

With Gaussian noise, regressions on the edges that may exist give the weights, and the variance of their residuals gives
probabilities and noise (:mod:`tacit.local.moments`). With other observation models, all come from the
maximum of the likelihood (:mod:`tacit.local.gates`). If the model then forecasts worse than with
edges that always act, its assumptions do not hold, and it is trained by gradients instead.
"""

import copy
import math
import time
from collections.abc import Sequence

import torch

from tacit.assessment.uncertainty import (
    Acting,
    adopt,
    estimate_acting,
    has_direct_estimate,
    mean_loss,
)
from tacit.config import FitConfig, TrainingOptions
from tacit.data import Split
from tacit.errors import require
from tacit.local import start_at_regression, steps_read
from tacit.observation import GaussianNoise
from tacit.pipeline.std_errors import MUCH_LOSS, MUCH_WORSE
from tacit.shapes import EdgeMask
from tacit.training import FitResult, LatentGraphModel, Replica
from tacit.words import Choice, choose

ALWAYS = 1 - 1e-6
TOO_LARGE = (
    "simultaneous in [graph] requires regressions that take about half a minute, got larger ones; use fewer nodes, "
    "or a shorter window"
)
OTHERWISE = "; set any option of [training] to train by gradients"


def in_closed_form(choices: Sequence[Choice], model: LatentGraphModel) -> list[Choice]:
    """Return the choices without those of the training, which did not take place."""
    none = {*TrainingOptions.model_fields} | ({"bootstrap_replicas"} if not model.observation.by_moments else set())
    method = "closed form" if model.observation.by_moments else "likelihood"
    made = choose("training", method, method, more=OTHERWISE * (not model.observation.joint))
    return [*(one for one in choices if one.option not in none), made]


def has_closed_form(model: LatentGraphModel, config: FitConfig) -> bool:
    """Return whether the model is linear with one noise level per node, and no training option was set."""
    open_training = config.training.model_copy(update={"compile": None}) == TrainingOptions()
    one_size = isinstance(model.observation, GaussianNoise) or not model.observation.by_moments
    return open_training and has_direct_estimate(model) and one_size


def fit_closed_form(
    model: LatentGraphModel,
    split: Split,
    seed: int,
    *,
    block: int = 1,
    assessed: bool = True,
    switching: bool = False,
    intervals: bool = False,
    likely: EdgeMask | None = None,
    always: bool = False,
) -> tuple[FitResult, Acting] | None:
    """Return the fit of a copy of the model, and how often edges act; None if regressions do not give one.

    ``block`` is the number of neighbouring pairs that may be correlated. Warnings are included unless the fit is
    ``assessed``: the assessment then reports them. ``switching`` means that regimes are fitted next. ``intervals`` are
    computed if the assessment uses them. Gates of edges that are ``likely`` to exist may be common. No gates are tested
    if edges ``always`` act.
    """
    start, model = time.perf_counter(), copy.deepcopy(model)
    graph = model.graph
    with torch.no_grad():
        near_one = graph.link.raw(torch.full_like(graph.raw, ALWAYS))
        graph.raw.copy_(torch.where(graph.learned, near_one, graph.raw))
    read, window = steps_read(model, split.train)
    joint = model.observation.joint  # only regressions can fit it
    if (read < window and not joint) or not start_at_regression(model, split.train):
        require(not joint, TOO_LARGE)
        return None
    found = estimate_acting(
        model,
        split.train,
        replicas=0,
        block=block,
        intervals=intervals,
        switching=switching,
        likely=likely,
        always=always,
    )
    worse = math.inf if always else MUCH_WORSE  # without gates there is no assumption on them that may not hold
    adopted = adopt(model, found.parameters, split.validation, worse=worse, tolerance=MUCH_LOSS)
    if not adopted and not joint:
        return None
    state = {name: value.detach().clone() for name, value in model.state_dict().items()}
    loss = mean_loss(model, split.validation, state)
    result = FitResult(
        model,
        best=0,
        replicas=[Replica(seed, loss, None)],
        history=[],
        parameters={name: value.detach()[None] for name, value in model.named_parameters()},
        steps=0,
        train_seconds=time.perf_counter() - start,
        compile_seconds=0.0,
        interrupted=False,
        warnings=[] if assessed else found.warnings,
    )
    return result, found

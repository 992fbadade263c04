"""Short trainings from the end of a fit, each without some edges, and their losses.

All trainings use the same batches and the same random numbers, so the randomness of training largely cancels in the
difference between two of them.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from tacit.data import Pairs
from tacit.graph import Context
from tacit.randomness import draw_uniforms, generator_for
from tacit.shapes import EdgeMask, UnitLoss
from tacit.training import CosineDecay, FitSettings, LatentGraphModel, Progress, fit

AVERAGED = 0.5  # last share of the steps that is averaged


class Course(NamedTuple):
    """The course of a short training: number of steps, and initial rate relative to that of the fit."""

    steps: int
    rate: float


# After the removal of a needed edge the other parameters must be refitted. After the removal of edges without effect
# they are nearly optimal, and the noise of training must be small: on the 12-node system (28,000 pairs, edges at a rate
# of 0.05) the edge probabilities were off by .0049 after 400 steps at half the rate, by .0035 at a fifth, by .0030
# after 800.
SEARCH, SETTLE = Course(128, 0.5), Course(800, 0.2)
COMPILE_FROM = 600  # steps of all replicas; compiling takes as long as a few hundred steps
PAIRS_AT_ONCE = 128
Removed = Bool[Tensor, "replica row slot"]


def without_prior(model: LatentGraphModel) -> LatentGraphModel:
    """Return a copy without a penalty on edges: the evidence uses its own prior, and the loss is that of the data."""
    copied = copy.deepcopy(model)
    copied.prior = None
    return copied


def without_edges(model: LatentGraphModel, removed: EdgeMask) -> LatentGraphModel:
    """Return a copy of the model in which some edges are fixed at 0."""
    copied = copy.deepcopy(model)
    graph = copied.graph
    removed = removed.to(graph.fixed.device)
    graph.load_state_dict(
        {"fixed": graph.fixed | removed, "fixed_probs": torch.where(removed, 0.0, graph.fixed_probs)}, strict=False
    )
    return copied


def with_edges(model: LatentGraphModel, inserted: EdgeMask, prob: float) -> LatentGraphModel:
    """Return a copy of the model in which some edges are learned again, starting at a given probability."""
    copied = copy.deepcopy(model)
    graph = copied.graph
    raw = torch.where(inserted, graph.link.raw(torch.full_like(graph.fixed_probs, prob)), graph.raw.detach())
    graph.load_state_dict({"fixed": graph.fixed & ~inserted, graph.link.parameter: raw}, strict=False)
    return copied


def retrain_without(
    model: LatentGraphModel,
    train: Pairs,
    validation: Pairs,
    settings: FitSettings,
    removed: Removed,
    *,
    course: Course = SEARCH,
    seed: int = 0,
    compile: bool = True,
    on_progress: Callable[[Progress], None] | None = None,
) -> list[LatentGraphModel]:
    """Return a model for each set of edges, trained from the current one with these edges fixed at 0."""
    graph = model.graph
    removed = removed.to(graph.fixed.device)
    held = {
        "graph.fixed": graph.fixed | removed,
        "graph.fixed_probs": torch.where(removed, 0.0, graph.fixed_probs),
    }
    result = fit(
        copy.deepcopy(model),
        train,
        validation,
        short(settings, len(train), course),
        seeds=[seed] * len(removed),
        compile=compile and len(removed) * course.steps >= COMPILE_FROM,
        start_at_model=True,
        constants=held,
        on_progress=on_progress,
    )
    if result.interrupted:
        raise KeyboardInterrupt
    models = []
    for replica, edges in enumerate(removed):
        trained = without_edges(model, edges)
        trained.load_state_dict({name: stack[replica] for name, stack in result.parameters.items()}, strict=False)
        models.append(trained)
    return models


def keep_edges(
    model: LatentGraphModel,
    train: Pairs,
    validation: Pairs,
    settings: FitSettings,
    kept: EdgeMask,
    *,
    seed: int = 0,
    compile: bool = True,
    on_progress: Callable[[Progress], None] | None = None,
) -> LatentGraphModel:
    """Return the model with only some of its edges, the others fixed at 0, and train it further."""
    removed = (model.graph.learned & ~kept.to(model.graph.fixed.device))[None]
    (trained,) = retrain_without(
        model, train, validation, settings, removed, course=SETTLE, seed=seed, compile=compile, on_progress=on_progress
    )
    return trained


def short(settings: FitSettings, num_pairs: int, course: Course) -> FitSettings:
    """Return the settings of a short training of at least two epochs."""
    per_epoch = max(1, num_pairs // min(settings.batch_size, num_pairs))
    return replace(
        settings,
        epochs=max(2, round(course.steps / per_epoch)),
        schedule=CosineDecay(course.rate * settings.schedule(0, settings.epochs)),
        average_fraction=AVERAGED,
        halve_after=(),
        patience=None,
    )


@torch.no_grad()
def unit_losses(model: LatentGraphModel, pairs: Pairs, *, num_graphs: int, seed: int) -> UnitLoss:
    """Return the loss of each pair and unit; compared models use the same random numbers."""
    generator = generator_for(seed, "removal", pairs.inputs.device)
    loss, graph, channels = model.loss.with_baseline("none"), model.graph, model.noise_channels
    rows, columns = graph.uniforms_shape
    losses = []
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        some = pairs[start : start + PAIRS_AT_ONCE]
        shape = (len(some), num_graphs, max(rows, graph.num_nodes if channels else 0), columns + channels)
        uniforms = draw_uniforms(*shape, generator=generator, dtype=some.inputs.dtype).to(some.inputs.device)
        graphs = model.graph_for(some.inputs, Context.of(some)).sample_from(uniforms[..., :rows, :columns])
        described = model.describe(some.inputs, graph.as_operator(graphs))
        if channels:
            described = model.observation.sample(described, uniforms[..., : graph.num_nodes, columns:])
        losses.append(loss(described, some.targets, some.observed).value)
    return torch.cat(losses)

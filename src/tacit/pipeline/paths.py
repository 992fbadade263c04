r"""Forecast paths: samples of the next step are fed back as inputs of the steps after it.

$$y^s_{t+k} \sim p\big(y \mid f_\psi(x^s_{t+k-h}, A^s_k), x^s_{t+k-h}\big), \qquad A^s_k \sim P_\theta, \qquad
  k = 1, 2, \dots$$

$x^s_{t+k-h}$ is the window that ends $h$ steps (the horizon) before the target: observed rows up to the origin $t$, and
after it the samples of path $s$. Every path draws a new graph at every step, as in training, and its own noise. At the
steps $k \le h$ all inputs are observed, so the first step is the one-step forecast. Covariates and waves are those of
the time of each step. A level follows the samples of its path, so it continues as a random walk.

For $h > 1$ the noise of neighbouring steps is drawn independently, because the model has no correlated noise.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from tacit.assessment.evaluation import PointName, SharedDraws, discrete_nodes, point_prediction
from tacit.errors import require_int
from tacit.graph import Context, require_memory
from tacit.pipeline.class_forecasts import ClassForecasts
from tacit.pipeline.fitted import Fitted
from tacit.pipeline.origins import Origins
from tacit.randomness import generator_for
from tacit.shapes import Samples, TargetParams
from tacit.training import LatentGraphModel

NUM_PATHS = 1000
MOST_NUMBERS = 2**24  # of the paths that are sampled together: 64 MB, and a few times as much in temporary memory
Recent = Float[Tensor, "origin path row node feature"]


class PathStep(NamedTuple):
    """One step of all paths: the parameters of each target under its graph, its mean and its sample."""

    described: TargetParams
    means: Samples
    values: Samples


class PathPoints(NamedTuple):
    """Scaled point forecasts of every step, and probabilities of classes if requested."""

    points: Float[Tensor, "origin step node channel point"]
    probs: Float[Tensor, "origin step node channel class"] | None


@torch.no_grad()
def path_steps(
    model: LatentGraphModel, origins: Origins, num_paths: int, *, seed: int, noise: Generator | None = None
) -> Iterator[PathStep]:
    """Yield the steps of ``num_paths`` paths from each origin.

    All origins share the graphs and the noise of each step, so that the forecast from one origin does not depend on the
    others. With a generator ``noise`` every path has its own noise instead.
    """
    device = model.graph.raw.device
    recent, levels = origins.history[:, None].to(device), origins.levels[:, None].to(device)  # one path until fed back
    rates = origins.rates.to(recent)
    for step in range(origins.steps):
        draws = SharedDraws(model, num_paths, generator_for(seed, _purpose(step), device))
        windows = recent[:, : 1 if step < origins.horizon else None, : origins.window]
        inputs = windows.transpose(2, 3).flatten(3)  # (origin, path, node, window * feature)
        if origins.known.shape[3]:
            known = origins.known[:, None, step].to(recent).repeat(1, inputs.shape[1], 1, 1)
            known[..., list(origins.level_places)] = levels[:, : inputs.shape[1], 0]
            inputs = torch.cat([inputs, known], 3)
        described = draws.described_paths(inputs, _context(origins, inputs, step))
        values = draws.with_noise(described) if noise is None else model.observation.draw(described, generator=noise)
        yield PathStep(described, model.observation.mean(described), values)
        if step < origins.steps - origins.horizon:  # the sample becomes an input, observed
            flags = values.new_ones(*values.shape[:3], recent.shape[4] - values.shape[3])
            row = torch.cat([values, flags], -1)[:, :, None]
            recent = torch.cat([recent.expand(-1, num_paths, -1, -1, -1)[:, :, 1:], row], 2)
            newest = levels[:, :, -1]
            newest = newest + rates * (values[..., :1] - newest)
            levels = torch.cat([levels.expand(-1, num_paths, -1, -1, -1)[:, :, 1:], newest[:, :, None]], 2)
        else:
            recent, levels = recent[:, :, 1:], levels[:, :, 1:]


def origins_at_once(model: LatentGraphModel, origins: Origins, num_paths: int) -> int:
    """Return the number of origins that are sampled together, which limits the memory."""
    rows, columns = model.graph.edge_shape
    each = num_paths * (origins.history[0].numel() + 2 * rows * columns)
    return max(1, MOST_NUMBERS // each)


@torch.no_grad()
def path_points(
    fitted: Fitted,
    origins: Origins,
    points: tuple[PointName | float, ...],
    *,
    num_paths: int = NUM_PATHS,
    seed: int,
    classes: ClassForecasts | None = None,
) -> PathPoints:
    """Return scaled means, medians or quantiles of every step, and the probabilities of ``classes``."""
    observation = fitted.model.observation
    parts, masses, discrete = [], [], discrete_nodes(observation, len(fitted.nodes))
    for chunk in _chunks(fitted, origins, num_paths):
        steps, probs = [], []
        for described, means, values in path_steps(fitted.model, chunk, num_paths, seed=seed):
            found = [
                means.mean(1) if point == "mean" else point_prediction(values, point, discrete) for point in points
            ]
            steps.append(torch.stack(found, -1).cpu())
            probs += [] if classes is None else [classes.probs(observation, described)]
        parts.append(torch.stack(steps, 1))
        masses += [torch.stack(probs, 1)] if probs else []
    return PathPoints(torch.cat(parts), torch.cat(masses) if masses else None)


@torch.no_grad()
def drawn_paths(
    fitted: Fitted, origins: Origins, num_samples: int, *, seed: int
) -> Float[Tensor, "origin step node channel sample"]:
    """Return scaled sample paths, each with its own noise."""
    noise = generator_for(seed, "path noise", fitted.model.graph.raw.device)
    parts = []
    for chunk in _chunks(fitted, origins, num_samples):
        steps = path_steps(fitted.model, chunk, num_samples, seed=seed, noise=noise)
        parts.append(torch.stack([step.values.movedim(1, -1).cpu() for step in steps], 1))
    return torch.cat(parts)


def _chunks(fitted: Fitted, origins: Origins, num_paths: int) -> Iterator[Origins]:
    require_int("num_paths", num_paths)
    model = fitted.model
    rows, columns = model.graph.edge_shape
    each = 4 * num_paths * (2 * origins.history[0].numel() + 6 * rows * columns)
    require_memory(each, model.graph.raw.device, f"{num_paths:,} paths", "lower the number of graphs or samples")
    size = origins_at_once(model, origins, num_paths)
    for start in range(0, len(origins), size):
        yield origins[start : start + size]


def _purpose(step: int) -> str:
    """Return the name of the random numbers of a step; the first step uses those of a one-step forecast."""
    return "predict" if step == 0 else f"predict, step {step + 1}"


def _context(origins: Origins, inputs: Float[Tensor, "origin path node in_channel"], step: int) -> Context:
    """Return the context of the graphs, a row for each origin and path."""
    paths = inputs.shape[1]
    known = origins.covariates[:, step].to(inputs) if origins.covariates.shape[2] else None  # of the newest input row
    shared, series, times = (
        None if part is None else part.to(inputs.device).repeat_interleave(paths, 0)
        for part in (known, origins.series, origins.time_numbers[:, step])
    )
    return Context(inputs.flatten(0, 1), shared, series, times)

r"""What happens if: the response of all nodes over time to a change of some.

$$r_{ik} = E[y_{i,t+k} \mid \text{change at } t] - E[y_{i,t+k}]$$

A ``pulse`` adds a number to the value of a node at the time $t$ and leaves it to itself afterwards (the impulse
response); a ``step`` keeps the node that far from the path that it would have taken; a ``value`` sets it from $t$ on.
A node that is kept or set does not respond to the others.

Where means are linear (:class:`~tacit.local.MeanEquations`), noise and gates cancel in the difference, and the
response is exact: $r_{ik} = u_i^\top r_i + \sum_j \beta_{ij}^\top r_j$ over the lags of each node. It is computed for
draws of the edges and of the weights, whose quantiles are the interval. The terms of the sum are the parts of the
response that arrive by each direct edge.

Other models, such as networks, are sampled: paths with and without the change have the same graphs and the same noise.
The response then depends on the values at $t$, and the interval is over graphs whose edges are drawn with ``exists``.
"""

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.data import level_places
from tacit.errors import InputError, did_you_mean, require, require_int
from tacit.graph import BernoulliGraph
from tacit.local import CERTAIN, LEAST, MeanEquations, has_linear_mean, own_columns
from tacit.pipeline.fitted import Fitted
from tacit.pipeline.forecasts import in_units, require_memory_for_table
from tacit.pipeline.observation_kinds import has_links, require_possible
from tacit.pipeline.paths import (
    NUM_PATHS,
    Origins,
    PathInputs,
    joined_origins,
    path_origins,
    path_points,
    path_steps,
)
from tacit.pipeline.preparation import SeriesPreparation
from tacit.pipeline.sources import Source
from tacit.predictors import GraphFilter, SimultaneousFilter, sources_first
from tacit.randomness import generator_for
from tacit.training import LatentGraphModel
from tacit.words import condition, interval_words

if TYPE_CHECKING:
    import pandas as pd

Shape = Literal["pulse", "step", "value"]
STEPS, LEVEL = 24, 0.9
NUM_DRAWS = 1000
MOST_NUMBERS = 2**24  # of the draws that are computed together
GRAPHS, PATHS_OF_A_GRAPH = 40, 200  # of a sampled model with uncertain edges
Responses = Float[Tensor, "draw step node"]


@dataclass(frozen=True, eq=False)
class Change:
    """Some nodes and their changes, scaled: a row per step from 0 on, of which a pulse uses the first only."""

    nodes: list[int]
    sizes: Float[Tensor, "step changed"]
    shape: Shape

    def at(self, step: int) -> list[int]:
        """Return the nodes whose values are set at a step."""
        return self.nodes if self.shape != "pulse" or step == 0 else []


def effect_table(
    fitted: Fitted,
    changes: Mapping[str, float],
    source: Source | None = None,
    *,
    steps: int = STEPS,
    shape: str = "pulse",
    at: Any = None,
    level: float = LEVEL,
    seed: int = 0,
) -> "pd.DataFrame":
    """Return a row per step and node: the response and its interval; with data also the paths without and with it.

    ``changes``  node -> number: what is added, or the value with ``shape = "value"``
    ``source``   data whose last observed rows, or the rows at the time ``at``, are changed

    ``attrs`` has the ``condition`` under which it is an intervention, what the ``interval`` contains, and of the
    ``edges`` the parts of the response that arrive by each of them.
    """
    import pandas as pd

    preparation = _require(fitted, changes, steps, shape, level)
    linear = fitted.equations
    if source is None:
        for needed, what in (
            (at is not None, "at"),
            (shape == "value", "shape='value'"),
            (linear is None and not has_linear_mean(fitted.model), "an effect in a model whose means are not linear"),
            (preparation.scaling.by != "all", "an effect in a run whose series have units of their own"),
        ):
            require(not needed, f"{what} requires data, which a run does not keep; pass the table (DATA)")
        require(
            linear is not None,
            "an effect without data requires the covariances of the weights, and this run has none: it is an older "
            "one, has too few rows or is too large; fit again or pass the table (DATA)",
        )
    require_memory_for_table((steps + 1) * len(fitted.nodes), NUM_DRAWS)
    origins = None if source is None else path_origins(fitted, source, steps, at, name="at")
    frames, parts = [], list[dict[str, Any]]()
    shared: dict[bytes, tuple[Responses, Tensor]] = {}
    for place in range(1 if origins is None else len(origins)):
        one = None if origins is None else origins[place : place + 1]
        found, notes = _of_origin(fitted, preparation, changes, one, steps, shape, level, seed, shared)
        keys = {}
        if one is not None and one.series_names is not None:
            keys["series"] = one.series_names[0]
        frames.append(pd.DataFrame({**keys, **found}))
        parts += [{**keys, **line} for line in notes]
    evidence, signs = fitted.record.evidence, fitted.record.evidence.get("signs")
    uncertain = int(linear.uncertain.sum()) if linear is not None else int(_uncertain(fitted).sum())
    frame = pd.concat(frames, ignore_index=True)
    frame.attrs = {
        "condition": condition(
            list(changes),
            signs,
            tested=evidence.get("signs_tested"),
            assessed=bool(evidence),
            within=fitted.config.graph.simultaneous,
        ),
        "interval": interval_words(level, uncertain, weights=linear is not None, tested=bool(evidence)),
        "edges": parts,
        "notes": [] if origins is None else list(origins.notes),
    }
    return frame


def _require(fitted: Fitted, changes: Mapping[str, float], steps: int, shape: str, level: float) -> SeriesPreparation:
    """Refuse arguments and runs for which there is no effect over time."""
    preparation, predictor = fitted.preparation, fitted.model.predictor
    if not isinstance(preparation, SeriesPreparation):
        raise InputError(
            "an effect over time requires a run of a series, got a run of pairs, which have no time steps; fit a "
            "table of times"
        )
    names = preparation.target_names
    require(
        len(preparation.scaling.variables) == 1,
        f"an effect requires one variable per node, got {', '.join(names)}; fit one of them",
    )
    require_int("steps", steps)
    require(
        preparation.horizon == 1,
        f"an effect requires a horizon of 1, got {preparation.horizon}, whose model has no shorter effects; fit with "
        "horizon 1",
    )
    require(shape in get_args(Shape), f"shape must be one of {', '.join(get_args(Shape))}, got {shape!r}; use 'pulse'")
    number = isinstance(level, int | float | np.number) and not isinstance(level, bool)
    require(number and 0 < level < 1, f"level must be a number between 0 and 1, got {level!r}; pass for example 0.9")
    require(bool(changes), "changes must name at least one node, got none; pass for example {'creek': 1.0}")
    for node, size in changes.items():
        if node not in fitted.nodes:
            raise InputError(f"there is no node {node!r}{did_you_mean(str(node), fitted.nodes)}")
        number = isinstance(size, int | float | np.number) and not isinstance(size, bool)
        require(number and math.isfinite(size), f"the change of {node} must be a finite number, got {size!r}; pass 1.0")
        require(size != 0 or shape == "value", f"the change of {node} must not be 0, got {size!r}; pass 1.0")
    if isinstance(predictor, SimultaneousFilter) and predictor.within_open.any():
        target, source = predictor.within_open.nonzero()[0].tolist()
        raise InputError(
            f"an effect requires a direction for every edge within a step, and that between {fitted.nodes[source]} and "
            f"{fitted.nodes[target]} is open; give one of them in a rule, and fit again"
        )
    return preparation


def _of_origin(
    fitted: Fitted,
    preparation: SeriesPreparation,
    changes: Mapping[str, float],
    origin: Origins | None,
    steps: int,
    shape: str,
    level: float,
    seed: int,
    shared: dict[bytes, tuple[Responses, Tensor]],
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the columns of one origin, and the parts of the responses that arrive by each edge.

    ``shared``  the linear responses of earlier origins by their changes: they are the same for the same change
    """
    nodes, unit = fitted.nodes, torch.from_numpy(preparation.scaling.deviation[:, 0])
    if origin is not None and origin.units is not None and origin.series is not None:
        unit = origin.units.spread(origin.series)[0, :, 0]
    places = [nodes.index(node) for node in changes]
    given = torch.tensor([float(size) for size in changes.values()], dtype=torch.float64)
    kind: Shape = shape  # type: ignore[assignment]  # it is checked
    without = None if origin is None else _path_without(fitted, origin, seed)
    if shape != "value":
        sizes = (given / unit[places]).expand(steps + 1, -1)
        if without is not None and has_links(fitted.config):
            for node, value in zip(changes, (without[0, places] + given).tolist(), strict=True):
                require_possible(fitted.config, tuple(nodes), node, round(value, 4))  # scaled in single precision
    else:
        assert without is not None
        for node, value in changes.items():
            require_possible(fitted.config, tuple(nodes), node, float(value))
        sizes = (given - without[:, places]) / unit[places]
    change = Change(places, sizes, kind)
    if fitted.equations is not None:
        key = sizes.numpy().tobytes()
        if key not in shared:
            shared.clear()  # one at a time: draws are large
            shared[key] = linear_responses(fitted, fitted.equations, change, steps, seed)
        draws, arriving = shared[key]
    else:
        assert origin is not None
        draws, arriving = _sampled_responses(fitted, origin, change, seed), None
    response = draws.mean(0) * unit  # (step, node)
    said = ", ".join(f"{node}: {size:g}" for node, size in changes.items())
    require(
        bool(response.isfinite().all()),
        f"the responses to a change must be finite, got {said}, whose responses are not; pass a smaller "
        "change or fewer steps",
    )
    ends = torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=torch.float64)
    low, high = torch.full((2, *response.shape), torch.nan)
    if len(draws) > 1:
        low, high = torch.quantile(draws * unit, ends, dim=0)
    columns: dict[str, Any] = {}
    if origin is not None:
        columns["time"] = np.concatenate([origin.origin_times, origin.times[0]]).repeat(len(nodes))
    columns["step"] = np.repeat(np.arange(steps + 1), len(nodes))
    columns["node"] = np.tile(np.array(nodes, dtype=object), steps + 1)
    columns |= {"response": response, "low": torch.minimum(low, response), "high": torch.maximum(high, response)}
    if without is not None:
        columns |= {"without": without, "with": without + response}
    columns = {name: value.flatten().numpy() if isinstance(value, Tensor) else value for name, value in columns.items()}
    parts = [] if arriving is None else _parts(fitted, change, arriving * unit[_targets(fitted)])
    return columns, parts


def _path_without(fitted: Fitted, origin: Origins, seed: int) -> Float[Tensor, "step node"]:
    """Return the last value of each node and the mean of its path, in the units of the data."""
    path = path_points(fitted, origin, ("mean",), seed=seed).points[0, :, :, 0, 0]  # (step, node)
    scaled = torch.cat([origin.history[0, -1:, :, 0].to(path), path])
    return in_units(fitted, scaled[None, :, :, None], origin)[0, :, :, 0].double()


def linear_responses(
    fitted: Fitted, equations: MeanEquations, change: Change, steps: int, seed: int
) -> tuple[Responses, Float[Tensor, "step term"]]:
    """Return the scaled responses under draws of the equations, and the mean parts of edges and of own pasts."""
    predictor, (nodes, _) = fitted.model.predictor, equations.own.shape
    assert isinstance(predictor, GraphFilter)
    generator = generator_for(seed, "effect")
    own, edges = equations.draw(NUM_DRAWS, generator)
    chunk = max(1, MOST_NUMBERS // max(1, edges[0].numel() + own[0].numel()))
    found, arriving = [], own.new_zeros(steps + 1, len(equations.source) + nodes)
    for start in range(0, len(own), chunk):
        some = own[start : start + chunk], edges[start : start + chunk]
        responses, terms = _recursion(fitted, predictor, equations, *some, change, steps)
        found.append(responses)
        arriving += terms / len(own)
    return torch.cat(found), arriving


def _recursion(
    fitted: Fitted,
    predictor: GraphFilter,
    equations: MeanEquations,
    own: Float[Tensor, "draw node column"],
    edges: Float[Tensor, "draw edge sent"],
    change: Change,
    steps: int,
) -> tuple[Responses, Float[Tensor, "step term"]]:
    """Return the responses of some draws, and the sum over them of the terms of each step."""
    lags, columns, target = predictor.edge_weights.shape[2], own_columns(predictor.layout), equations.target
    paths = PathInputs(_nothing(fitted, steps, own.dtype), torch.device("cpu"), differences=True)
    order = sources_first(predictor.within_allowed) if isinstance(predictor, SimultaneousFilter) else []
    responses, totals = [], []
    for step in range(steps + 1):
        terms = own.new_zeros(len(own), len(target) + own.shape[1])
        if step:
            inputs = paths.at(step - 1)[0]  # (draw, node, in_channel)
            parts = predictor.linear_parts(inputs.to(own))
            assert parts is not None
            terms[:, : len(target)] = (edges[..., :lags] * parts.sent[:, equations.source]).sum(-1)
            terms[:, len(target) :] = parts.offset[..., 0] + (parts.own[..., columns] * own).sum(-1)
        values = terms[:, len(target) :].index_add(1, target, terms[:, : len(target)])
        forced = change.at(step)
        if forced:
            values[:, forced] = change.sizes[step].to(values)
        for node, sources in order:  # effects within the step
            if sources and node not in forced:
                into = (target == node).nonzero()[:, 0]
                within = edges[:, into, lags] * values[:, equations.source[into]]
                terms[:, into] += within
                values[:, node] += within.sum(1)
        paths.feed(values[None, :, :, None])
        responses.append(values)
        totals.append(terms.sum(0))
    return torch.stack(responses, 1), torch.stack(totals)


def _nothing(fitted: Fitted, steps: int, dtype: torch.dtype) -> Origins:
    """Return an origin at which no path differs from another one."""
    preparation = fitted.preparation
    assert isinstance(preparation, SeriesPreparation)
    sizes, background, horizon = preparation.sizes, preparation.background, preparation.horizon
    nodes = sizes.num_nodes
    return Origins(
        sizes.window,
        torch.zeros(1, preparation.reach - 1, nodes, sizes.num_features, dtype=dtype),
        torch.zeros(1, steps, 0, dtype=dtype),
        torch.zeros(1, steps, nodes, sizes.known, dtype=dtype),
        torch.zeros(1, horizon, nodes, background.num_levels, dtype=dtype),
        torch.zeros(1, steps),
        None,
        np.zeros(1),
        np.zeros((1, steps)),
        np.zeros((1, steps, nodes, 1)),
        background=background,
        level_places=tuple(level_places(preparation.scaling, background)),
    )


def _targets(fitted: Fitted) -> Tensor:
    """Return the target of each term: of the edges, then of the own pasts."""
    assert fitted.equations is not None
    return torch.cat([fitted.equations.target, torch.arange(len(fitted.nodes))])


def _parts(fitted: Fitted, change: Change, arriving: Float[Tensor, "step term"]) -> list[dict[str, Any]]:
    """Return the parts that are not 0, in the units of their targets; nothing arrives at a node that is set."""
    assert fitted.equations is not None
    targets = _targets(fitted).tolist()
    sources = [*fitted.equations.source.tolist(), *range(len(fitted.nodes))]
    found = []
    for step, term in arriving.nonzero().tolist():
        if targets[term] not in change.at(step):
            names = {"source": fitted.nodes[sources[term]], "target": fitted.nodes[targets[term]]}
            found.append({"step": step, **names, "part": float(arriving[step, term])})
    return found


def _uncertain(fitted: Fitted) -> Bool[np.ndarray, " edge"]:
    """Return the edges of a sampled model that may not exist."""
    if "exists" not in fitted.edges or not isinstance(fitted.graph, BernoulliGraph):
        return np.zeros(len(fitted.edges), dtype=bool)
    exists, probs = fitted.edges.of_groups, fitted.graph.vector(fitted.graph.edge_probs.detach().cpu())
    return np.asarray((exists >= LEAST) & (exists < CERTAIN) & (probs > 0))


def _sampled_responses(fitted: Fitted, origin: Origins, change: Change, seed: int) -> Responses:
    """Return the scaled mean responses under each drawn graph; one where all edges are certain."""
    uncertain = _uncertain(fitted)
    if not uncertain.any():
        return _paired_paths(fitted.model, origin, change, NUM_PATHS, seed)[None]
    generator, found = generator_for(seed, "effect"), []
    for _ in range(GRAPHS):
        uniforms = torch.rand(len(uncertain), generator=generator, dtype=torch.float64).numpy()
        model = copy.deepcopy(fitted.model)
        graph = model.graph
        absent = graph.placed(uncertain & (uniforms >= fitted.edges.of_groups)).to(graph.raw.device)
        if graph.symmetric:
            absent = absent.triu() | absent.triu().mT
        graph.raw.data = torch.where(absent, graph.link.raw(torch.zeros_like(graph.raw)), graph.raw.data)
        found.append(_paired_paths(model, origin, change, PATHS_OF_A_GRAPH, seed))
    return torch.stack(found)


def _paired_paths(
    model: LatentGraphModel, origin: Origins, change: Change, num_paths: int, seed: int
) -> Float[Tensor, "step node"]:
    """Return the mean difference of paths with and without the change, which share graphs and noise."""
    sizes, device = change.sizes.to(torch.float32), model.graph.raw.device
    history, levels = origin.history.clone(), origin.levels.clone()
    history[0, -1, change.nodes, 0] += sizes[0]
    levels[0, -1, change.nodes] += (origin.rates[change.nodes] * sizes[0][:, None]).to(levels)
    fixed = history[0, -1, change.nodes, 0].to(device)
    both = joined_origins([origin, replace(origin, history=history, levels=levels)])

    def held(step: int, values: Tensor) -> Tensor:
        if not change.at(step + 1):
            return values
        values, sizes_now = values.clone(), sizes[step + 1].to(device)
        without = values[0, :, change.nodes, 0]
        values[1, :, change.nodes, 0] = fixed if change.shape == "value" else without + sizes_now
        return values

    first = torch.zeros(history.shape[2], dtype=torch.float64)
    first[change.nodes] = change.sizes[0]
    steps = path_steps(model, both, num_paths, seed=seed, held=held)
    means = [step.means[..., 0].double().mean(1).cpu() for step in steps]  # (with or without, node)
    return torch.stack([first, *(mean[1] - mean[0] for mean in means)])

"""The observation model of each node by name, and checks that the values of targets are possible for it."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float

from tacit.config import FitConfig
from tacit.data import NamedPairs, Series
from tacit.errors import InputError, did_you_mean, require
from tacit.observation import MixedObservation, ObservationModel, Support, TargetValues
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.parts import OwnParts
from tacit.pipeline.preparation import Preparation, SeriesPreparation
from tacit.pipeline.sources import Source, about
from tacit.registry import OBSERVATIONS
from tacit.words import Choice, choose

Values = Float[np.ndarray, "row node channel"]
OTHER_KIND = 'or set another kind in [observation], for example "gaussian"'
ROUNDING = 1e-6


def require_values(
    source: Source, kinds: Sequence[str], targets: Sequence[str] | None, categories: Sequence[float] | None
) -> None:
    """Raise :class:`InputError` if a known target is not a possible value of its kind.

    ``kinds``       kinds of the nodes of the source, in their order
    ``categories``  values of ordered categories, None if they are not known yet
    """
    content = source.content
    values = source_values(content, targets)
    with about(source.name):
        for node, kind in enumerate(kinds):
            support = OBSERVATIONS[kind].support
            there = values[:, node]
            bad = ~np.isnan(there) & ~_possible(there, support, categories)
            for row, channel in np.argwhere(bad)[:1]:
                raise InputError(
                    f"node '{content.nodes[node]}' must have {_wanted(support, categories)} for kind '{kind}', got "
                    f"{there[row, channel]:.10g} at {_row_name(content, int(row))}; {_remedy(support)}"
                )


def require_possible(config: FitConfig, nodes: tuple[str, ...], node: str, value: float) -> None:
    """Refuse a value that a node is set to and that is not possible for its kind."""
    kind = kinds_of(config, nodes)[nodes.index(node)]
    support: Support = "real" if kind == AUTO else OBSERVATIONS[kind].support
    if not _possible(np.array([[value]]), support, config.observation.categories).all():
        wanted = _wanted(support, config.observation.categories)
        raise InputError(f"{node} must be set to {wanted} for kind '{kind}', got {value:.10g}; pass another change")


def source_values(content: NamedPairs | Series, targets: Sequence[str] | None) -> Values:
    """Return the targets in the units of the data, NaN if one is not known."""
    if isinstance(content, Series):
        names = content.channels if targets is None else [name for name in targets if name in content.channels]
        return content.values[:, :, [content.channels.index(name) for name in names]]
    pairs = content.pairs
    values: Values = pairs.targets.double().numpy()
    return values if pairs.observed is None else np.where(pairs.observed.numpy() > 0, values, np.nan)


def _possible(
    values: Float[np.ndarray, "row channel"], support: Support, categories: Sequence[float] | None
) -> Bool[np.ndarray, "row channel"]:
    """Return where a value is in the support."""
    possible: Bool[np.ndarray, "row channel"] = np.ones(values.shape, dtype=bool)
    if support == "counts":
        possible = (values >= 0) & (values == np.rint(values))
    if support == "two values":
        possible = np.isin(values, (0.0, 1.0))
    if support == "positive":
        possible = values > 0
    if support == "categories" and categories is not None:
        near = np.abs(values[..., None] - np.array(categories)) <= ROUNDING * (1 + np.abs(np.array(categories)))
        possible = near.any(-1)
    return possible


def _wanted(support: Support, categories: Sequence[float] | None) -> str:
    shown = ", ".join(f"{value:g}" for value in categories or ())
    return {
        "counts": "counts 0, 1, 2, ...",
        "two values": "0 and 1",
        "positive": "numbers above 0",
        "categories": f"the categories {shown}",
        "real": "numbers",
    }[support]


def _remedy(support: Support) -> str:
    if support == "categories":
        return "correct it, or list all of them, in order, as categories in [observation] of the fit"
    return f"correct it, {OTHER_KIND}"


def _row_name(content: NamedPairs | Series, row: int) -> str:
    """Return the time of a row, with its series if there are several."""
    if not isinstance(content, Series):
        return f"pair {row}"
    name = content.series_names[int(content.series_of_row[row])] if content.series_names else ""
    time = content.row_times[row]
    said = np.datetime_as_string(time, unit="auto") if isinstance(time, np.datetime64) else time
    return f"{said}" + (f" of series '{name}'" if name else "")


REST, AUTO = "*", "auto"  # the nodes that a table does not name; a kind that is still open
LARGER, MORE = 1.5, 10  # the largest count of exact sums is LARGER times that of the training part, plus MORE
MOST_CATEGORIES = 50
FROM_ZERO: tuple[Support, ...] = ("counts", "two values", "positive")  # a source at 0 has no effect
ABOVE = (
    "counts above largest_count = {largest}, where exact sums over counts end, have approximate scores: {above:,} of "
    "them; set largest_count in [observation] and fit again"
)


def kinds_of(config: FitConfig, nodes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the name of the observation model of each node."""
    kind = config.observation.kind
    return (kind,) * len(nodes) if isinstance(kind, str) else tuple(kind[node] for node in nodes)


def supports_of(config: FitConfig, nodes: tuple[str, ...]) -> tuple[Support, ...]:
    """Return which values the targets of each node can have."""
    return tuple("real" if kind == AUTO else OBSERVATIONS[kind].support for kind in kinds_of(config, nodes))


def has_links(config: FitConfig) -> bool:
    """Return whether the output of the predictor is a link function of some targets instead of their mean."""
    kind = config.observation.kind
    names = [kind] if isinstance(kind, str) else list(kind.values())
    return any(name != AUTO and OBSERVATIONS[name].support != "real" for name in names)


def settle_observation(source: Source, config: FitConfig, own: OwnParts, seed: int) -> tuple[FitConfig, list[Choice]]:
    """Return the config with a kind for each node and the options of these kinds, with reasons.

    Values that are not possible for a kind are refused; the message names the node and the row.
    """
    with about(source.name):
        config = _with_all_nodes(config, tuple(source.content.nodes))
    _require_used(config)
    if not has_links(config):
        return config, []
    data, choices = config.data, list[Choice]()
    require(
        data.scale_by in (AUTO, "all"),
        f"scale_by in [data] must be 'all' for kind {_said(config)} in [observation], got '{data.scale_by}'; leave it "
        "out",
    )
    if data.scale_by == AUTO and not isinstance(source.content, NamedPairs):
        config = config.model_copy(update={"data": data.model_copy(update={"scale_by": "all"})})
        choices += [choose("scale_by", "all", "one zero")] if source.content.num_series > 1 else []
    nodes = tuple(source.content.nodes)
    if not data.from_zero:
        with_zero = zip(nodes, supports_of(config, nodes), strict=True)
        zero = tuple(node for node, support in with_zero if support in FROM_ZERO)
        config = config.model_copy(update={"data": config.data.model_copy(update={"from_zero": zero})})
    require_values(source, kinds_of(config, nodes), config.data.targets, config.observation.categories)
    scaled = config.predictor.kind == AUTO or own.kind(config.predictor).scaled
    dataset = Dataset.prepare(source, config.data, seed=seed, scaled=scaled)
    with about(source.name):
        found = _found_in(dataset, source, config)
    config = config.model_copy(update={"observation": config.observation.model_copy(update=found)})
    if "categories" in found:
        require_values(source, kinds_of(config, nodes), config.data.targets, config.observation.categories)
        choices.append(choose("categories", [float(value) for value in found["categories"]], "categories seen"))
    if "largest_count" in found:
        choices.append(choose("largest_count", found["largest_count"], "above largest"))
    return config, choices


def require_new_values(config: FitConfig, preparation: Preparation, source: Source) -> tuple[str, ...]:
    """Refuse new data with values that are not possible for the kinds of a fit, and return notes."""
    nodes = tuple(source.content.nodes)
    if not has_links(config) or not set(nodes) <= set(preparation.nodes):  # other nodes are refused later
        return ()
    targets = preparation.target_names if preparation.is_series else None
    kinds, options = kinds_of(config, nodes), config.observation
    require_values(source, kinds, targets, options.categories)
    counts = [OBSERVATIONS[kind].support == "counts" for kind in kinds]
    values = source_values(source.content, targets)[:, counts]
    above = int((values > (options.largest_count or math.inf)).sum())
    return (ABOVE.format(above=above, largest=options.largest_count),) if above else ()


def target_values(config: FitConfig, preparation: Preparation) -> TargetValues:
    """Return the conversion of scaled targets to values, and the properties of the values."""
    nodes, channels = len(preparation.nodes), preparation.sizes.out_channels
    if isinstance(preparation, SeriesPreparation):
        mean, deviation = (table[:, :channels] for table in (preparation.scaling.mean, preparation.scaling.deviation))
    else:
        units = preparation.target_units
        mean, deviation = (np.broadcast_to(row, (nodes, channels)) for row in (units.mean, units.deviation))
    offset, unit = (torch.tensor(np.array(table)).float() for table in (mean, deviation))
    options, usual = config.observation, TargetValues.plain(nodes, channels)
    return TargetValues(offset, unit, options.categories or (), options.largest_count or usual.largest)


def build_observation(config: FitConfig, preparation: Preparation) -> ObservationModel:
    """Return the observation model of a config, for all nodes or for each node."""
    sizes, kinds = preparation.sizes, kinds_of(config, preparation.nodes)
    values = target_values(config, preparation)

    def build(kind: str, nodes: list[int]) -> ObservationModel:
        model: ObservationModel = OBSERVATIONS[kind].for_sizes(
            num_nodes=len(nodes),
            in_channels=sizes.in_channels,
            channels=sizes.out_channels,
            values=values.chosen(nodes),
        )
        return model

    nodes = {kind: [node for node, own in enumerate(kinds) if own == kind] for kind in dict.fromkeys(kinds)}
    parts = [(build(kind, own), own) for kind, own in nodes.items()]
    return parts[0][0] if len(parts) == 1 else MixedObservation(parts)


def regression_observation(config: FitConfig, preparation: Preparation) -> ObservationModel | None:
    """Return the observation model of the regressions that test edges; None for Gaussian noise."""
    if config.observation.kind == AUTO or config.graph.simultaneous or preparation.sizes.out_channels != 1:
        return None
    model = build_observation(config, preparation)
    return None if model.by_moments or not model.has_likelihood else model


def _with_all_nodes(config: FitConfig, nodes: tuple[str, ...]) -> FitConfig:
    """Return the config with a table that names every node; one kind for all nodes stays a name."""
    kind = config.observation.kind
    if isinstance(kind, str):
        return config
    for name in kind:
        require(
            name == REST or name in nodes,
            f"kind in [observation] names the node '{name}', which does not exist{did_you_mean(name, nodes)}",
        )
    missing = [node for node in nodes if node not in kind and REST not in kind]
    if missing:
        raise InputError(
            f"kind in [observation] must name every node, got none for '{missing[0]}'; add it, or \"{REST}\" for all "
            "others"
        )
    each = {node: kind.get(node, kind.get(REST, "")) for node in nodes}
    for node, name in each.items():
        one = OBSERVATIONS[name]
        require(
            one.random and one.num_given == 1,
            f"kind in [observation] of node '{node}' must be one with a parameter per target in a table by node, got "
            f"'{name}'; use 'gaussian'",
        )
    one = next(iter(each.values()))
    found = one if set(each.values()) == {one} else each
    return config.model_copy(update={"observation": config.observation.model_copy(update={"kind": found})})


def _require_used(config: FitConfig) -> None:
    """Refuse options that the chosen kinds would ignore."""
    options = config.observation
    if options.kind == AUTO:
        return
    names = [options.kind] if isinstance(options.kind, str) else list(options.kind.values())
    have = {OBSERVATIONS[name].support for name in names}
    for key, support in (("categories", "categories"), ("largest_count", "counts")):
        if getattr(options, key) is not None and support not in have:
            users = " or ".join(f"'{name}'" for name in OBSERVATIONS if OBSERVATIONS[name].support == support)
            raise InputError(f"{key} in [observation] requires kind {users}, got {_said(config)}; leave it out")


def _found_in(dataset: Dataset, source: Source, config: FitConfig) -> dict[str, Any]:
    """Return the open options, found from the training targets; a constant node is refused."""
    supports, train, preparation = supports_of(config, dataset.nodes), dataset.split.train, dataset.preparation
    values = preparation.to_units(train.targets.double(), train).numpy()  # (pair, node, channel)
    if train.observed is not None:
        values = np.where(train.observed.numpy() > 0, values, np.nan)
    for node, support in enumerate(supports):
        low, high = np.nanmin(values[:, node], axis=0), np.nanmax(values[:, node], axis=0)
        require(
            support == "real" or bool((high > low).all()),
            f"node '{dataset.nodes[node]}' must vary in the {len(values):,} {preparation.row_name}s of the training "
            f"part, got {low.min():g} in all of them; leave it out, or train on a larger fraction",
        )
    found: dict[str, Any] = {}
    counts, ordered = (np.array([one == support for one in supports]) for support in ("counts", "categories"))
    if counts.any() and config.observation.largest_count is None:
        found["largest_count"] = math.ceil(LARGER * float(np.nanmax(values[:, counts]))) + MORE
    if ordered.any() and config.observation.categories is None:
        known = [node in np.array(dataset.nodes)[ordered] for node in source.content.nodes]
        everywhere = np.unique(source_values(source.content, config.data.targets)[:, known])
        everywhere = everywhere[~np.isnan(everywhere)]
        seen = np.unique(values[:, ordered])
        nearest = np.abs(everywhere[:, None] - seen[~np.isnan(seen)]).argmin(0)
        found["categories"] = tuple(everywhere[np.unique(nearest)].tolist())
        require(
            len(nearest) <= MOST_CATEGORIES,
            f"kind 'ordered' in [observation] must have at most {MOST_CATEGORIES} categories, got "
            f"{len(np.unique(nearest))}; use 'gaussian'",
        )
    return found


def _said(config: FitConfig) -> str:
    kind = config.observation.kind
    return f"'{kind}'" if isinstance(kind, str) else ", ".join(f"'{name}'" for name in sorted(set(kind.values())))

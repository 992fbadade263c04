"""What is known of the edges: rules of the config and its files; candidates by place, by correlation or by name."""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tacit.config import GraphConfig
from tacit.data import Pairs
from tacit.data.windows import SeriesPairs
from tacit.errors import InputError
from tacit.graph import EdgeRules, Slots, correlated_pairs, nearest_slots, read_edge_rules


@dataclass(frozen=True)
class SeenRows:
    """What the training part shows: targets, and the newest inputs beside each; NaN where one is missing."""

    targets: Float[Tensor, "row node channel"]
    inputs: Float[Tensor, "row node in_channel"]


def series_rows(made: SeriesPairs) -> SeenRows:
    """Return the rows up to the last target of the training part: no later one may choose candidates."""
    chosen = [made.used.channels.index(name) for name in made.scaling.variables[: made.out_channels]]
    ends = zip(made.used.parts, made.train_ends, strict=True)
    rows = [torch.from_numpy(part.values[:end]) for part, end in ends if end > made.horizon]
    return SeenRows(
        torch.cat([part[made.horizon :, :, chosen] for part in rows]),
        torch.cat([part[: len(part) - made.horizon] for part in rows]),
    )


def pair_rows(train: Pairs) -> SeenRows:
    """Return the pairs of the training part."""
    missing = False if train.observed is None else train.observed == 0
    return SeenRows(train.targets.masked_fill(torch.as_tensor(missing), torch.nan), train.inputs)


def read_rules(
    nodes: tuple[str, ...], config: GraphConfig, coordinates: np.ndarray | None, seen: SeenRows
) -> EdgeRules:
    """Return what is known of the edges, from the config and the files it names."""
    rules = EdgeRules(nodes, symmetric=config.symmetric, self_loops=config.self_loops)
    if config.edges is not None:
        rules = read_edge_rules(config.edges, nodes, symmetric=config.symmetric, self_loops=config.self_loops)
    _require_one_source(config, rules)
    rules = _with_named(rules, config)
    candidates = _found(config, coordinates, seen)
    return rules if candidates is None else replace(rules, candidates=candidates)


def left_out(rules: EdgeRules) -> tuple[str, ...]:
    """Say which nodes have no edge that can be. It is no error: a predictor has a path of each node's own."""
    alone = rules.isolated
    return (f"no candidate leads to or from {alone}: predicted from their own inputs alone",) if alone else ()


def _require_one_source(config: GraphConfig, rules: EdgeRules) -> None:
    """Raise :class:`InputError` if two choices say which edges can be."""
    sources = {
        "nearest in [graph]": config.nearest is not None,
        "correlated in [graph]": config.correlated is not None,
        "candidates in [graph]": bool(config.candidates),
        f"candidates in {config.edges}": rules.candidates is not None,
    }
    first, *others = [name for name, given in sources.items() if given] or [""]
    if others:
        raise InputError(f"{first} and {others[0]} both say which edges can be; keep one of them")


def _found(config: GraphConfig, coordinates: np.ndarray | None, seen: SeenRows) -> Slots | None:
    """Return the candidates by place or by correlation, if either is asked for."""
    if config.correlated is not None:
        _require_fewer("correlated", config.correlated, seen.targets.shape[1])
        return correlated_pairs(seen.targets, seen.inputs, config.correlated)
    if config.nearest is None:
        return None
    if coordinates is None:
        raise InputError("nearest in [graph] needs coordinates, and the data has none; name a file with coordinates")
    _require_fewer("nearest", config.nearest, len(coordinates))
    return nearest_slots(torch.from_numpy(coordinates), config.nearest, metric=config.metric)


def _require_fewer(name: str, k: int, num_nodes: int) -> None:
    if k >= num_nodes:
        raise InputError(f"{name} in [graph] needs to be below the number of nodes, {num_nodes}, got {k}; lower it")


def _with_named(rules: EdgeRules, config: GraphConfig) -> EdgeRules:
    """Return the rules of the file with those that the config names itself."""
    known = rules.candidates if isinstance(rules.candidates, Collection) else ()
    return replace(
        rules,
        forbidden={*rules.forbidden, *config.forbidden},
        required={*rules.required, *config.required},
        candidates={*known, *config.candidates} if config.candidates else rules.candidates,
        priors={**rules.priors, **{(source, target): belief for source, target, belief in config.priors}},
    )

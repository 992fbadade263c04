"""Known edges: rules of the config and its files; candidates by distance, correlation or name."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from tacit.config import GraphOptions, PredictorOptions
from tacit.data import read_coordinates
from tacit.errors import InputError, require
from tacit.graph import (
    ANY_LAG,
    CandidateEdges,
    EdgeRules,
    LagRange,
    correlated_pairs,
    nearest_candidates,
    read_edge_rules,
)
from tacit.pipeline.dataset import Dataset, SeenRows
from tacit.pipeline.parts import OwnParts


def read_rules(dataset: Dataset, config: GraphOptions, candidates: CandidateEdges | Tensor | None = None) -> EdgeRules:
    """Return the rules for edges from the config and the files that it names, or from a table of candidates."""
    nodes = dataset.nodes
    kinds = {name: getattr(config, name) for name in ("symmetric", "self_loops", "simultaneous")}
    rules = EdgeRules(nodes, **kinds)
    if config.edges is not None:
        rules = read_edge_rules(config.edges, nodes, **kinds)
    _require_one_source(config, rules, candidates)
    rules = _with_named(rules, config)
    found = _found(config, place_nodes(dataset, config), dataset.seen) if candidates is None else candidates
    rules = replace(rules, candidates=rules.candidates if found is None else found)
    require(
        not rules.simultaneous or bool(rules.may_act_within_step.any()),
        "simultaneous in [graph] requires an edge that may act within a step, and the rules allow none; lower min_lag, "
        "or leave simultaneous out",
    )
    return rules


def window_for_lags(rules: EdgeRules, dataset: Dataset, window: int | None) -> int | None:
    """Return the window that the lags of the rules require; None without lag rules.

    ``window`` is the one that the user set: lags beyond it are refused, as are lags for pairs without time.
    """
    ranges, preparation = rules.lag_ranges, dataset.preparation
    if ranges is None:
        return None
    for one in ranges.all:
        require(
            preparation.is_series,
            f"{one.named('min_lag and max_lag')} require a series, got pairs without time; leave them out",
        )
        one.require_within(preparation.horizon, window)
    return ranges.reach - preparation.horizon + 1


def require_lag_ranges(rules: EdgeRules, options: PredictorOptions, own: OwnParts) -> None:
    """Refuse a kind of predictor that cannot restrict the lags of edges."""
    if rules.lag_ranges is None or options.kind == "auto" or own.kind(options).lag_ranges:
        return
    raise InputError(
        f"{rules.lag_ranges.all[0].named('min_lag and max_lag')} require a predictor with a weight per lag, got "
        f"kind='{options.kind}'; leave kind in [predictor] out, or set it to 'filter'"
    )


def place_nodes(dataset: Dataset, config: GraphOptions) -> np.ndarray | None:
    """Return two coordinates per node, from the file that the config names or from the data; None without either."""
    return dataset.coordinates if config.coordinates is None else read_coordinates(config.coordinates, dataset.nodes)


def left_out(rules: EdgeRules) -> tuple[str, ...]:
    """Return a note on the nodes without possible edges; they are predicted from their own inputs."""
    alone = rules.isolated
    return (f"nodes without candidate edges are predicted only from their own inputs: {alone}",) if alone else ()


def _require_one_source(config: GraphOptions, rules: EdgeRules, candidates: CandidateEdges | Tensor | None) -> None:
    """Raise :class:`InputError` if two options define the candidate edges."""
    sources = {
        "k_nearest in [graph]": config.k_nearest,
        "k_correlated in [graph]": config.k_correlated,
        "candidates in [graph]": config.candidates,
        f"candidates in {config.edges}": rules.candidates,
        "the table of candidates": candidates,
    }
    first, *others = [name for name, given in sources.items() if given is not None] or [""]
    if others:
        raise InputError(f"{first} and {others[0]} both define the candidate edges; keep one of them")


def _found(config: GraphOptions, coordinates: np.ndarray | None, seen: SeenRows) -> CandidateEdges | None:
    """Return the candidates by distance or by correlation, if one of these options is set."""
    if config.k_correlated is not None:
        _require_fewer("k_correlated", config.k_correlated, seen.targets.shape[1])
        return correlated_pairs(seen.targets, seen.inputs, config.k_correlated)
    if config.k_nearest is None:
        return None
    if coordinates is None:
        raise InputError(
            "k_nearest in [graph] requires coordinates, and the data has none; name a file with coordinates"
        )
    _require_fewer("k_nearest", config.k_nearest, len(coordinates))
    return nearest_candidates(torch.from_numpy(coordinates), config.k_nearest, metric=config.metric)


def _require_fewer(name: str, k: int, num_nodes: int) -> None:
    if k >= num_nodes:
        raise InputError(f"{name} in [graph] must be below the number of nodes, {num_nodes}, got {k}; lower it")


def _with_named(rules: EdgeRules, config: GraphOptions) -> EdgeRules:
    """Return the rules of the file together with those in the config."""
    return replace(
        rules,
        forbidden={*rules.forbidden, *config.forbidden},
        required={*rules.required, *config.required},
        candidates=rules.candidates if config.candidates is None else {*config.candidates},
        lag_range=LagRange(config.min_lag, config.max_lag).filled(ANY_LAG),
        priors={**rules.priors, **{(source, target): belief for source, target, belief in config.priors}},
    )

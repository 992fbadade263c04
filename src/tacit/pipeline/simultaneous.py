"""Fits with effects within a step: compatible options, and edges whose probability is not identifiable."""

import copy

import numpy as np
import torch
from torch import Tensor

from tacit.assessment.evidence import WithinStep
from tacit.config import FitConfig
from tacit.edges import FLAGS, OPEN, EdgeTable, schema
from tacit.errors import InputError, require
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.preparation import Preparation
from tacit.predictors import GraphFilter
from tacit.shapes import EdgeMask
from tacit.training import LatentGraphModel
from tacit.words import Choice, Finding, FindingKind, choose, find

KIND, NOISE = "filter", "gaussian"
NAMED = 3


def settle_simultaneous(config: FitConfig) -> tuple[FitConfig, list[Choice]]:
    """Return the config with the options that effects within a step require, with reasons; refuse other options."""
    graph, predictor, noise = config.graph, config.predictor, config.observation
    if not graph.simultaneous:
        return config, []
    _refuse("kind in [predictor]", predictor.kind not in ("auto", KIND), predictor.kind, "leave it out")
    _refuse("kind in [observation]", noise.kind not in ("auto", NOISE), noise.kind, "leave it out")
    _refuse("activation in [predictor]", predictor.activation != "linear", predictor.activation, "leave it out")
    for name, section in (("training", config.training), ("model", config.model)):
        for key, field in type(section).model_fields.items():
            value = getattr(section, key)
            _refuse(f"{key} in [{name}]", value != field.default, value, "leave it out: regressions give the fit")
    _refuse("horizon in [data]", config.data.horizon > 1, config.data.horizon, "use horizon 1")
    _refuse("symmetric in [graph]", graph.symmetric, "true", "leave it out")
    _refuse("self_loops in [graph]", graph.self_loops, "true", "leave it out")
    _refuse("layout in [graph]", graph.layout == "table", graph.layout, "leave it out")
    _refuse("evidence in [graph]", graph.evidence not in ("auto", "regression"), graph.evidence, "leave it out")
    changes = {
        "graph": graph.model_copy(update={"layout": "matrix"}),
        "predictor": predictor.model_copy(update={"kind": KIND}),
        "observation": noise.model_copy(update={"kind": NOISE}),
    }
    return config.model_copy(update=changes), [
        choose("predictor", KIND, "within step")
    ] if predictor.kind == "auto" else []


def _refuse(what: str, wrong: bool, value: object, remedy: str) -> None:
    require(not wrong, f"{what} is not possible with simultaneous in [graph], got {value}; {remedy}")


def require_series(dataset: Dataset, config: FitConfig) -> None:
    """Refuse data without time or with several target variables."""
    if not config.graph.simultaneous:
        return
    preparation = dataset.preparation
    require(
        preparation.is_series,
        "simultaneous in [graph] requires a series, got pairs without time; leave it out",
    )
    names = preparation.target_names
    require(
        len(names) == 1,
        f"simultaneous in [graph] requires one target variable, got {len(names)} ({', '.join(names[:NAMED])}); name "
        "one with targets in [data]",
    )


def may_suggest(config: FitConfig, preparation: Preparation) -> bool:
    """Return whether effects within a step are compatible with the other options."""
    graph = config.graph.model_copy(update={"simultaneous": True})
    kind, noise = config.observation.kind, config.observation
    if ({kind} if isinstance(kind, str) else set(kind.values())) <= {"gaussian", "student_t"}:
        noise = noise.model_copy(update={"kind": "auto"})  # heavy tails were usually chosen from the data
    try:
        settle_simultaneous(config.model_copy(update={"graph": graph, "observation": noise}))
    except InputError:
        return False
    return preparation.is_series and len(preparation.target_names) == 1 and not graph.min_lag


def always_acting(model: LatentGraphModel) -> EdgeMask:
    """Return the learned edges that are assumed to always act, because their direction within the step is open."""
    always = model.predictor.always if isinstance(model.predictor, GraphFilter) else None
    return (torch.zeros_like(model.graph.learned) if always is None else always & model.graph.learned).cpu()


def with_held(model: LatentGraphModel) -> LatentGraphModel:
    """Return the model with these edges fixed."""
    held = always_acting(model)
    if not held.any():
        return model
    fixed = copy.deepcopy(model)
    fixed.graph.fixed |= held.to(model.graph.fixed.device)
    fixed.graph.fixed_probs = torch.where(fixed.graph.fixed, model.graph.edge_probs.detach(), 0.0)
    return fixed


def without_held(edges: EdgeTable, model: LatentGraphModel) -> EdgeTable:
    """Return the results without probabilities of edges whose direction within the step is open.

    The effect and the lag of such a pair are those of the direction in the model. No edge of a group of copies is
    identifiable.
    """
    flags, no = edges["identifiable"], FLAGS.index("no")
    if flags is not None and "group" in edges:
        edges = edges.updated(identifiable=np.where(edges["group"] == "", flags, no).astype(flags.dtype))
    held = model.graph.vector(always_acting(model))
    opened = np.zeros_like(held) if "direction" not in edges else edges["direction"] == OPEN
    both = held | opened
    if not both.any():
        return edges
    probs = model.graph.vector(model.graph.edge_probs.detach().cpu().double())
    found = {"probability": np.where(both, np.nan, probs)}
    for one in schema.file_columns():
        if one.acting and one.name != "probability" and one.name in edges:
            values = edges[one.name]
            found[one.name] = np.where(both, one.empty, values).astype(values.dtype)
    for name in {"effect", "lag"} & edges.columns.keys():
        found[name] = np.where(opened & edges.index.mirrored(held), np.nan, edges[name]).astype(edges[name].dtype)
    if flags is not None:
        found["identifiable"] = np.where(both, no, edges["identifiable"]).astype(flags.dtype)
    return edges.updated(**found)


def held_findings(model: LatentGraphModel, nodes: tuple[str, ...]) -> list[Finding]:
    """Return the finding on the edges whose direction within the step is open."""
    edges = [(nodes[source], nodes[target]) for target, source in always_acting(model).nonzero().tolist()]
    return [find(FindingKind.HELD, edges=edges)] if edges else []


def within_columns(within: WithinStep) -> dict[str, Tensor]:
    """Return the columns of ``edges.csv``; a node has no effect on itself within a step."""
    own = torch.eye(len(within.probs), dtype=torch.bool)
    return {
        "within_step": within.probs.float().masked_fill(own, torch.nan),
        "direction": within.directions.masked_fill(own, 0).to(torch.uint8),
        "exists_either": within.either.float().masked_fill(own, torch.nan),
    }

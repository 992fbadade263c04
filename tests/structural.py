"""Series with effects within a step, and the evidence of somebody who knows them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from tacit.assessment.evidence import LEARNED, TIME, WithinStep
from tacit.config import FitConfig
from tacit.pipeline import evidence, later_assessment, plan, read_table, resolve
from tacit.pipeline.simultaneous import within_columns

WITHIN = np.array([[0.0, 0.8, 0.0], [0.0, 0.0, 0.0], [0.0, -0.7, 0.0]])  # 1 -> 0 and 1 -> 2
LAGGED = np.array([[0.5, 0.0, 0.0], [0.0, 0.4, 0.0], [0.3, 0.0, 0.3]])  # 0 -> 2


def structural_series(seed, rows, within=WITHIN, lagged=LAGGED, probs=None):
    """Values (time, node) of y = (A o within) y + (A o lagged) y_before + e, with gates of these probabilities."""
    rng, nodes = np.random.default_rng(seed), len(within)
    probs, off = np.ones((nodes, nodes)) if probs is None else probs, ~np.eye(nodes, dtype=bool)
    values = np.zeros((rows + 50, nodes))
    for now in range(1, len(values)):
        gates = rng.random((nodes, nodes)) < np.where(off, probs, 1.0)
        drift = (gates * lagged) @ values[now - 1] + rng.normal(size=nodes)
        values[now] = np.linalg.solve(np.eye(nodes) - gates * within, drift)
    return values[50:]


def know_edges(monkeypatch, within=WITHIN, lagged=LAGGED, direction=LEARNED):
    """Let the evidence of fits with effects within a step be the truth."""
    find = evidence.find_evidence
    acts = torch.from_numpy(within != 0)
    true = (acts | torch.from_numpy(lagged != 0)).fill_diagonal_(False)

    def found(dataset, rules, config, seed, **options):
        usual = find(dataset, rules, config, seed, **options)
        if not config.graph.simultaneous:
            return usual
        exists = torch.where(true, 0.99, 0.001)
        directions = torch.where(acts | acts.mT, direction, TIME)
        later = torch.where(torch.from_numpy(lagged != 0), exists, 0.0)
        known = WithinStep(acts.float(), later, exists.maximum(exists.mT), directions, acts, gaussian=0.5)
        index, columns = usual.table.index, {"exists": exists, **within_columns(known)}
        table = usual.table.updated(**{name: index.vector(one.numpy()) for name, one in columns.items()})
        return replace(usual, table=table, within=known)

    for module in (plan, later_assessment):
        monkeypatch.setattr(module, "find_evidence", found)


def table_of(values):
    names = [f"n{node}" for node in range(values.shape[1])]
    return pd.DataFrame(values, columns=names, index=pd.RangeIndex(len(values), name="time"))


def plan_of(values, **sections):
    """Return the plan of a fit with effects within a step."""
    graph = {"simultaneous": True, **sections.pop("graph", {})}
    config = FitConfig.model_validate({"graph": graph, **sections})
    source = read_table(table_of(values), config.data)
    return resolve(source, config, seed=0, device=torch.device("cpu"), command="tacit fit")

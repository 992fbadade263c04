"""Runs with effects within a step that were written by hand, in place of those that the data would give."""

from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from tacit.assessment.evidence import WithinStep
from tacit.edges import DIRECTIONS
from tacit.pipeline import plan
from tacit.pipeline.simultaneous import within_columns

NODES = ("a", "b", "c", "d", "e")
# source, target, P(exists), P(acts at lag 0), how the direction is known
EDGES = (
    ("a", "b", 0.52, 0.52, "open"),  # a - b: listed once, without an arrow
    ("b", "a", 0.47, 0.47, "open"),
    ("b", "c", 0.99, 0.98, "learned"),
    ("c", "d", 0.98, 0.95, "lagged parents"),
    ("d", "e", 0.99, 0.03, "time"),  # one step later
)


def simultaneous(rows=400, seed=0):
    """Values of a -> b -> c -> d within the step, and d -> e one step later."""
    rng = np.random.default_rng(seed)
    values = np.zeros((rows, 5))
    for step in range(1, rows):
        values[step] = 0.4 * values[step - 1] + rng.normal(size=5)
        for node in (1, 2, 3):
            values[step, node] += 0.7 * values[step, node - 1]
        values[step, 4] += 0.7 * values[step - 1, 3]
    return pd.DataFrame(values, columns=NODES).rename_axis("step").reset_index()


def made_within(gaussian=0.41):
    """Return ``exists`` and the effects within the step of ``EDGES``."""
    exists, probs = torch.full((5, 5), 0.01).fill_diagonal_(0), torch.full((5, 5), 0.005).fill_diagonal_(0)
    directions, acyclic = torch.ones(5, 5, dtype=torch.long), torch.zeros(5, 5, dtype=torch.bool)
    for source, target, exist, acts, how in EDGES:
        i, j = NODES.index(target), NODES.index(source)
        exists[i, j], probs[i, j], acyclic[i, j] = exist, acts, acts > 0.5
        directions[i, j] = directions[j, i] = DIRECTIONS.index(how)
    either = (exists + exists.mT).clamp(max=0.995)
    lagged = exists.masked_fill(probs > 0.1, 0.0)
    return exists, WithinStep(probs, lagged, either, directions, acyclic, gaussian, ("A note about the step.",))


def use_made_within(monkeypatch, gaussian=0.41):
    """Put the effects of ``EDGES`` in place of the evidence of a fit."""
    found = plan.find_evidence

    def made(*arguments, **options):
        evidence, (exists, within) = found(*arguments, **options), made_within(gaussian)
        index = evidence.table.index
        columns = {"exists": exists, **within_columns(within)}
        table = evidence.table.updated(**{name: index.vector(one.numpy()) for name, one in columns.items()})
        return replace(evidence, table=table, within=within)

    monkeypatch.setattr(plan, "find_evidence", made)

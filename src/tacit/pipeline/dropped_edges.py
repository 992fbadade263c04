"""Check of the dropped edges with the fitted model.

Regressions decide before the fit which edges may exist. A dropped edge is added again if it improves the predictions of
the fitted model, and the model is then trained again with it. As regressions and model disagree, ``exists`` of such an
edge is set to the lowest value of a kept edge.
"""

import math
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool

from tacit.assessment.evaluation import SharedDraws
from tacit.assessment.evidence import joining_log_odds
from tacit.data import Pairs
from tacit.pipeline.building import build_model
from tacit.pipeline.evidence import RegressionEvidence, placed
from tacit.pipeline.plan import Plan
from tacit.pipeline.preparation import Preparation
from tacit.randomness import generator_for
from tacit.shapes import PointPrediction
from tacit.training import LatentGraphModel

MOST_ROWS = 4000  # training pairs
GRAPHS = 16


def with_needed_edges(plan: Plan, model: LatentGraphModel, train: Pairs) -> Plan | None:
    """Return the plan of a fit with the dropped edges that the fitted model needs; None if it needs none.

    With effects within a step no edge is added, because all effects were estimated together.
    """
    evidence, preparation = plan.evidence, plan.dataset.preparation
    if evidence is None or evidence.within is not None:
        return None
    plan.listener.stage("fit: check of the dropped edges")
    needed = needed_after_all(model, train, evidence, preparation, plan.seed)
    if not needed.any():
        return None
    evidence = evidence.with_needed(needed)
    model = build_model(plan.config, plan.dataset, plan.rules, plan.own, plan.seed, evidence.kept)
    count = int((needed & evidence.table.index.once).sum())
    edges = "1 more edge" if count == 1 else f"{count} more edges"
    said = f"learned = {edges} than the regressions keep: residuals of the fitted model depend on the source"
    return replace(plan, model=model, evidence=evidence, choices=[*plan.choices, said])


def needed_after_all(
    model: LatentGraphModel, train: Pairs, evidence: RegressionEvidence, preparation: Preparation, seed: int
) -> Bool[np.ndarray, " edge"]:
    """Return the dropped edges that are more likely than not, given the predictions of the model.

    The model needs one edge of a group of copies.
    """
    pairs = train[:: -(-len(train) // MOST_ROWS)]
    candidates = evidence.found.screened
    kept, index = evidence.of_candidates(evidence.kept), evidence.table.index
    beside, layout = evidence.beside(pairs, preparation)
    odds = joining_log_odds(
        beside,
        predicted_means(model, pairs, seed),
        layout,
        candidates,
        kept,
        evidence.form,
        evidence.found.density,
        horizon=preparation.horizon,
    )
    odds = odds.masked_fill(kept, -torch.inf).double()
    placed_odds = placed(odds.exp(), candidates, index).log().numpy()
    if evidence.rules.symmetric:
        placed_odds = (
            placed_odds + index.mirrored(placed_odds) - math.log(evidence.found.density / (1 - evidence.found.density))
        )
    return np.asarray((placed_odds > 0) & ~evidence.table.others)


def predicted_means(model: LatentGraphModel, pairs: Pairs, seed: int) -> PointPrediction:
    """Return the mean prediction over graphs."""
    draws = SharedDraws(model, GRAPHS, generator_for(seed, "dropped", pairs.inputs.device))
    size = draws.pairs_at_once
    return torch.cat([draws.mean(pairs[first : first + size]) for first in range(0, len(pairs), size)])

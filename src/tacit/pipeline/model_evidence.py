"""Evidence from the fitted model: edges that are unlikely to exist, and dropped edges that it needs.

Evidence from the fitted model: edges that are unlikely to exist are fixed at 0, and the model is retrained.

Check of the dropped edges with the fitted model.

Regressions decide before the fit which edges may exist. A dropped edge is added again if it improves the predictions of
the fitted model, and the model is then trained again with it. As regressions and model disagree, ``exists`` of such an
edge is set to the lowest value of a kept edge.
"""

import math
import time
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool

from tacit.assessment.evaluation import SharedDraws
from tacit.assessment.evidence import (
    Evidence,
    joining_log_odds,
    keep_edges,
    model_evidence,
    without_edges,
    without_prior,
)
from tacit.config import FitConfig
from tacit.data import Pairs, Split
from tacit.graph import EdgeRules, GraphDistribution
from tacit.pipeline.building import build_model
from tacit.pipeline.evidence import MODEL, NONE, RegressionEvidence, evidence_method, placed
from tacit.pipeline.parts import MOST_EXPANDED
from tacit.pipeline.plan import Plan
from tacit.pipeline.preparation import Preparation, block_length
from tacit.randomness import generator_for
from tacit.shapes import EdgeMask, EdgeProbs, PointPrediction
from tacit.training import FitResult, FitSettings, LatentGraphModel

DENSITY = 0.1  # default prior fraction of edges that exist
EARLY = "training stopped too early"
STAGE, KEPT_STAGE = "evidence: retraining without and with each edge", "fit: the edges that may exist"


@dataclass(frozen=True, eq=False)
class JudgedFit:
    """A fit of the edges that may exist.

    ``untrained``  the model before the fit, without the edges that were dropped and without a prior
    ``dropped``    edges that are fixed at 0 because they are unlikely to exist, not because of a rule
    """

    evidence: Evidence
    result: FitResult
    untrained: LatentGraphModel
    dropped: EdgeMask
    seconds: float


def judges_edges(plan: Plan, result: FitResult) -> bool:
    """Return whether edges are tested with this model."""
    graph = result.model.graph
    return evidence_method(plan.config, plan.own) == MODEL and graph.has_edge_probs and graph.has_all_pairs


def why_unknown(config: FitConfig, graph: GraphDistribution) -> str:
    """Return why the existence of edges was not tested, for a fit without evidence."""
    if config.graph.evidence == NONE:
        return 'evidence in [graph] is "none"'
    if not config.assessment.enabled:
        return "with this predictor it is part of the assessment, which is off"
    if not graph.has_edge_probs:
        return "the graph distribution has no probability for each edge"
    if not graph.has_all_pairs:
        return f"with this predictor it requires all pairs of nodes, and at most {MOST_EXPANDED} nodes"
    return "the run was stopped earlier"


def judge_edges(
    plan: Plan, result: FitResult, untrained: LatentGraphModel, split: Split, settings: FitSettings
) -> JudgedFit:
    """Return the evidence of a trained model, and the model retrained with the edges that may exist, without prior."""
    start, config, preparation = time.perf_counter(), plan.config, plan.dataset.preparation
    model, listener, compiled = result.model, plan.listener, bool(config.training.compile)
    listener.stage(STAGE)
    evidence = model_evidence(
        model,
        split.train,
        split.validation,
        settings,
        prior=prior_probs(plan.rules, config.graph.density or DENSITY),
        seed=plan.seed,
        block=block_length(config.assessment, preparation, len(split.train)),
        num_weights=plan.own.kind(config.predictor).edge_weights(preparation.sizes),
        node_names=plan.dataset.nodes,
        compile=compiled,
        on_progress=listener.step,
    )
    kept = evidence.kept.to(model.graph.fixed.device)
    dropped = model.graph.learned & ~kept
    if dropped.any() or model.prior is not None:
        listener.stage(KEPT_STAGE)
        model = keep_edges(
            without_prior(model), split.train, split.validation, settings, kept, seed=plan.seed, compile=compiled,
            on_progress=listener.step,
        )  # fmt: skip
    return JudgedFit(
        evidence,
        replace(result, model=model),
        without_prior(without_edges(untrained, dropped)),
        dropped.cpu(),
        time.perf_counter() - start,
    )


def prior_probs(rules: EdgeRules, density: float) -> EdgeProbs:
    """Return the prior probability that each edge exists: that of a rule, or the density."""
    prior = torch.full((len(rules.nodes), len(rules.nodes)), density)
    source, target, given, _ = rules.open_edges()
    known = ~given.isnan()
    prior[target[known], source[known]] = given[known].to(prior)
    return torch.maximum(prior, prior.mT) if rules.symmetric else prior


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

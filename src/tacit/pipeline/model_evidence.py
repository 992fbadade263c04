"""Evidence from the fitted model: edges that are unlikely to exist are fixed at 0, and the model is retrained."""

import time
from dataclasses import dataclass, replace

import torch

from tacit.assessment.evidence import Evidence, keep_edges, model_evidence, without_edges, without_prior
from tacit.config import FitConfig
from tacit.data import Split
from tacit.graph import EdgeRules, GraphDistribution
from tacit.pipeline.evidence import MODEL, NONE, evidence_method
from tacit.pipeline.layout import MOST_EXPANDED
from tacit.pipeline.plan import Plan
from tacit.pipeline.resampling import block_length
from tacit.shapes import EdgeMask, EdgeProbs
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
    return evidence_method(plan.config, plan.own) == MODEL and graph.has_edge_probs and graph.candidates is None


def why_unknown(config: FitConfig, graph: GraphDistribution) -> str:
    """Return why the existence of edges was not tested, for a fit without evidence."""
    if config.graph.evidence == NONE:
        return 'evidence in [graph] is "none"'
    if not config.assessment.enabled:
        return "with this predictor it is part of the assessment, which is off"
    if graph.candidates is not None:
        return f"with this predictor it requires all pairs of nodes, and at most {MOST_EXPANDED} nodes"
    return (
        "the graph distribution has no probability for each edge"
        if not graph.has_edge_probs
        else "the run was stopped earlier"
    )


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

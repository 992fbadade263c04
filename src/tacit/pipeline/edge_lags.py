"""The lags of the edges of a fit, from regressions on the edges that the evidence keeps."""

from dataclasses import replace

import numpy as np
import torch

from tacit.assessment.evidence import BELIEVED, KEEP, Candidates, lag_profiles
from tacit.data import usual_block
from tacit.edges import LagTable
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.evidence import RegressionEvidence, all_pairs

SURE = 0.9  # share of resamples
BEYOND = (
    "{source} -> {target} acts at lag {lag}, and the model reads {window} steps, which were enough to detect edges"
    "{others}; to let it read further back use --window {needed}"
)


def with_lags(evidence: RegressionEvidence, dataset: Dataset, seed: int) -> RegressionEvidence:
    """Return the evidence with the lags of the kept edges and their profiles; pairs without time have none.

    Both directions of an edge without direction have the mean of the two profiles. If edges may act within a step,
    profiles begin at lag 0.
    """
    preparation, nodes = dataset.preparation, len(dataset.nodes)
    if not preparation.is_series:
        return evidence
    source, target, exists = evidence.edges()
    kept = (exists >= KEEP) & (source != target)  # regressions do not test self-loops
    source, target, exists = source[kept], target[kept], exists[kept]
    candidates = Candidates.kept(evidence.rules, source, target, preparation.horizon)  # in the order of the edges
    believed, pairs = torch.zeros_like(candidates.used), all_pairs(dataset.split)
    believed[candidates.used] = exists >= BELIEVED
    within = None if evidence.within is None else evidence.within.acyclic
    if within is not None:
        believed[candidates.used] |= within[target, source]
    found = lag_profiles(
        *evidence.beside(pairs, preparation),
        candidates,
        believed,
        evidence.form,
        horizon=preparation.horizon,
        block=usual_block(len(pairs), preparation.reach),
        seed=seed,
        within=within,
    )
    effects, shares = found.effects[candidates.used], found.shares[candidates.used]
    if evidence.rules.symmetric:
        back = (source * nodes + target).argsort()  # the position of the other direction
        effects, shares = ((values + values[back]) / 2 for values in (effects, shares))
    known = ~effects.isnan().all(1)
    ends = {"source": source[known].tolist(), "target": target[known].tolist()}
    first = preparation.horizon if within is None else 0
    lags = LagTable(**ends, first=first, effects=effects[known], shares=shares[known])
    table = evidence.table
    lag = np.full(len(table), np.nan, dtype=np.float32)
    lag[table.index.find(source[known].numpy(), target[known].numpy())] = lags.dominant.numpy()
    return replace(evidence, table=replace(table.updated(lag=lag), lags=lags))


def lags_beyond(evidence: RegressionEvidence, dataset: Dataset) -> list[str]:
    """Return a note on edges that act with certainty at a lag beyond the window."""
    lags, nodes, window = evidence.table.lags, dataset.nodes, dataset.preparation.sizes.window
    newest = dataset.preparation.horizon
    if lags is None or not lags.source:
        return []
    source, target, exists = evidence.edges()
    believed = (target * len(nodes) + source)[exists >= BELIEVED]
    edges = torch.tensor(lags.target) * len(nodes) + torch.tensor(lags.source)
    lag, share = lags.dominant, lags.shares.nan_to_num(0.0).amax(1)
    sure = torch.isin(edges, believed) & (share >= SURE)
    beyond = (sure & (lag >= newest + window)).nonzero()[:, 0].tolist()
    if not beyond:
        return []
    first = max(beyond, key=lambda edge: float(lags.effects[edge].abs().nan_to_num(0.0).max()))
    count = len(beyond) - 1
    others = f" ({count} more edge{'s' * (count > 1)} beyond the window)" if count else ""
    said = BEYOND.format(
        source=nodes[lags.source[first]],
        target=nodes[lags.target[first]],
        lag=int(lag[first]),
        others=others,
        window=window,
        needed=int(lag[beyond].max()) - newest + 1,
    )
    return [said]

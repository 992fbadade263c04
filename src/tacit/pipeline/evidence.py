"""The evidence stage: which edges may exist, the first edges that are shown, and the lags of the kept edges."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from tacit.assessment.evidence import (
    BELIEVED,
    CAUTION,
    KEEP,
    RESAMPLES,
    SUGGESTION,
    Backgrounds,
    Candidates,
    ColumnForm,
    ParentEvidence,
    WithinStep,
    group_names,
    lag_profiles,
    likely_parents,
    may_exist,
    merged,
    parent_evidence,
    simplest_form,
    simultaneous_evidence,
)
from tacit.config import FitConfig
from tacit.data import Pairs, Split, usual_block
from tacit.edges import EdgeIndex, EdgeTable, LagTable
from tacit.graph import EdgeRules
from tacit.observation import ObservationModel
from tacit.pipeline.answer import within_columns
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.observation_kinds import regression_observation
from tacit.pipeline.parts import OwnParts
from tacit.pipeline.preparation import Preparation
from tacit.pipeline.simultaneous import may_suggest
from tacit.predictors import SeriesLayout

REGRESSION, MODEL, NONE = "regression", "model", "none"
NAMED = 5  # nodes in a sentence
SHORTEST_WINDOW = 2  # of a series: a window of one step would be a pair without time


def evidence_method(config: FitConfig, own: OwnParts) -> str:
    """Return the source of the evidence: regressions, or the model if influences act over several edges."""
    wish = config.graph.evidence
    if wish != "auto":
        return wish
    if config.predictor.kind == "auto":
        return REGRESSION
    return REGRESSION if own.kind(config.predictor).num_layers(config.predictor) == 1 else MODEL


@dataclass(frozen=True, eq=False)
class RegressionEvidence:
    """The evidence of regressions on all pairs of a data set, and its repetition on resamples.

    ``table``   whether each edge exists, its effect, and what else regressions know of it
    ``prior``   the prior that was used, for the record
    ``notes``   sentences for the user
    ``open``    edges that rules leave open: neither impossible nor required
    ``needed``  edges that regressions would drop but the fitted model needs; they are kept in every resample
    ``lags_needed``  number of lags that the window must have for the lag ranges of the rules
    ``within``  the effects within a step, if edges may have them
    ``observation``  the observation model of the regressions, if it is not Gaussian
    ``backgrounds``  the backgrounds of the targets, if any has one
    ``any_size``  the probability of each edge with effects of any size, without effects within a step
    ``changes``  the edges that change, as in ``record.json``
    """

    table: EdgeTable
    prior: dict[str, float | str]
    notes: tuple[str, ...]
    form: ColumnForm
    resamples: int
    seconds: float
    found: ParentEvidence
    rules: EdgeRules
    open: Bool[np.ndarray, " edge"]
    needed: Bool[np.ndarray, " edge"] | None = None
    lags_needed: int = 0
    within: WithinStep | None = None
    observation: ObservationModel | None = None
    backgrounds: Backgrounds | None = None
    any_size: Float[np.ndarray, " edge"] | None = None
    changes: tuple[dict[str, Any], ...] = ()

    @property
    def exists(self) -> Float[np.ndarray, " edge"]:
        """The probability that each edge exists; of a group of copies it is that of the first, the others have 0."""
        return self.table.of_groups

    @property
    def kept(self) -> Bool[np.ndarray, " edge"]:
        """The edges that are learned: those that may exist, and those that were not tested.

        The model has one direction of an edge within the step whose direction is open.
        """
        kept = self.table.kept
        if self.within is None:
            return kept
        return np.asarray(kept & (self.table.index.vector(self.within.modelled(KEEP).numpy()) | (self.exists >= 1)))

    @property
    def dropped(self) -> Bool[np.ndarray, " edge"]:
        """The possible edges that are unlikely to exist and are fixed at 0."""
        source, target, _, _ = self.rules.open_edges()
        possible = np.zeros(len(self.table), dtype=bool)
        possible[self.table.index.find(source.numpy(), target.numpy())] = True
        return np.asarray(possible & ~self.kept)

    def listed(self, fdr: float) -> Bool[np.ndarray, " edge"]:
        """Return the edges that the evidence lists at a false discovery rate."""
        return self.table.updated(learned=self.open & (self.kept | self.table.undirected)).listed(fdr)

    def edges(self) -> tuple[Int[Tensor, " edge"], Int[Tensor, " edge"], Float[Tensor, " edge"]]:
        """Return source, target and :attr:`exists` of every edge, by target and then source."""
        index = self.table.index
        return torch.from_numpy(index.source), torch.from_numpy(index.target), torch.from_numpy(self.exists)

    @property
    def window(self) -> int:
        """Number of past steps that a prediction uses."""
        return max(SHORTEST_WINDOW, self.form.lags, self.lags_needed)

    def kept_on(
        self, train: Pairs, preparation: Preparation, rows: Int[Tensor, "replica pair"], seed: int
    ) -> list[Bool[np.ndarray, " edge"]]:
        """Return the edges that each resample of the training pairs keeps; all the same with effects within a step."""
        if self.within is not None:
            return [self.kept] * len(rows)
        weights = torch.stack([torch.bincount(one.cpu(), minlength=len(train)) for one in rows]).double()
        probs = likely_parents(
            *self.beside(train, preparation),
            self.found.screened,
            self.form,
            self.found.density,
            weights=weights,
            seed=seed,
            horizon=preparation.horizon,
            observation=self.observation,
            believed=self.found.believed,
        )
        return [self._kept_by(one) for one in probs]

    def beside(self, pairs: Pairs, preparation: Preparation) -> tuple[Pairs, SeriesLayout]:
        """Return pairs with the background and the shared drivers of the evidence."""
        both = with_background(pairs, preparation, self.backgrounds)
        return both if self.found.drivers is None else self.found.drivers.added_to(*both)

    def _kept_by(self, probs: Float[Tensor, "target candidate"]) -> Bool[np.ndarray, " edge"]:
        index = self.table.index
        exists = placed(merged(probs, self.found.groups), self.found.screened, index)
        if self.rules.symmetric:
            exists = _both_ways(exists, self.found.density, self.rules, index)
        kept = may_exist(_with_rules(exists, self.rules, index)).numpy()
        return kept if self.needed is None else kept | self.needed

    def of_candidates(self, mask: Bool[np.ndarray, " edge"]) -> Bool[Tensor, "target candidate"]:
        """Return a mask of edges in the shape of the candidates."""
        screened = self.found.screened
        chosen = torch.zeros_like(screened.used)
        chosen[screened.used] = torch.from_numpy(mask[places_of(screened, self.table.index)])
        return chosen

    def with_needed(self, needed: Bool[np.ndarray, " edge"]) -> "RegressionEvidence":
        """Return the evidence with these edges kept; their ``exists`` is the lowest value of a kept edge."""
        exists = self.table["exists"]
        exists = np.where(needed, np.maximum(exists, np.array(KEEP, dtype=exists.dtype)), exists)
        return replace(self, table=self.table.updated(exists=exists), needed=needed)


def find_evidence(
    dataset: Dataset,
    rules: EdgeRules,
    config: FitConfig,
    seed: int,
    *,
    index: EdgeIndex,
    first_look: bool = False,
    averaged: bool = True,
    backgrounds: Backgrounds | None = None,
    earlier: RegressionEvidence | None = None,
) -> RegressionEvidence:
    """Return the evidence from all pairs of the data set, training, validation and test, for the edges of an index.

    The ``backgrounds`` of the targets are always in the regressions, beside the columns of the pairs.
    A ``first_look`` takes seconds: it uses only the newest value of each source, without resamples. Evidence that is
    not ``averaged`` over forms, backgrounds and resamples is enough to choose an observation model. The forms, the
    shared drivers and the weights of the rows of ``earlier`` evidence from the same pairs are used again.
    """
    start, preparation = time.perf_counter(), dataset.preparation
    pairs, layout = all_pairs(dataset.split), layout_of(preparation)
    block = usual_block(len(pairs), preparation.reach) if preparation.reach else 1
    candidates = Candidates.from_rules(rules.lagged, preparation.horizon)
    observation = None if first_look else regression_observation(config, preparation)
    found = parent_evidence(
        pairs,
        layout,
        candidates,
        seed=seed,
        horizon=preparation.horizon,
        block=block,
        density=config.graph.density,
        names=dataset.nodes,
        form=simplest_form(pairs, candidates) if first_look else None,
        resamples=0 if first_look or rules.simultaneous or not averaged else RESAMPLES,
        correlated=None if rules.simultaneous else SUGGESTION if may_suggest(config, preparation) else CAUTION,
        observation=observation,
        backgrounds=backgrounds,
        grouped=not rules.simultaneous and not rules.symmetric,
        driven=not first_look,
        averaged=averaged,
        earlier=None if earlier is None else earlier.found,
        smallest=config.graph.smallest_effect,
    )
    exists, effect, any_size = (
        placed(values, found.candidates, index) for values in (found.probs, found.effects, found.any_size)
    )
    prior: dict[str, float | str] = {
        "density": found.density,
        "learned": "no" if config.graph.density is not None else "yes",
        "columns": found.form.words(),
        "agreement": found.agreement,
    }
    within = None
    if rules.simultaneous and averaged and not first_look:
        both = with_background(pairs, preparation, backgrounds)
        together = simultaneous_evidence(
            *(both if found.drivers is None else found.drivers.added_to(*both, within=True)),
            found,
            rules.may_act_within_step,
            rules.must_act_within_step,
            prior=_given_priors(rules),
            density=config.graph.density,
            seed=seed,
            names=dataset.nodes,
        )
        exists, effect = (torch.from_numpy(index.vector(one.numpy())) for one in (together.exists, together.effect))
        within = together.within
        prior |= {"density": together.lagged_density, "density_within_step": together.within_density}
    if rules.symmetric:
        exists, any_size = (_both_ways(values, found.density, rules, index) for values in (exists, any_size))
        effect = (effect + effect[torch.from_numpy(index.reverse)]) / 2
    exists, any_size = (_with_rules(values, rules, index) for values in (exists, any_size))
    effect = effect.masked_fill(exists.isnan(), torch.nan)
    source, target, _, required = rules.open_edges()
    possible = index.find(source.numpy(), target.numpy())
    effect[possible[required.numpy()]] = torch.nan
    opened = np.zeros(len(index), dtype=bool)
    opened[possible] = ~required.numpy()
    table = EdgeTable(index, keep=KEEP, fdr=config.assessment.fdr)
    table = table.updated(exists=exists.float().numpy(), effect=effect.float().numpy())
    groups = placed(found.groups, found.screened, index)
    if groups.any():
        either = placed(found.either, found.candidates, index).masked_fill(groups == 0, torch.nan)
        names = group_names(index.source.tolist(), index.target.tolist(), groups.tolist(), rules.nodes)
        table = table.updated(exists_either=either.float().numpy(), group=np.array(names, dtype=object))
    if within is not None:
        table = table.updated(**{name: index.vector(one.numpy()) for name, one in within_columns(within).items()})
    return RegressionEvidence(
        table,
        prior,
        (*found.notes.values(), *_constant_targets(pairs, dataset.nodes)),
        found.form,
        found.resamples,
        time.perf_counter() - start,
        found,
        rules,
        opened,
        lags_needed=0 if rules.lag_ranges is None else rules.lag_ranges.reach - preparation.horizon + 1,
        within=within,
        observation=observation,
        backgrounds=backgrounds,
        any_size=None if first_look or within is not None else any_size.float().numpy(),
    )


def have_real_values(*observations: ObservationModel | None) -> bool:
    """Return whether all values of the observation models are real numbers; None is Gaussian noise."""
    models = [one for one in observations if one is not None]
    return all({*(one.supports or (one.support,))} == {"real"} for one in models)


def _given_priors(rules: EdgeRules) -> Float[Tensor, "node node"]:
    """Return the prior probability that rules give an edge, NaN elsewhere."""
    source, target, given, _ = rules.open_edges()
    found = torch.full((len(rules.nodes), len(rules.nodes)), torch.nan, dtype=torch.float64)
    found[target, source] = given.double()
    return found


def _constant_targets(pairs: Pairs, names: Sequence[str]) -> list[str]:
    """Return a note on the nodes with constant targets: edges into them cannot be tested."""
    known = torch.ones_like(pairs.targets, dtype=torch.bool) if pairs.observed is None else pairs.observed > 0
    high = pairs.targets.masked_fill(~known, -torch.inf).amax((0, 2))
    still = (high == pairs.targets.masked_fill(~known, torch.inf).amin((0, 2))).nonzero()[:, 0].tolist()
    if not still:
        return []
    rest = f" and {len(still) - NAMED} more" if len(still) > NAMED else ""
    nodes = ", ".join(names[node] for node in still[:NAMED]) + rest
    return [f"The targets of {nodes} are constant: edges into them cannot be tested."]


def layout_of(preparation: Preparation) -> SeriesLayout:
    """Return the layout of lags and features in the inputs."""
    sizes = preparation.sizes
    return SeriesLayout(sizes.window, sizes.num_features, sizes.out_channels, sizes.known)


def with_background(
    pairs: Pairs, preparation: Preparation, backgrounds: Backgrounds | None
) -> tuple[Pairs, SeriesLayout]:
    """Return pairs with the background of the evidence in place of that of the fit, which follows the past only."""
    layout, fitted = layout_of(preparation), preparation.background.size
    if fitted:
        pairs = replace(pairs, inputs=pairs.inputs[..., : pairs.inputs.shape[2] - fitted])
        layout = replace(layout, known=layout.known - fitted)
    return (pairs, layout) if backgrounds is None else backgrounds.added_to(pairs, layout)


def all_pairs(split: Split) -> Pairs:
    """Return the pairs of all parts, in their order, on the CPU."""
    parts = [part.to("cpu") for part in (split.train, split.validation, split.test)]
    observed = None
    if any(part.observed is not None for part in parts):
        observed = torch.cat([part.with_mask().observed for part in parts])  # type: ignore[misc]
    series = None
    if all(part.series is not None for part in parts):
        series = torch.cat([part.series for part in parts])  # type: ignore[misc]
    times = None
    if all(part.times is not None for part in parts):
        times = torch.cat([part.times for part in parts])  # type: ignore[misc]
    inputs, targets = (torch.cat([getattr(part, name) for part in parts]) for name in ("inputs", "targets"))
    if series is not None and times is not None:  # series that are each split in time order
        order = torch.from_numpy(np.lexsort((times.numpy(), series.numpy())))
        inputs, targets, series, times = inputs[order], targets[order], series[order], times[order]
        observed = None if observed is None else observed[order]
    return Pairs(inputs, targets, observed, series, times)


def places_of(candidates: Candidates, index: EdgeIndex) -> Int[np.ndarray, " edge"]:
    """Return the places of candidates in an index, in the order of their table."""
    target = candidates.targets[:, None].expand_as(candidates.sources)[candidates.used]
    return index.find(candidates.sources[candidates.used].numpy(), target.numpy())


def placed(
    values: Shaped[Tensor, "target candidate"], candidates: Candidates, index: EdgeIndex
) -> Shaped[Tensor, " edge"]:
    """Return numbers of candidates as a vector over an index, 0 elsewhere."""
    vector = values.new_zeros(len(index))
    vector[torch.from_numpy(places_of(candidates, index))] = values[candidates.used]
    return vector


def _with_rules(exists: Float[Tensor, " edge"], rules: EdgeRules, index: EdgeIndex) -> Float[Tensor, " edge"]:
    """Set required edges to 1 and learned self-loops to NaN, which regressions do not test."""
    source, target, _, required = rules.open_edges()
    places = torch.from_numpy(index.find(source.numpy(), target.numpy()))
    exists[places[required]] = 1.0
    exists[places[(source == target) & ~required]] = torch.nan
    return exists


def _both_ways(
    exists: Float[Tensor, " edge"], density: float, rules: EdgeRules, index: EdgeIndex
) -> Float[Tensor, " edge"]:
    """Return one probability for both directions: the log odds of both are added, with the prior counted once."""
    prior, back = torch.full_like(exists, density), torch.from_numpy(index.reverse)
    source, target, given, _ = rules.open_edges()
    known = ~given.isnan()
    prior[torch.from_numpy(index.find(source[known].numpy(), target[known].numpy()))] = given[known].to(prior)
    odds, before = torch.logit(exists.clamp(1e-12, 1 - 1e-12)), torch.logit(prior)
    return torch.where(exists > 0, torch.sigmoid(odds + odds[back] - before), 0.0)


SHOWN = 5
FIRST_LOOK = "first look (newest values only, before resampling)"
FROM_EVIDENCE = "from the evidence"
TOO_SMALL = (
    "{edges} not listed because the effect is small beside those of the other parents and drivers of the target. "
    "A slightly wrong form of these can look like such an effect (--smallest-effect 0 lists {them})."
)


def with_small_effects(evidence: RegressionEvidence, fdr: float) -> RegressionEvidence:
    """Return the evidence with a note on the edges that are not listed because their effects are too small."""
    if evidence.any_size is None:
        return evidence
    every = replace(evidence, table=evidence.table.updated(exists=evidence.any_size))
    count = int((every.listed(fdr) & ~evidence.listed(fdr)).sum())
    if not count:
        return evidence
    edges, them = ("1 edge is", "it") if count == 1 else (f"{count:,} edges are", "them")
    return replace(evidence, notes=(*evidence.notes, TOO_SMALL.format(edges=edges, them=them)))


def first_edges(evidence: RegressionEvidence, fdr: float, heading: str = FROM_EVIDENCE) -> str:
    """Return the edges that this evidence lists, the most likely first, in one line."""
    table, listed = evidence.table, np.flatnonzero(evidence.listed(fdr))
    if not len(listed):
        return f"{heading}: no edge is listed"
    listed = listed[np.argsort(-table.values[listed], kind="stable")]
    first = [f"{table.named(place)} {table.values[place]:.2f}" for place in listed[:SHOWN].tolist()]
    more = [f"and {len(listed) - SHOWN:,} more"] if len(listed) > SHOWN else []
    count = "1 edge" if len(listed) == 1 else f"{len(listed):,} edges"
    return f"{heading}: {', '.join([count, *first, *more])}"


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

"""Evidence from a fitted model: tests of the removal and insertion of edges.

Evidence from the fitted model: does removing an edge worsen the score, or inserting it improve the score?

With several hops, or in a network that all nodes share, an edge also affects nodes other than its target, so
regressions of each node on its sources do not suffice. Instead the model itself is tested on some of the training
pairs, with the training score:

1. Edges that training drove near 0 are fixed at 0. For each other edge, the loss in score without it is computed with
   everything else fixed; an edge whose removal costs almost nothing is not needed.
2. For each remaining edge, one short training from the current state without that edge; and one with all edges, on the
   same batches and random numbers. The loss per pair that other edges cannot compensate gives $z$
   (:mod:`tacit.assessment.evidence.flips`).
3. Edges that are not needed are removed together, and training continues. From this model each absent edge is tested:
   the slope of the score at probability 0 in standard errors is its $z$.
4. Absent edges that improve the score are inserted together and tested as in step 2: several may be proxies of one
   edge that training had lost.

An edge that is not needed when it is removed alone, but improves the score when similar edges are removed with it, can
be replaced: one of several edges exists. Its probability is the mean of the two.

The tests of ``model_evidence``: screening, removal and insertion of edges, on one set of pairs.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from tacit.assessment.evidence.flips import (
    Edges,
    differing_nodes,
    existence,
    loss_parabolas,
    shares_weights,
    signed_effects,
    standardised,
)
from tacit.assessment.evidence.result import KEEP, Evidence
from tacit.data import Pairs
from tacit.errors import require_int
from tacit.graph import Context
from tacit.predictors import edge_parameters_of, num_hops_of
from tacit.randomness import draw_uniforms, generator_for
from tacit.shapes import EdgeMask, EdgeProbs, UnitLoss
from tacit.training import CosineDecay, FitSettings, LatentGraphModel, Progress, fit

AVERAGED = 0.5  # last share of the steps that is averaged


class Course(NamedTuple):
    """The course of a short training: number of steps, and initial rate relative to that of the fit."""

    steps: int
    rate: float


# After the removal of a needed edge the other parameters must be refitted. After the removal of edges without effect
# they are nearly optimal, and the noise of training must be small: on the 12-node system (28,000 pairs, edges at a rate
# of 0.05) the edge probabilities were off by .0049 after 400 steps at half the rate, by .0035 at a fifth, by .0030
# after 800.
SEARCH, SETTLE = Course(128, 0.5), Course(800, 0.2)
COMPILE_FROM = 600  # steps of all replicas; compiling takes as long as a few hundred steps
PAIRS_AT_ONCE = 128
Removed = Bool[Tensor, "replica row slot"]


def without_prior(model: LatentGraphModel) -> LatentGraphModel:
    """Return a copy without a penalty on edges: the evidence uses its own prior, and the loss is that of the data."""
    copied = copy.deepcopy(model)
    copied.prior = None
    return copied


def without_edges(model: LatentGraphModel, removed: EdgeMask) -> LatentGraphModel:
    """Return a copy of the model in which some edges are fixed at 0."""
    copied = copy.deepcopy(model)
    graph = copied.graph
    removed = removed.to(graph.fixed.device)
    graph.load_state_dict(
        {"fixed": graph.fixed | removed, "fixed_probs": torch.where(removed, 0.0, graph.fixed_probs)}, strict=False
    )
    return copied


def with_edges(model: LatentGraphModel, inserted: EdgeMask, prob: float) -> LatentGraphModel:
    """Return a copy of the model in which some edges are learned again, starting at a given probability."""
    copied = copy.deepcopy(model)
    graph = copied.graph
    raw = torch.where(inserted, graph.link.raw(torch.full_like(graph.fixed_probs, prob)), graph.raw.detach())
    graph.load_state_dict({"fixed": graph.fixed & ~inserted, graph.link.parameter: raw}, strict=False)
    return copied


def retrain_without(
    model: LatentGraphModel,
    train: Pairs,
    validation: Pairs,
    settings: FitSettings,
    removed: Removed,
    *,
    course: Course = SEARCH,
    seed: int = 0,
    compile: bool = True,
    on_progress: Callable[[Progress], None] | None = None,
) -> list[LatentGraphModel]:
    """Return a model for each set of edges, trained from the current one with these edges fixed at 0."""
    graph = model.graph
    removed = removed.to(graph.fixed.device)
    held = {
        "graph.fixed": graph.fixed | removed,
        "graph.fixed_probs": torch.where(removed, 0.0, graph.fixed_probs),
    }
    result = fit(
        copy.deepcopy(model),
        train,
        validation,
        short(settings, len(train), course),
        seeds=[seed] * len(removed),
        compile=compile and len(removed) * course.steps >= COMPILE_FROM,
        start_at_model=True,
        constants=held,
        on_progress=on_progress,
    )
    if result.interrupted:
        raise KeyboardInterrupt
    models = []
    for replica, edges in enumerate(removed):
        trained = without_edges(model, edges)
        trained.load_state_dict({name: stack[replica] for name, stack in result.parameters.items()}, strict=False)
        models.append(trained)
    return models


def keep_edges(
    model: LatentGraphModel,
    train: Pairs,
    validation: Pairs,
    settings: FitSettings,
    kept: EdgeMask,
    *,
    seed: int = 0,
    compile: bool = True,
    on_progress: Callable[[Progress], None] | None = None,
) -> LatentGraphModel:
    """Return the model with only some of its edges, the others fixed at 0, and train it further."""
    removed = (model.graph.learned & ~kept.to(model.graph.fixed.device))[None]
    (trained,) = retrain_without(
        model, train, validation, settings, removed, course=SETTLE, seed=seed, compile=compile, on_progress=on_progress
    )
    return trained


def short(settings: FitSettings, num_pairs: int, course: Course) -> FitSettings:
    """Return the settings of a short training of at least two epochs."""
    per_epoch = max(1, num_pairs // min(settings.batch_size, num_pairs))
    return replace(
        settings,
        epochs=max(2, round(course.steps / per_epoch)),
        schedule=CosineDecay(course.rate * settings.schedule(0, settings.epochs)),
        average_fraction=AVERAGED,
        halve_after=(),
        patience=None,
    )


@torch.no_grad()
def unit_losses(model: LatentGraphModel, pairs: Pairs, *, num_graphs: int, seed: int) -> UnitLoss:
    """Return the loss of each pair and unit; compared models use the same random numbers."""
    generator = generator_for(seed, "removal", pairs.inputs.device)
    loss, graph, channels = model.loss.with_baseline("none"), model.graph, model.noise_channels
    rows, columns = graph.uniforms_shape
    losses = []
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        some = pairs[start : start + PAIRS_AT_ONCE]
        shape = (len(some), num_graphs, max(rows, graph.num_nodes if channels else 0), columns + channels)
        uniforms = draw_uniforms(*shape, generator=generator, dtype=some.inputs.dtype).to(some.inputs.device)
        graphs = model.graph_for(some.inputs, Context.of(some)).sample_from(uniforms[..., :rows, :columns])
        described = model.describe(some.inputs, graph.as_operator(graphs))
        if channels:
            described = model.observation.sample(described, uniforms[..., : graph.num_nodes, columns:])
        losses.append(loss(described, some.targets, some.observed).value)
    return torch.cat(losses)


NEAR_ZERO = 0.05  # edges with a lower probability are tested by insertion, the others by removal
INSERTED_AT = 0.2  # initial probability of an inserted edge
NEEDED = 0.5
SCREENED_PAIRS, SCREENED_GRAPHS, INSERTED_GRAPHS = 2048, 2, 2
SCORED_PAIRS, SCORED_GRAPHS = 4096, 4  # of the first pass; all pairs if the result is unclear
CLEAR = 0.01  # a probability within this distance of 0 or 1 is clear
POSSIBLE = 0.5  # z above which an absent edge is tested on all pairs
REPLICAS_AT_ONCE = 64
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class EdgeTests:
    """The tests of all edges of a model.

    ``train``       all training pairs
    ``pairs``       pairs of the first pass
    ``validation``  monitored during training; the result does not depend on it
    """

    model: LatentGraphModel
    train: Pairs
    pairs: Pairs
    validation: Pairs
    settings: FitSettings
    prior: EdgeProbs
    seed: int
    block: int
    num_weights: int
    compile: bool
    on_progress: Callable[[Progress], None] | None

    def run(self) -> EdgeProbs:
        """Return the probability that each edge exists."""
        graph = self.model.graph
        known, probs = graph.fixed, graph.edge_probs.detach()
        if known.all():
            return (probs > 0).double()
        missed = self._screen(~known & (probs >= NEAR_ZERO))
        removed, reduced = self._removals(self.model, missed, ~known & ~missed)
        needed = missed & (removed >= NEEDED)
        inserted = self._insertions(reduced, ~known & ~needed)
        welcome = ~missed & (inserted >= NEEDED)  # several may act as proxies of an edge that training had lost
        if welcome.any():
            others = ~known & ~needed & ~welcome
            again, reduced = self._removals(with_edges(reduced, welcome, INSERTED_AT), welcome, others)
            missed, removed = missed | welcome, torch.where(welcome, again, removed)
            left = welcome & (again < NEEDED)
            inserted = torch.where(left, self._insertions(reduced, left), inserted)
        replaceable = torch.where(removed >= NEEDED, removed, (removed + inserted) / 2)
        return torch.where(known, (probs > 0).double(), torch.where(missed, replaceable, inserted))

    def _screen(self, present: EdgeMask) -> EdgeMask:
        """Return the edges whose removal worsens the score if all other parameters are fixed."""
        places, found = places_of(present, symmetric=self.model.graph.symmetric), torch.zeros_like(self.prior)
        if len(places):
            pairs, generator = self.pairs[:SCREENED_PAIRS], self._generator("screen")
            parabolas = loss_parabolas(self.model, pairs, places, num_graphs=SCREENED_GRAPHS, generator=generator)
            probs = self.model.graph.edge_probs.detach()[places[:, 0], places[:, 1]]
            z = 2 * standardised(parabolas.rise_without(probs), self.block)
            self._place(found, places, self._existence(z, probs / z.clamp_min(1), len(pairs), places))
        return present & (found >= KEEP)

    def _removals(
        self, model: LatentGraphModel, missed: EdgeMask, absent: EdgeMask
    ) -> tuple[EdgeProbs, LatentGraphModel]:
        """Retrain without each of these edges; return the probability that each exists, and the reduced model."""
        removed, groups = torch.zeros_like(self.prior), self._groups(missed)
        for start in range(0, len(groups), REPLICAS_AT_ONCE):
            some = groups[start : start + REPLICAS_AT_ONCE]
            masks = [absent, *(absent | self._mask(places) for places in some)]
            same, *others = self._retrained(model, self.pairs, masks, SEARCH)
            own = {count: self._losses(same, count) for count in self.portions}
            for places, other in zip(some, others, strict=True):
                self._place(removed, places, self._missed(places, other, own))
        dropped = missed & (removed < NEEDED)
        (reduced,) = self._retrained(model, self.train, [absent | dropped], SETTLE)
        return removed, reduced

    def _missed(self, places: Edges, other: LatentGraphModel, own: dict[int, UnitLoss]) -> Tensor:
        """Return the probability that the edges missing in another model exist, from some pairs or, if unclear, all."""
        probs = self.model.graph.edge_probs.detach()[places[:, 0], places[:, 1]].clamp_min(INSERTED_AT)
        for count, losses in own.items():
            rise = self._losses(other, count) - losses  # (batch, unit)
            apart = [rise[:, row] for row, _ in places.tolist()] if len(places) > 1 else [rise.mean(1)]
            z = 2 * standardised(torch.stack(apart), self.block)
            found = self._existence(z, probs / z.clamp_min(1), count, places)
            if ((found < CLEAR) | (found > 1 - CLEAR)).all():
                break
        return found

    def _insertions(self, reduced: LatentGraphModel, tried: EdgeMask) -> EdgeProbs:
        """Return the probability that each absent edge exists, from the slope of the score at probability 0."""
        inserted = torch.zeros_like(self.prior)
        places = places_of(tried, symmetric=reduced.graph.symmetric)
        for pairs in (self.pairs, self.train):
            if not len(places):
                break
            generator = self._generator("insert")
            found = loss_parabolas(reduced, pairs, places, num_graphs=INSERTED_GRAPHS, generator=generator)
            z = standardised(-found.slope, self.block)
            best = found.slope.mean(1) / (-2 * found.curvature.mean(1)).clamp_max(-TINY)  # least loss
            self._place(inserted, places, self._existence(z, (best / z).abs(), len(pairs), places))
            if len(pairs) == len(self.train):
                break
            places = places[z > POSSIBLE]
        return inserted

    def _groups(self, missed: EdgeMask) -> list[Edges]:
        """Return the edges that one retraining removes: one, or one per node if nodes are independent of each other."""
        places, model = places_of(missed, symmetric=self.model.graph.symmetric), self.model
        apart = num_hops_of(model.predictor) == 1 and edge_parameters_of(model.predictor) and model.loss.scope == "node"
        if not apart or model.graph.symmetric:
            return list(torch.split(places, 1)) if len(places) else []
        order = torch.cat([torch.arange(int(row.sum()), device=places.device) for row in missed])
        return [places[order == number] for number in range(int(order.max()) + 1)] if len(places) else []

    def _mask(self, places: Edges) -> EdgeMask:
        mask = torch.zeros_like(self.model.graph.fixed)
        mask[places[:, 0], places[:, 1]] = True
        return mask | mask.mT if self.model.graph.symmetric else mask

    def _retrained(
        self, model: LatentGraphModel, pairs: Pairs, removed: list[EdgeMask], course: Course
    ) -> list[LatentGraphModel]:
        return retrain_without(
            model,
            pairs,
            self.validation,
            self.settings,
            torch.stack(removed),
            course=course,
            seed=self.seed,
            compile=self.compile,
            on_progress=self.on_progress,
        )

    @property
    def portions(self) -> list[int]:
        """Numbers of pairs to score: some, then all."""
        return sorted({min(SCORED_PAIRS, len(self.pairs)), len(self.pairs)})

    def _losses(self, model: LatentGraphModel, count: int) -> UnitLoss:
        return unit_losses(model, self.pairs[:count], num_graphs=SCORED_GRAPHS, seed=self.seed)

    def _existence(self, z: Tensor, std_error: Tensor, num_pairs: int, places: Edges) -> Tensor:
        prior, units = self.prior[places[:, 0], places[:, 1]], max(1, num_pairs // self.block)
        return existence(z, std_error, prior, num_units=units, num_weights=self.num_weights)

    def _place(self, matrix: Tensor, places: Edges, values: Tensor) -> None:
        matrix[places[:, 0], places[:, 1]] = values.to(matrix)
        if self.model.graph.symmetric:
            matrix[places[:, 1], places[:, 0]] = values.to(matrix)

    def _generator(self, purpose: str) -> torch.Generator:
        return generator_for(self.seed, purpose, self.pairs.inputs.device)


def places_of(mask: EdgeMask, *, symmetric: bool) -> Edges:
    """Return the positions of edges; for a symmetric graph one of each pair."""
    return (mask.triu() if symmetric else mask).nonzero()


MOST_PAIRS = 8192
SOME_PAIRS = "Edges were tested on {some:,} of {all:,} training pairs, and on all pairs where the result was unclear."
DIFFERENT = (
    "The nodes {nodes} differ from the others in ways that weights shared by all nodes cannot express: the model may "
    "use edges to distinguish nodes, and an edge of the model is not necessarily a relation."
)
NAMED = 5  # nodes named in a sentence


def model_evidence(
    model: LatentGraphModel,
    train: Pairs,
    validation: Pairs,
    settings: FitSettings,
    *,
    prior: EdgeProbs | float = 0.1,
    seed: int = 0,
    block: int = 1,
    num_weights: int = 0,
    node_names: Sequence[str] | None = None,
    compile: bool = True,
    on_progress: Callable[[Progress], None] | None = None,
) -> Evidence:
    """Return the probability that each edge of a trained model exists; fixed edges count as known.

    ``settings``     settings of the fit
    ``prior``        prior probability that an edge exists, one for all or one for each
    ``block``        number of neighbouring pairs in a series that are not independent
    ``num_weights``  number of weights per edge
    ``node_names``   names used in sentences

    The model is not changed.
    """
    model.graph.require_all_pairs("model_evidence")
    require_int("block", block)
    some = _some(train, block)
    judge = without_prior(model).to(train.inputs.device, train.inputs.dtype)
    before = torch.as_tensor(prior, dtype=torch.float64, device=train.inputs.device).expand(judge.graph.edge_shape)
    tests = EdgeTests(
        judge,
        train,
        some,
        validation[:SCREENED_PAIRS],
        settings,
        before,
        seed,
        block,
        num_weights,
        compile,
        on_progress,
    )
    exists = tests.run()
    learned = judge.graph.learned
    places = places_of(exists >= KEEP, symmetric=judge.graph.symmetric)
    generator = generator_for(seed, "effects", train.inputs.device)
    effect = signed_effects(judge, some, places, generator=generator)
    notes = [SOME_PAIRS.format(some=len(some), all=len(train))] if len(some) < len(train) else []
    if shares_weights(judge):
        generator = generator_for(seed, "exchangeability", train.inputs.device)
        differ = differing_nodes(judge, some, generator=generator).nonzero()[:, 0].tolist()
        if differ:
            notes.append(DIFFERENT.format(nodes=_listed(differ, node_names)))
    return Evidence(
        exists.float().cpu(),
        effect,
        {"density": round(float(before[learned].mean()), 6) if learned.any() else 0.0, "acting": "2 theta on [0, 1]"},
        "model",
        tuple(notes),
    )


def _some(train: Pairs, block: int) -> Pairs:
    """Return the pairs for the tests: all of them, or evenly spread whole blocks."""
    if len(train) <= MOST_PAIRS:
        return train
    block = min(block, MOST_PAIRS)
    blocks, count = len(train) // block, MOST_PAIRS // block
    chosen = torch.arange(count) * blocks // count
    rows = (chosen[:, None] * block + torch.arange(block)).flatten()
    return train[rows.to(train.inputs.device)]


def _listed(nodes: list[int], names: Sequence[str] | None) -> str:
    shown = [str(node) if names is None else names[node] for node in nodes]
    rest = f" and {len(shown) - NAMED} more" if len(shown) > NAMED else ""
    return ", ".join(shown[:NAMED]) + rest

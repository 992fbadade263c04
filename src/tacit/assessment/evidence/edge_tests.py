"""The tests of ``model_evidence``: screening, removal and insertion of edges, on one set of pairs."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from tacit.assessment.evidence.bayes_factor import existence, standardised
from tacit.assessment.evidence.flips import Edges, loss_parabolas
from tacit.assessment.evidence.result import KEEP
from tacit.assessment.evidence.retraining import SEARCH, SETTLE, Course, retrain_without, unit_losses, with_edges
from tacit.data import Pairs
from tacit.predictors import edge_parameters_of, num_hops_of
from tacit.randomness import generator_for
from tacit.shapes import EdgeMask, EdgeProbs, UnitLoss
from tacit.training import FitSettings, LatentGraphModel, Progress

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

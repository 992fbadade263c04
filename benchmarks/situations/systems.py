r"""The paper's 12 nodes with edges that depend on the situation, or that come together.

===========  =======================================================================================
``hour``     20 of 50 edges follow the hour, $\theta = .5 + .4 \sin(2\pi (h + s_{ij}))$, $s$ at random
``category`` 20 edges have .9, .5 and .1 in the three levels, in an order of their own
``input``    20 edges act with .9 where the first input of the source is above .5, else with .2
``constant`` no edge depends on anything; the hour and the category are there all the same
``rows``     a node reads all its neighbours (with .75) or none
``regimes``  the graph has two regimes that switch slowly, of weights .6 and .4: edges of the first community act with
             .9 and those of the second with .3, or the other way round
===========  =======================================================================================

All other edges of the paper's graph act with .75.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.data import Pairs
from tacit.graph import (
    BernoulliGraph,
    Blocks,
    Category,
    Context,
    ContextVariable,
    CovariatePhase,
    MixtureGraph,
    OwnInput,
    Periodic,
    SeriesNumber,
    Smooth,
)
from tacit.predictors import HopPredictor
from tacit.randomness import generator_for
from tacit.systems import CommunitySystem
from tacit.systems.community import NODES_PER_COMMUNITY

NUM_PAIRS, NUM_NODES, NUM_VARYING = 35_000, 12, 20  # four of five pairs train
LEVELS = (0.9, 0.5, 0.1)
ABOVE, BELOW, THRESHOLD = 0.9, 0.2, 0.5
REGIME_WEIGHTS, STAY = (0.6, 0.4), 0.99
HIGH, LOW = 0.9, 0.3
SMALLEST = 1e-7  # probability of an edge that a regime does not have
HOURS = 24
VARYING = ("hour", "category", "input")


@dataclass(frozen=True)
class SituationSystem:
    """One system; its seed draws which edges vary, and the pairs."""

    kind: str
    seed: int

    @cached_property
    def base(self) -> CommunitySystem:
        """The paper's system."""
        return CommunitySystem()

    @cached_property
    def edges(self) -> Tensor:
        """The edges that exist."""
        return self.base.true_edge_probs > 0

    @cached_property
    def varying(self) -> Tensor:
        """The edges that depend on the situation."""
        mask = torch.zeros_like(self.edges)
        if self.kind in VARYING:
            places = self.edges.nonzero()
            chosen = torch.randperm(len(places), generator=generator_for(self.seed, "varying"))[:NUM_VARYING]
            mask[tuple(places[chosen].unbind(1))] = True
        return mask

    def theta(self, context: Context) -> Float[Tensor, "pair node node"]:
        """Return the probability of each edge for each pair."""
        generator = generator_for(self.seed, "shapes")
        shape = (NUM_NODES, NUM_NODES)
        if self.kind == "hour":
            assert context.covariates is not None
            phase = torch.atan2(context.covariates[:, 0], context.covariates[:, 1]) / (2 * torch.pi)
            shifts = torch.rand(shape, generator=generator).to(phase)
            found = 0.5 + 0.4 * torch.sin(2 * torch.pi * (phase[:, None, None] + shifts))
        elif self.kind == "category":
            assert context.series is not None
            order = torch.rand(3, *shape, generator=generator).argsort(0)
            found = torch.tensor(LEVELS)[order].to(context.inputs)[context.series]
        elif self.kind == "input":
            above = context.inputs[:, None, :, 0] > THRESHOLD
            found = torch.where(above, ABOVE, BELOW).to(context.inputs).expand(-1, NUM_NODES, -1)
        else:
            found = self.base.true_edge_probs.to(context.inputs).expand(len(context.inputs), *shape)
        return torch.where(self.varying.to(found.device), found, self.base.true_edge_probs.to(found))

    def generate(self, num_pairs: int = NUM_PAIRS) -> tuple[Pairs, Int[Tensor, " pair"]]:
        """Return pairs with the hour as covariates and the category as series, and the regime of each pair."""
        rng = generator_for(self.seed, "pairs")
        inputs = self.base.input_scale * torch.randn(num_pairs, NUM_NODES, 4, generator=rng)
        angle = 2 * torch.pi * torch.rand(num_pairs, generator=rng)
        hour = torch.stack([angle.sin(), angle.cos()], 1)
        category = torch.randint(0, 3, (num_pairs,), generator=rng)
        times = torch.arange(num_pairs, dtype=torch.float64)
        context = Context(inputs, hour, category, times)
        regimes = _slow_switches(num_pairs, rng)
        uniforms = torch.rand(num_pairs, 1, NUM_NODES, NUM_NODES, generator=rng)
        probs = self.true_graph().regime_probs.detach()[regimes] if self.kind == "regimes" else self.theta(context)
        if self.kind == "rows":
            uniforms = uniforms[..., :1].expand_as(uniforms)
        graphs = (uniforms < probs[:, None]).float()
        with torch.no_grad():
            targets = self.base.true_predictor()(inputs, graphs)[:, 0]
        return Pairs(inputs, targets, series=category, times=times, covariates=hour), regimes

    def true_graph(self) -> MixtureGraph:
        """Return the distribution of graphs with two regimes, of the rows or of all edges."""
        if self.kind == "rows":
            regimes, weights = torch.tensor([1.0, 0.0])[:, None, None].expand(2, *self.edges.shape), (0.75, 0.25)
        else:
            first = torch.arange(NUM_NODES) < NODES_PER_COMMUNITY
            both = [torch.where(own[:, None], HIGH, LOW).expand(-1, NUM_NODES) for own in (first, ~first)]
            regimes, weights = torch.stack(both), REGIME_WEIGHTS
        blocks: Blocks = "rows" if self.kind == "rows" else "all"
        graph = MixtureGraph(BernoulliGraph(torch.where(self.edges, 0.5, 0.0), fixed=~self.edges), 2, blocks)
        with torch.no_grad():
            graph.edge_logits.copy_(torch.where(self.edges, torch.logit(regimes, SMALLEST), graph.edge_logits))
            graph.weight_logits.copy_(torch.tensor([weights]).log().expand_as(graph.weight_logits))
        return graph

    def marginals(self) -> Float[Tensor, "node node"]:
        """Return the probability of each edge over all situations, of systems without varying edges."""
        return self.true_graph().edge_probs.detach() if self.kind == "regimes" else self.base.true_edge_probs

    def variables(self, training: Context) -> list[ContextVariable]:
        """Return the variable that the model takes edges to depend on; without dependence, the hour."""
        if self.kind == "category":
            return [Category("category", SeriesNumber(), labels=("a", "b", "c"))]
        if self.kind == "input":
            return [Smooth.of("source", OwnInput("source", 0), training)]
        reading = CovariatePhase((0, 1), (0.0, 0.0), (1.0, 1.0))
        hours = range(HOURS)
        return [Periodic("hour", reading, [hour / HOURS for hour in hours], [str(hour) for hour in hours])]

    def predictor(self, psi: str) -> HopPredictor:
        """Return the true predictor (psi "known") or a random one of the same form ("learned")."""
        if psi == "known":
            return self.base.true_predictor()
        return HopPredictor.random(2, 4, 1, generator=generator_for(self.seed, "learned"))


def _slow_switches(num_pairs: int, generator: torch.Generator) -> Int[Tensor, " pair"]:
    """Return a regime for each pair: it stays with .99, and is drawn anew by its weight otherwise."""
    stays = torch.rand(num_pairs, generator=generator) < STAY
    drawn = (torch.rand(num_pairs, generator=generator) > REGIME_WEIGHTS[0]).long()
    stays[0] = False
    last = torch.where(stays, -1, torch.arange(num_pairs)).cummax(0).values
    return drawn[last]

r"""The interface of graph distributions: draw graphs from uniforms, and compute their probability.

$$A \sim P_\theta(A \mid c)$$

$c$ is the context of a pair: its inputs and, where the data have them, its covariates, series and time. A distribution
that does not depend on it is its own condition. The gradient for $\theta$ needs the draw and the log-probability only,

$$\nabla_\theta E[L] = E\Big[ \tfrac1S \sum_s w_s\, \nabla_\theta \log P_\theta(A_s) \Big]$$

with a weight $w_s$ per graph, or, where edges are independent, a weight per edge.

A distribution of a user's own requires ``edge_shape``, ``edge_probs``, ``sample_from``, ``log_prob`` and
``initial_parameters``; docs/how-to/extending.md has one in ten lines.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn
from torch.func import functional_call, vmap

from tacit.data import Pairs
from tacit.errors import InputError, require, require_int
from tacit.graph.aggregation import AnyGraphs, CandidateGraphs
from tacit.graph.candidate_edges import CandidateEdges
from tacit.graph.links import Link, Unlinked
from tacit.shapes import EdgeLogProbs, EdgeMask, EdgeProbs, EdgeWeights, Graphs, Inputs, LogProb, Scalar, Uniforms


@dataclass(frozen=True)
class Context:
    """The variables that graphs may depend on, a row per pair; None where the data have none.

    ``inputs``      the inputs of the pairs
    ``covariates``  numbers that are known and shared by all nodes
    ``series``      which series a pair belongs to, counted from 0
    ``times``       when
    """

    inputs: Inputs
    covariates: Float[Tensor, "batch covariate"] | None = None
    series: Int[Tensor, " batch"] | None = None
    times: Float[Tensor, " batch"] | None = None

    @classmethod
    def of(cls, pairs: Pairs) -> "Context":
        """Return what pairs know."""
        return cls(pairs.inputs, pairs.covariates, pairs.series, pairs.times)

    def __getitem__(self, rows: Tensor | slice) -> "Context":
        return Context(*(None if part is None else part[rows] for part in vars(self).values()))  # type: ignore[arg-type]


class GraphDistribution(nn.Module, ABC):
    """The interface; capabilities are attributes of the class.

    ``independent_edges``  edges are independent, so that each can have a weight of its own
    ``independent_rows``   the edges of a row are independent of those of others, so that each row can have a weight of
                           its own (credit by receptive field); they are where all edges are
    ``has_edge_probs``     each edge has a probability, $A_{ij} = 1[u_{ij} < \\theta_{ij}]$, for all pairs: the tensors
                           ``fixed``, ``fixed_probs``, ``raw`` and the methods ``log_probs``, ``probs_from`` are there,
                           as priors, relaxations, the sandwich and the search for unidentifiable edges need them
    ``context_fields``     the fields of :class:`Context` that :meth:`condition` needs
    ``candidates``              the table of candidates that graphs are over; None: all pairs of nodes
    ``symmetric``          the two entries of a pair are one edge
    ``link``               how the stored tensor ``link.parameter`` becomes probabilities, where there is one
    """

    independent_edges: ClassVar[bool] = False
    has_edge_probs: ClassVar[bool] = False
    context_fields: tuple[str, ...] = ()
    candidates: CandidateEdges | None = None
    symmetric: bool = False
    link: Link = Unlinked()
    fixed: EdgeMask  # of coins: which are held at a value
    fixed_probs: EdgeProbs  # that value, 0 for the others
    initial_range: tuple[float, float] | None  # of coins: where replicas start, see BernoulliGraph
    initial_spread: float

    @classmethod
    def from_start(cls, start: "GraphDistribution") -> "GraphDistribution":
        """Return the distribution that a config asks for by name.

        ``start`` is a :class:`~tacit.graph.BernoulliGraph` with the rules, the table of candidates, the link and the
        probabilities to start at; a distribution takes of it what it can use.
        """
        return cls(start)

    @property
    @abstractmethod
    def edge_shape(self) -> tuple[int, int]:
        """Rows and candidates of a graph: nodes and nodes, or those of the table of candidates."""

    @property
    @abstractmethod
    def edge_probs(self) -> EdgeProbs:
        r"""The marginal probability of each edge; of a conditional distribution without a context, what it can say."""

    @abstractmethod
    def sample_from(self, uniforms: Uniforms) -> Graphs:
        """Return the graphs that given uniforms make, of 0 and 1; no gradient passes."""

    @abstractmethod
    def log_prob(self, graphs: Graphs) -> LogProb:
        r"""Return $\log P_\theta(A)$ of every graph."""

    @abstractmethod
    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return where a replica of a fit starts."""

    def condition(self, context: Context) -> "GraphDistribution":
        """Return the distribution for some pairs; itself by default. Its graphs have the pairs as their first axis."""
        del context
        return self

    def conditioned(self, context: Context) -> "GraphDistribution":
        """Return :meth:`condition` of a context that has what is needed, else raise :class:`InputError`."""
        for field in self.context_fields:
            require(
                getattr(context, field) is not None,
                f"context must have {field} for {type(self).__name__}, got None; pass context=Context(inputs, "
                f"{field}=...)",
            )
        return self.condition(context)

    @property
    def independent_rows(self) -> bool:
        """Are the edges of each row independent of those of others?"""
        return self.independent_edges

    def penalty(self) -> Scalar | None:
        """Return what is added to the loss of a pair, for a distribution that shrinks its parameters; None for none."""
        return None

    def weighted_log_prob(self, weights: EdgeWeights, graphs: Graphs) -> Scalar:
        r"""Return $\mathrm{mean}_s\, w_s \log P(A_s)$ over all graphs, with the last two axes of ``weights`` of size 1.

        Where edges are independent, a distribution takes weights per edge: $\sum_{ij} w_{sij} \log P(A_{s,ij})$.
        """
        logs = self.log_prob(graphs)
        return torch.where(weights[..., 0, 0] == 0, 0.0, weights[..., 0, 0] * logs).mean()

    @property
    def uniforms_shape(self) -> tuple[int, int]:
        """Shape of the uniforms that one graph is made of; by default one per edge."""
        return self.edge_shape

    def sample(self, num_graphs: int, *, num_pairs: int = 1, generator: Generator) -> Graphs:
        """Draw ``num_graphs`` graphs for each of ``num_pairs`` pairs."""
        require_int("num_graphs", num_graphs)
        require_int("num_pairs", num_pairs)
        shape, like = (num_pairs, num_graphs, *self.uniforms_shape), self.raw
        return self.sample_from(torch.rand(shape, generator=generator, device=like.device, dtype=like.dtype))

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.edge_shape[1] if self.candidates is None else self.candidates.num_nodes

    def as_operator(self, graphs: Graphs) -> AnyGraphs:
        """Return graphs as a predictor reads them: ``graphs @ messages`` adds up what each node reads."""
        return graphs if self.candidates is None else CandidateGraphs(graphs, self.candidates)

    def forward(self) -> EdgeProbs:
        """Return :attr:`edge_probs`, so that they can be asked for other parameters by ``functional_call``."""
        return self.edge_probs

    def probs_of(self, parameters: Mapping[str, Tensor]) -> Float[Tensor, "replica row slot"]:
        """Return the edge probabilities of many replicas; ``parameters`` are stacks of this module's own."""

        def of_one(one: dict[str, Tensor]) -> Tensor:
            probs: Tensor = functional_call(self, one, ())
            return probs

        return vmap(of_one)(dict(parameters))

    @property
    def raw(self) -> Tensor:
        """A stored tensor: its device and type are those of the distribution."""
        return next(chain(self.parameters(), self.buffers()), torch.zeros(()))

    def probs_from(self, raw: Float[Tensor, "*replica row slot"]) -> Float[Tensor, "*replica row slot"]:
        """Return the probabilities that other stored numbers would give, where there is a coin per edge."""
        del raw
        raise self._without_coins("probs_from")

    def log_probs(self) -> tuple[EdgeLogProbs, EdgeLogProbs]:
        r"""Return $\log \theta$ and $\log(1 - \theta)$, where there is a coin per edge."""
        raise self._without_coins("log_probs")

    def clamp_probs(
        self, raw: Float[Tensor, "*replica row slot"], floor: float | Tensor
    ) -> Float[Tensor, "*replica row slot"]:
        """Return stored numbers whose probabilities are not nearer to 0 and 1 than ``floor``; all as they are here."""
        del floor
        return raw

    @property
    def learned(self) -> EdgeMask:
        """Which edges are learned: all of them, unless a distribution holds some at a value."""
        return torch.ones(self.edge_shape, dtype=torch.bool, device=self.raw.device)

    def symmetrize(self, values: Float[Tensor, "*any row slot"]) -> Float[Tensor, "*any row slot"]:
        """Return the values of i <= j in both places of a pair if the graph is symmetric, else all as they are."""
        return values.triu() + values.triu(1).mT if self.symmetric else values

    def upper_triangle(self, values: Float[Tensor, "*any row slot"]) -> Float[Tensor, "*any row slot"]:
        """Return the values with 0 where an entry repeats another: those of i > j if the graph is symmetric."""
        return values.triu() if self.symmetric else values

    def require_edge_probs(self, what: str) -> None:
        """Raise :class:`InputError` unless this distribution has a coin per edge."""
        if not self.has_edge_probs:
            raise self._without_coins(what)

    def require_all_pairs(self, what: str) -> None:
        """Raise :class:`InputError` unless this is a coin per edge over all pairs of nodes."""
        self.require_edge_probs(what)
        require(
            self.candidates is None,
            f"{what} requires a graph over all pairs of nodes, got a table of candidates; use "
            "tacit.training.densify(model) where there are few nodes",
        )

    def _without_coins(self, what: str) -> InputError:
        return InputError(
            f"{what} requires a graph with independent edges, got {type(self).__name__}; use BernoulliGraph"
        )


def times(weight: Tensor, log: Tensor) -> Tensor:
    """Multiply; what never happened counts for nothing, even if it is impossible."""
    return torch.where(weight == 0, 0.0, weight * log)

r"""The interface of graph distributions: draw graphs from uniforms, and compute their probability.

$$A \sim P_\theta(A \mid c)$$

$c$ is the context of a pair: its inputs and, where the data have them, its covariates, series and time. A distribution
that does not depend on it conditions to itself. The gradient for $\theta$ requires only the draw and the
log-probability,

$$\nabla_\theta E[L] = E\Big[ \tfrac1S \sum_s w_s\, \nabla_\theta \log P_\theta(A_s) \Big]$$

with one weight $w_s$ per graph or, if edges are independent, one weight per edge.

A custom distribution must implement ``edge_shape``, ``edge_probs``, ``sample_from``, ``log_prob`` and
``initial_parameters``; docs/how-to/extending.md shows one in ten lines.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Generator, Tensor, nn
from torch.func import functional_call, vmap

from tacit.data import Pairs
from tacit.edges import EdgeIndex, EdgeTable
from tacit.errors import InputError, require, require_int
from tacit.graph.layouts import AllPairs, CandidateEdges, Layout
from tacit.graph.links import Link, Unlinked
from tacit.graph.operators import AnyGraphs, CandidateGraphs
from tacit.shapes import EdgeLogProbs, EdgeMask, EdgeProbs, EdgeWeights, Graphs, Inputs, LogProb, Scalar, Uniforms


@dataclass(frozen=True)
class Context:
    """The variables that graphs may depend on, one row per pair; None for variables that the data do not have.

    ``inputs``      the inputs of the pairs
    ``covariates``  known numbers that all nodes share
    ``series``      the series that a pair belongs to, counted from 0
    ``times``       the time of the pair
    """

    inputs: Inputs
    covariates: Float[Tensor, "batch covariate"] | None = None
    series: Int[Tensor, " batch"] | None = None
    times: Float[Tensor, " batch"] | None = None

    @classmethod
    def of(cls, pairs: Pairs) -> "Context":
        """Return the context of some pairs."""
        return cls(pairs.inputs, pairs.covariates, pairs.series, pairs.times)

    def __getitem__(self, rows: Tensor | slice) -> "Context":
        return Context(*(None if part is None else part[rows] for part in vars(self).values()))  # type: ignore[arg-type]


class GraphDistribution(nn.Module, ABC):
    """Interface of graph distributions; capabilities are attributes of the class.

    ``independent_edges``  edges are independent, so each edge can have its own weight in the gradient
    ``independent_rows``   rows are independent of each other, so each row can have its own weight in the gradient
                           (credit by receptive field); true if all edges are independent
    ``has_edge_probs``     each edge has one probability, $A_{ij} = 1[u_{ij} < \\theta_{ij}]$, the same for all pairs.
                           The tensors ``fixed``, ``fixed_probs``, ``raw`` and the methods ``log_probs``,
                           ``probs_from`` exist; priors, relaxations, the sandwich and the identifiability analysis
                           require them
    ``context_fields``     the fields of :class:`Context` that :meth:`condition` requires
    ``candidates``         the table of candidate edges; None: all pairs of nodes. Ask :attr:`layout` instead
    ``symmetric``          the two entries of a pair are one edge
    ``link``               maps the stored tensor ``link.parameter`` to probabilities, if there is one
    """

    independent_edges: ClassVar[bool] = False
    has_edge_probs: ClassVar[bool] = False
    context_fields: tuple[str, ...] = ()
    candidates: CandidateEdges | None = None
    symmetric: bool = False
    link: Link = Unlinked()
    fixed: EdgeMask  # with edge probabilities: the entries that are not learned
    fixed_probs: EdgeProbs  # the fixed value, 0 for the others
    initial_range: tuple[float, float] | None  # with edge probabilities: initial values, see BernoulliGraph
    initial_spread: float

    @classmethod
    def from_start(cls, start: "GraphDistribution") -> "GraphDistribution":
        """Build the distribution that a config names.

        ``start`` is a :class:`~tacit.graph.BernoulliGraph` with the rules, the table of candidates, the link and the
        initial probabilities; a distribution uses the parts that apply to it.
        """
        return cls(start)

    @property
    @abstractmethod
    def edge_shape(self) -> tuple[int, int]:
        """Shape of a graph: (node, node), or the (row, slot) of the table of candidates."""

    @property
    @abstractmethod
    def edge_probs(self) -> EdgeProbs:
        r"""The marginal probability of each edge; a conditional distribution returns an average over contexts."""

    @abstractmethod
    def sample_from(self, uniforms: Uniforms) -> Graphs:
        """Return the graphs of given uniforms, entries 0 or 1, without a gradient."""

    @abstractmethod
    def log_prob(self, graphs: Graphs) -> LogProb:
        r"""Return $\log P_\theta(A)$ of every graph."""

    @abstractmethod
    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return the initial parameters of a replica of a fit."""

    def condition(self, context: Context) -> "GraphDistribution":
        """Return the distribution given some pairs, by default ``self``; the first axis of its graphs is the pairs."""
        del context
        return self

    def conditioned(self, context: Context) -> "GraphDistribution":
        """Return :meth:`condition`; raise :class:`InputError` if the context lacks a required field."""
        for field in self.context_fields:
            require(
                getattr(context, field) is not None,
                f"context must have {field} for {type(self).__name__}, got None; pass context=Context(inputs, "
                f"{field}=...)",
            )
        return self.condition(context)

    @property
    def independent_rows(self) -> bool:
        """True if the edges of each row are independent of those of other rows."""
        return self.independent_edges

    def penalty(self) -> Scalar | None:
        """Return the penalty that is added to the loss of a pair, or None if the distribution has none."""
        return None

    def weighted_log_prob(self, weights: EdgeWeights, graphs: Graphs) -> Scalar:
        r"""Return $\mathrm{mean}_s\, w_s \log P(A_s)$ over all graphs, with the last two axes of ``weights`` of size 1.

        If edges are independent, the weights may be per edge: $\sum_{ij} w_{sij} \log P(A_{s,ij})$.
        """
        logs = self.log_prob(graphs)
        return torch.where(weights[..., 0, 0] == 0, 0.0, weights[..., 0, 0] * logs).mean()

    @property
    def uniforms_shape(self) -> tuple[int, int]:
        """Shape of the uniforms that determine one graph; by default one per edge."""
        return self.edge_shape

    def sample(self, num_graphs: int, *, num_pairs: int = 1, generator: Generator) -> Graphs:
        """Draw ``num_graphs`` graphs for each of ``num_pairs`` pairs."""
        require_int("num_graphs", num_graphs)
        require_int("num_pairs", num_pairs)
        shape, like = (num_pairs, num_graphs, *self.uniforms_shape), self.raw
        return self.sample_from(torch.rand(shape, generator=generator, device=like.device, dtype=like.dtype))

    @property
    def layout(self) -> Layout:
        """The layout of tensors with a number per edge: a matrix, or the table of candidates."""
        return AllPairs(self.edge_shape[1], self.raw.device) if self.candidates is None else self.candidates

    @property
    def has_all_pairs(self) -> bool:
        """Whether there is an entry for every ordered pair of nodes, not only for candidates."""
        return self.candidates is None

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.edge_shape[1] if self.candidates is None else self.candidates.num_nodes

    def as_operator(self, graphs: Graphs) -> AnyGraphs:
        """Return graphs in the form that predictors use: ``graphs @ messages`` sums the messages of the sources."""
        return graphs if self.candidates is None else CandidateGraphs(graphs, self.candidates)

    def index(self, nodes: Sequence[str]) -> EdgeIndex:
        """Return the index of the edges: all pairs of nodes, or the candidates, by target and then source."""
        return self.layout.index(nodes, symmetric=self.symmetric)

    def vector(self, values: Shaped[Tensor, "row slot"]) -> Shaped[np.ndarray, " edge"]:
        """Return numbers in the layout of a graph as a vector over :meth:`index`."""
        return self.layout.vector(values)

    def placed(self, values: Shaped[np.ndarray, " edge"], fill: float = 0) -> Shaped[Tensor, "row slot"]:
        """Return a vector over :meth:`index` in the layout of a graph, with ``fill`` in empty slots."""
        return self.layout.placed(values, fill)

    def over_all_pairs(self) -> "GraphDistribution":
        """Return the same distribution over all pairs of nodes, with the other edges fixed at 0."""
        if self.candidates is None:
            return self
        raise self._without_edge_probs("over_all_pairs")

    def described(self, edges: EdgeTable) -> EdgeTable:
        """Return a table with which edges are learned and required, and their probabilities unless it has them."""
        probs, learned = self.edge_probs.detach().cpu(), self.learned.cpu()
        columns = {"learned": self.vector(learned), "required": self.vector(~learned & (probs > 0))}
        return edges.updated(
            **columns, probability=edges["probability"] if "probability" in edges else self.vector(probs)
        )

    def forward(self) -> EdgeProbs:
        """Return :attr:`edge_probs`, so that ``functional_call`` can compute them for other parameters."""
        return self.edge_probs

    def probs_of(self, parameters: Mapping[str, Tensor]) -> Float[Tensor, "replica row slot"]:
        """Return the edge probabilities of many replicas; ``parameters`` stacks the parameters of this module."""

        def of_one(one: dict[str, Tensor]) -> Tensor:
            probs: Tensor = functional_call(self, one, ())
            return probs

        return vmap(of_one)(dict(parameters))

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> "GraphDistribution":
        """Move to another device or type, together with the table of candidates that all replicas share."""
        super()._apply(fn, *args, **kwargs)  # type: ignore[no-untyped-call]
        if self.candidates is not None:
            self.candidates = self.candidates.to(self.raw.device)
        return self

    @property
    def raw(self) -> Tensor:
        """A stored tensor that determines the device and type of the distribution."""
        return next(chain(self.parameters(), self.buffers()), torch.zeros(()))

    def probs_from(self, raw: Float[Tensor, "*replica row slot"]) -> Float[Tensor, "*replica row slot"]:
        """Return the probabilities of the stored numbers ``raw``; requires one probability per edge."""
        del raw
        raise self._without_edge_probs("probs_from")

    def log_probs(self) -> tuple[EdgeLogProbs, EdgeLogProbs]:
        r"""Return $\log \theta$ and $\log(1 - \theta)$; requires one probability per edge."""
        raise self._without_edge_probs("log_probs")

    def clamp_probs(
        self, raw: Float[Tensor, "*replica row slot"], floor: float | Tensor
    ) -> Float[Tensor, "*replica row slot"]:
        """Return stored numbers with probabilities clamped to [floor, 1 - floor]; by default unchanged."""
        del floor
        return raw

    @property
    def learned(self) -> EdgeMask:
        """Mask of the edges that are learned; all, unless a distribution fixes some."""
        return torch.ones(self.edge_shape, dtype=torch.bool, device=self.raw.device)

    def symmetrize(self, values: Float[Tensor, "*any row slot"]) -> Float[Tensor, "*any row slot"]:
        """Copy the values of i <= j to both entries of a pair if the graph is symmetric, else return them unchanged."""
        return values.triu() + values.triu(1).mT if self.symmetric else values

    def upper_triangle(self, values: Float[Tensor, "*any row slot"]) -> Float[Tensor, "*any row slot"]:
        """Set the values of i > j to 0 if the graph is symmetric, else return them unchanged."""
        return values.triu() if self.symmetric else values

    def require_edge_probs(self, what: str) -> None:
        """Raise :class:`InputError` unless this distribution has one probability per edge."""
        if not self.has_edge_probs:
            raise self._without_edge_probs(what)

    def require_all_pairs(self, what: str) -> None:
        """Raise :class:`InputError` unless this distribution has one probability per ordered pair of nodes."""
        self.require_edge_probs(what)
        require(
            self.has_all_pairs,
            f"{what} requires a graph over all pairs of nodes, got a table of candidates; use "
            "tacit.training.result(model) for small graphs",
        )

    def _without_edge_probs(self, what: str) -> InputError:
        return InputError(
            f"{what} requires a graph with independent edges, got {type(self).__name__}; use BernoulliGraph"
        )


def times(weight: Tensor, log: Tensor) -> Tensor:
    """Multiply, with 0 times infinity equal to 0: an impossible event that did not occur contributes nothing."""
    return torch.where(weight == 0, 0.0, weight * log)

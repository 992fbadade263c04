r"""Graphs with independent Bernoulli edges.

$$P_\theta(A) = \prod_{ij} \theta_{ij}^{A_{ij}} (1 - \theta_{ij})^{1 - A_{ij}}$$

$A_{ij} = 1$ means that node $i$ reads node $j$: the row is the target, the column is the source. $\theta$ covers every
ordered pair, self-loops included. In a symmetric graph $A_{ij}$ and $A_{ji}$ are the same random variable, and the
product runs over $i \le j$. ``edge_probs`` is $\theta$. The stored parameter is an unconstrained number per edge:
``edge_logits``, or ``edge_angles`` with the link ``SineSquared``.

With a table of candidates (:class:`~tacit.graph.layouts.CandidateEdges`) only the candidate edges are possible.
Every tensor then has one entry per slot of the table, (row, slot), instead of one per ordered pair of nodes.
"""

from collections.abc import Mapping
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from tacit.errors import InputError, require, require_int
from tacit.graph.distribution import GraphDistribution, times
from tacit.graph.layouts import CandidateEdges, layout_of
from tacit.graph.links import Link, Sigmoid
from tacit.registry import register
from tacit.shapes import EdgeLogProbs, EdgeMask, EdgeProbs, EdgeWeights, Graphs, LogProb, RowLogProb, Scalar, Uniforms

# Initial probabilities of the paper (its appendix on the experimental set-up): few edges, none impossible.
INITIAL_PROBS = (0.0, 0.1)


class BernoulliGraph(GraphDistribution):
    """A graph distribution with one probability per ordered pair of nodes; entries can be fixed.

    Probabilities of 0 and 1 are exact: such an edge is never or always sampled. Log-probability and score are finite
    for every possible graph; an impossible graph has log-probability minus infinity.

    >>> graph = BernoulliGraph(torch.tensor([[0.0, 0.5], [1.0, 0.5]]))
    >>> graphs = graph.sample(1000, generator=Generator().manual_seed(0))
    >>> graphs.shape, graphs[..., 0, 0].max().item(), graphs[..., 1, 0].min().item()
    (torch.Size([1, 1000, 2, 2]), 0.0, 1.0)
    >>> graph.log_prob(graphs)[0, 0].exp().item()
    0.25
    >>> undirected = BernoulliGraph(torch.full((2, 2), 0.5), symmetric=True)
    >>> graphs = undirected.sample(1000, generator=Generator().manual_seed(0))
    >>> torch.equal(graphs, graphs.mT), round(undirected.log_prob(graphs)[0, 0].exp().item(), 4)  # three coins
    (True, 0.125)
    """

    independent_edges: ClassVar[bool] = True
    has_edge_probs: ClassVar[bool] = True

    def __init__(
        self,
        edge_probs: EdgeProbs,
        fixed: EdgeMask | None = None,
        initial_range: tuple[float, float] | None = None,
        link: Link | None = None,
        symmetric: bool = False,
        candidates: CandidateEdges | None = None,
    ) -> None:
        """Start at ``edge_probs``; entries where ``fixed`` is true are not learned.

        With ``initial_range`` each replica of a fit starts at its own probabilities, uniform in that range. With
        ``symmetric`` edges have no direction: the values above the diagonal apply to both entries of a pair, and the
        values below it are not used. With ``candidates`` there is one entry per slot, and empty slots stay at 0.
        """
        super().__init__()
        link = Sigmoid() if link is None else link
        require(
            isinstance(link, Link) and not isinstance(link, type),
            f"link must be an object like Sigmoid() or SineSquared(), got {link!r}; build one",
        )
        _require_probabilities(edge_probs, candidates)
        if fixed is None:
            fixed = torch.zeros_like(edge_probs, dtype=torch.bool)
        require(
            isinstance(fixed, Tensor) and fixed.dtype == torch.bool and fixed.shape == edge_probs.shape,
            f"fixed must be a tensor of booleans with the shape of edge_probs, {tuple(edge_probs.shape)}; "
            "pass one true or false per ordered pair of nodes",
        )
        require(
            candidates is None or not symmetric,
            "symmetric requires a graph over all pairs of nodes, got a table of candidates; leave one of them out",
        )
        if symmetric:
            require_symmetric("edge_probs", edge_probs, "pass for example (edge_probs + edge_probs.mT) / 2")
            require_symmetric("fixed", fixed, "fix both entries of a pair or none")
        if candidates is not None:
            candidates = candidates.to(edge_probs.device)
            edge_probs, fixed = torch.where(candidates.used, edge_probs, 0.0), fixed | ~candidates.used
        self.symmetric, self.candidates = symmetric, candidates
        self.initial_range = initial_range
        self.initial_spread = 0.0
        self.link = link
        self.register_parameter(link.parameter, nn.Parameter(link.raw(edge_probs.detach().clone())))
        self.register_buffer("fixed", fixed.clone())
        self.register_buffer("fixed_probs", torch.where(fixed, edge_probs.detach(), 0.0))

    @classmethod
    def uniform(
        cls,
        num_nodes: int,
        *,
        generator: Generator,
        low: float = INITIAL_PROBS[0],
        high: float = INITIAL_PROBS[1],
        link: Link | None = None,
        symmetric: bool = False,
        candidates: CandidateEdges | None = None,
    ) -> "BernoulliGraph":
        """Return a graph whose probabilities are drawn uniformly from (``low``, ``high``)."""
        require_int("num_nodes", num_nodes)
        require_range(low, high)
        require(
            candidates is None or candidates.num_nodes == num_nodes,
            f"num_nodes must equal that of candidates, {getattr(candidates, 'num_nodes', 0)}, got {num_nodes}; pass it",
        )
        start = torch.full(layout_of(num_nodes, candidates).shape, high, device=generator.device)
        graph = cls(start, initial_range=(low, high), link=link, symmetric=symmetric, candidates=candidates)
        graph.load_state_dict(graph.initial_parameters(generator), strict=False)
        return graph

    @classmethod
    def empty(
        cls,
        num_nodes: int,
        *,
        link: Link | None = None,
        symmetric: bool = False,
        candidates: CandidateEdges | None = None,
    ) -> "BernoulliGraph":
        """Return a graph of the right shape, into which stored tensors are loaded."""
        shape = layout_of(num_nodes, candidates).shape
        return cls(torch.zeros(shape), link=link, symmetric=symmetric, candidates=candidates)

    def over_all_pairs(self) -> "BernoulliGraph":
        """Return the same distribution over all pairs of nodes, with the other edges fixed at 0."""
        if self.candidates is None:
            return self
        table = self.candidates
        fixed, fixed_probs = table.in_matrix(self.fixed, fill=True), table.in_matrix(self.fixed_probs)
        full = BernoulliGraph(torch.where(fixed, fixed_probs, 0.5), fixed, link=self.link)
        full.raw.data = table.in_matrix(self.raw.detach(), fill=float(self.link.raw(torch.zeros(()))))
        full.initial_range, full.initial_spread = self.initial_range, self.initial_spread
        return full

    @classmethod
    def from_start(cls, start: GraphDistribution) -> GraphDistribution:
        """Return ``start``, which already is a Bernoulli graph."""
        return start

    def start_around(self, edge_probs: EdgeProbs, spread: float = 0.0) -> None:
        """Set ``edge_probs``, and start every replica of a fit near them: logits plus ``spread`` times normal noise.

        Fixed entries do not change. A symmetric graph uses the higher of the two entries of a pair.
        """
        _require_probabilities(edge_probs, self.candidates)
        require(
            edge_probs.shape == self.fixed.shape,
            f"edge_probs must have a row and a column for each of {self.num_nodes} nodes, got shape "
            f"{tuple(edge_probs.shape)}; pass a square matrix",
        )
        require(0 <= spread < float("inf"), f"spread must be at least 0, got {spread}; pass for example 0.5")
        probs = torch.maximum(edge_probs, edge_probs.mT) if self.symmetric else edge_probs
        self.raw.data = self.link.raw(probs.detach().clone().to(self.raw))
        self.initial_range, self.initial_spread = None, spread

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return initial values of a replica: uniform in the initial range, or at or near the current values."""
        raw = self.raw.detach()
        if self.initial_range is None and not self.initial_spread:
            return {self.link.parameter: raw}
        if self.initial_range is None:
            normals = torch.randn(raw.shape, generator=generator, device=generator.device, dtype=raw.dtype)
            logits = torch.logit(self.link.probs(raw)) + self.initial_spread * normals.to(raw.device)
            return {self.link.parameter: self.link.raw(self.symmetrize(torch.sigmoid(logits)))}
        low, high = self.initial_range
        uniforms = torch.rand(raw.shape, generator=generator, device=generator.device, dtype=raw.dtype)
        smallest = torch.finfo(raw.dtype).eps  # open interval: an edge that starts at 0 would stay at 0
        probs = self.symmetrize(low + (high - low) * uniforms.clamp_min(smallest))
        return {self.link.parameter: self.link.raw(probs).to(raw.device)}

    @property
    def raw(self) -> Float[Tensor, "row slot"]:
        """The stored parameter: one unconstrained number per edge; a symmetric graph uses only i <= j."""
        raw: Tensor = getattr(self, self.link.parameter)
        return raw

    @property
    def edge_shape(self) -> tuple[int, int]:
        """Shape of a tensor with one entry per edge."""
        rows, columns = self.fixed.shape
        return rows, columns

    @property
    def learned(self) -> EdgeMask:
        """Mask of the edges that are learned, that is, not fixed."""
        return ~self.fixed

    @property
    def edge_probs(self) -> EdgeProbs:
        r"""The probability $\theta_{ij}$ of each edge."""
        return self.probs_from(self.raw)

    def probs_from(self, raw: Float[Tensor, "*replica row slot"]) -> Float[Tensor, "*replica row slot"]:
        """Return the probabilities that belong to the stored numbers ``raw``, for one or many replicas."""
        return torch.where(self.fixed, self.fixed_probs, self.link.probs(self.symmetrize(raw)))

    def probs_of(self, parameters: Mapping[str, Tensor]) -> Float[Tensor, "replica row slot"]:
        """Return the edge probabilities of many replicas."""
        return self.probs_from(parameters[self.link.parameter])

    def clamp_probs(
        self, raw: Float[Tensor, "*replica row slot"], floor: float | Tensor
    ) -> Float[Tensor, "*replica row slot"]:
        """Return stored numbers with probabilities clamped to [floor, 1 - floor]; fixed entries do not change."""
        lowest = torch.as_tensor(floor, dtype=raw.dtype, device=raw.device)
        return torch.where(self.fixed, raw, self.link.clamp_probs(raw, lowest))

    def log_probs(self) -> tuple[EdgeLogProbs, EdgeLogProbs]:
        r"""Return $\log \theta$ and $\log(1 - \theta)$."""
        log_present, log_absent = self.link.log_probs(self.symmetrize(self.raw))
        return (
            torch.where(self.fixed, self.fixed_probs.log(), log_present),
            torch.where(self.fixed, (-self.fixed_probs).log1p(), log_absent),
        )

    def sample_from(self, uniforms: Uniforms) -> Graphs:
        r"""Return the graphs of given uniforms, $A_{ij} = 1[u_{ij} < \theta_{ij}]$, without a gradient."""
        return (self.symmetrize(uniforms) < self.edge_probs.detach()).to(uniforms.dtype)

    def row_log_prob(self, graphs: Graphs) -> RowLogProb:
        r"""Return $\log P(A_{i,:})$ for each row; rows are independent, so they add up to $\log P(A)$.

        In a symmetric graph a pair $i < j$ is counted in row $i$ only.
        """
        log_present, log_absent = self.log_probs()
        logs = torch.where(graphs > 0, log_present, log_absent)
        if self.symmetric:
            logs = torch.where(graphs == graphs.mT, logs, -torch.inf)
        return self.upper_triangle(logs).sum(-1)

    def weighted_log_prob(self, weights: EdgeWeights, graphs: Graphs) -> Scalar:
        r"""Return $\mathrm{mean}_s \sum_{ij} w_{sij} \log P(A_{s,ij})$ over all graphs, by counting edges first.

        The logarithms are taken once for each edge instead of once for each edge of each graph. In a symmetric graph
        the sum runs over $i \le j$.
        """
        log_present, log_absent = self.log_probs()
        present = (weights * graphs).mean((0, 1))  # (row, slot)
        absent = (weights * (1 - graphs)).mean((0, 1))
        return self.upper_triangle(times(present, log_present) + times(absent, log_absent)).sum()

    def log_prob(self, graphs: Graphs) -> LogProb:
        r"""Return $\log P_\theta(A)$."""
        return self.row_log_prob(graphs).sum(-1)

    def score(self, graphs: Graphs) -> Graphs:
        r"""Return $\partial \log P_\theta(A) / \partial \mathrm{logit}\,\theta_{ij} = A_{ij} - \theta_{ij}$.

        It is zero for fixed entries, and below the diagonal of a symmetric graph.
        """
        return self.upper_triangle(torch.where(self.fixed, 0.0, graphs - self.edge_probs))


def require_range(low: float, high: float) -> None:
    """Raise :class:`InputError` unless 0 <= ``low`` <= ``high`` <= 1."""
    require(
        0 <= low <= high <= 1,
        f"low and high must satisfy 0 <= low <= high <= 1, got {low} and {high}; pass two probabilities in order",
    )


def require_symmetric(name: str, matrix: Tensor, remedy: str) -> None:
    """Raise :class:`InputError` if a matrix differs from its transpose; the message names the first such entry."""
    differs = matrix != matrix.mT
    if differs.any():
        i, j = (int(k) for k in differs.nonzero()[0])
        raise InputError(
            f"{name} must equal its transpose in a symmetric graph, got {matrix[i, j].item()} at [{i}, {j}] and "
            f"{matrix[j, i].item()} at [{j}, {i}]; {remedy}"
        )


def _require_probabilities(edge_probs: EdgeProbs, candidates: CandidateEdges | None) -> None:
    if not isinstance(edge_probs, Tensor) or not edge_probs.is_floating_point():
        kind = getattr(edge_probs, "dtype", type(edge_probs).__name__)
        raise InputError(f"edge_probs must be a tensor of floats, got {kind}; use torch.as_tensor(values).float()")
    if candidates is not None and edge_probs.shape != candidates.sources.shape:
        raise InputError(
            f"edge_probs must have the shape of the table of candidates, {tuple(candidates.sources.shape)}, got "
            f"{tuple(edge_probs.shape)}; pass one probability per slot"
        )
    if candidates is None and (edge_probs.ndim != 2 or edge_probs.shape[0] != edge_probs.shape[1]):
        raise InputError(
            f"edge_probs must be a square matrix, got shape {tuple(edge_probs.shape)}; pass one probability per "
            "ordered pair of nodes"
        )
    outside = ~((edge_probs >= 0) & (edge_probs <= 1))
    if outside.any():
        i, j = (int(k) for k in outside.nonzero()[0])
        raise InputError(
            f"edge_probs must have values in [0, 1], got {edge_probs[i, j].item()} at [{i}, {j}]; "
            "pass probabilities, not weights or logits"
        )


register("graph", "bernoulli", BernoulliGraph)
